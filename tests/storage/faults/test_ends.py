"""How a process ends while it saves: nothing hidden is left where Python itself ends it."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from paddlelike.errors import SaveError
from paddlelike.storage.local.transaction import Transaction
from tests.storage.test_transaction import names

START = """
import atexit, os, sys, threading, time
from paddlelike.storage.local.transaction import Transaction

def save(number):
    with Transaction(sys.argv[1]) as transaction:
        for name in "abcdef":
            transaction.add(name, [bytes([number % 256]) * 300_000])

def save_on():
    for number in range(10_000):
        save(number)
        saved.set()

saved = threading.Event()
save(0)
"""
WAYS = {
    "a daemon thread saves": "threading.Thread(target=save_on, daemon=True).start(); saved.wait()",
    "a function of atexit saves": "atexit.register(save, 1)",
    "an error ends the program after a save": "save(1); raise SystemExit(0)",
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_processes_leave_no_hidden_files(tmp_path: Path, way: str) -> None:
    for _ in range(4):
        subprocess.run(
            [sys.executable, "-c", START + WAYS[way], str(tmp_path / "m")], check=True, timeout=120
        )
        assert names(tmp_path) == ["m"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="descriptors as Linux lists them")
def test_failed_saves_leave_no_descriptor_thread_or_hidden_entry(tmp_path: Path) -> None:
    def fail() -> object:
        yield b"x" * 1000
        raise ValueError("the buffers end here")

    def count() -> tuple[int, int]:
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    with Transaction(tmp_path / "m") as transaction:
        for name in ("v", "w"):
            transaction.add(name, [b"old"])
    before = None
    for number in range(200):
        transaction = Transaction(tmp_path / ("m" if number % 2 else "new"))
        transaction.add("v", [b"new"])
        transaction.add("w", fail())  # type: ignore[arg-type]
        with pytest.raises((ValueError, SaveError)):
            transaction.commit()
        before = before or count()
    assert count() == before
    assert names(tmp_path) == ["m"]
    assert (tmp_path / "m" / "w").read_bytes() == b"old"
