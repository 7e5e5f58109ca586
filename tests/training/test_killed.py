"""A training that is killed at any instant and started again ends with the bits of one that is not."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from paddlelike.errors import PaddlelikeError
from tests.helpers.fork_server import Forked
from tests.training.resumed import SOURCES


def start(fork_server: str, root: Path, source: str, **environment: Any) -> Forked:
    texts = {name: str(value) for name, value in environment.items()}
    given = {"ROOT": str(root), "SOURCE": source, **texts}
    return Forked(fork_server, "tests.training.resumed", os.environ | given)


def finish(fork_server: str, root: Path, source: str, **environment: Any) -> dict[str, Any]:
    """Run it to its end; return what it says of it."""
    with closing(start(fork_server, root, source, **environment)) as process:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    found: dict[str, Any] = json.loads((root / "final").read_text())
    return found


def checkpoints(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if path.name.startswith("model"))


@pytest.mark.parametrize(
    "source", [pytest.param("ctf", marks=pytest.mark.slow), "loader"]
)  # the others: below
def test_a_killed_training_ends_with_the_same_bits(fork_server: str, tmp_path: Path, source: str) -> None:
    """Rows C12, C13: killed at calls that write, rename and delete."""
    want = finish(fork_server, tmp_path / "whole", source, SAMPLES=110)
    root = tmp_path / "killed"
    for strike in {"ctf": (75,), "loader": (90, 40)}[source]:
        with closing(start(fork_server, root, source, SAMPLES=110, STRIKE=strike)) as process:
            assert process.wait(120) == -signal.SIGKILL, process.errors
    assert finish(fork_server, root, source, SAMPLES=110) == want
    assert checkpoints(root) == checkpoints(tmp_path / "whole")
    assert not [path for path in root.iterdir() if path.name.startswith(".")]


@pytest.mark.slow
def test_a_killed_compiled_training_ends_with_the_same_bits(fork_server: str, tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)
    compiled = {"SAMPLES": 110, "FLAGS_backend": "jax"}
    want = finish(fork_server, tmp_path / "whole", "memory", **compiled)
    again = finish(fork_server, tmp_path / "again", "memory", **compiled)
    with_numpy = finish(fork_server, tmp_path / "numpy", "memory", SAMPLES=110)
    assert again == want
    assert with_numpy["checksum"] != want["checksum"]  # another order of sums: it was compiled
    assert with_numpy["random"] == want["random"]
    root = tmp_path / "killed"
    for strike in (75, 40):
        with closing(start(fork_server, root, "memory", STRIKE=strike, **compiled)) as process:
            assert process.wait(120) == -signal.SIGKILL, process.errors
    assert finish(fork_server, root, "memory", **compiled) == want


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_a_training_killed_at_random_instants_ends_with_the_same_bits(
    fork_server: str, tmp_path: Path, source: str
) -> None:
    begin = time.monotonic()
    want = finish(fork_server, tmp_path / "whole", source)
    longest = time.monotonic() - begin
    rng = random.Random(source)
    for attempt in range(2):
        root = tmp_path / f"killed {attempt}"
        for _ in range(4):
            with closing(start(fork_server, root, source)) as process:  # which kills it
                time.sleep(rng.uniform(0.1, longest))
            with closing(start(fork_server, root, source, STRIKE=rng.randint(1, 200))) as process:
                process.wait(120)
        assert finish(fork_server, root, source) == want
        found, kept = checkpoints(root), checkpoints(tmp_path / "whole")
        # Killed behind the last commit, it leaves one that the next save would remove, and there is none.
        assert set(kept) <= set(found)
        assert len(found) <= len(kept) + 1


@pytest.mark.slow
def test_a_training_restarted_after_failing_calls_ends_with_the_same_bits(
    fork_server: str, tmp_path: Path
) -> None:
    want = finish(fork_server, tmp_path / "whole", "memory", SAMPLES=110)
    rng, root, failed = random.Random(5), tmp_path / "failing", 0
    for fault in ("ENOSPC", "EIO", "EDQUOT", "ESTALE", "EACCES", "EMFILE"):
        given = {"SAMPLES": 110, "FAULT": fault, "STRIKE": rng.randint(1, 60)}
        with closing(start(fork_server, root, "memory", **given)) as process:
            code = process.wait(120)
            ours = f"{PaddlelikeError.__module__}." in process.errors
            of_script = "resumed.py" in process.errors.rpartition("  File ")[2]  # its own folders and files
            assert code == 0 or ours or of_script, process.errors
        failed += code != 0
        if code == 0:
            assert json.loads((root / "final").read_text()) == want
            root = tmp_path / f"failing after {fault}"
    assert failed
    assert finish(fork_server, root, "memory", SAMPLES=110) == want


@pytest.mark.slow
def test_a_training_restarted_after_signals_ends_with_the_same_bits(fork_server: str, tmp_path: Path) -> None:
    begin = time.monotonic()
    want = finish(fork_server, tmp_path / "whole", "memory")
    longest = time.monotonic() - begin
    rng, root = random.Random(6), tmp_path / "ended"
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        with closing(start(fork_server, root, "memory")) as process:
            time.sleep(rng.uniform(0.1, longest))
            process.send_signal(number)
            assert process.wait(120) in (-number, 0, 1), process.errors
    assert finish(fork_server, root, "memory") == want
