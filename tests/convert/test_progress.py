"""The progress bar of conversions: on a terminal, after a while."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.interop import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def convert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, **kwargs: Any) -> str:
    np.savez(tmp_path / "m.npz", w=np.ones((1000, 100)))
    monkeypatch.setattr(sys, "stderr", stream)
    fluid.convert(tmp_path / "m.npz", tmp_path / "m.safetensors", overwrite=True, **kwargs)
    return stream.getvalue()


def test_a_terminal_gets_a_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich", reason="rich is in the extra 'progress'")
    monkeypatch.setattr(progress, "_DELAY", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    text = convert(tmp_path, monkeypatch, Terminal())
    assert "m.safetensors" in text
    assert "800.0/800.0 kB" in text


def test_nothing_is_shown_without_a_terminal_and_within_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_DELAY", 1e6)
    assert convert(tmp_path, monkeypatch, Terminal()) == ""
    monkeypatch.setattr(progress, "_DELAY", 0.0)
    assert convert(tmp_path, monkeypatch, io.StringIO()) == ""
    assert convert(tmp_path, monkeypatch, Terminal(), progress=False) == ""
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert convert(tmp_path, monkeypatch, Terminal()) == ""
