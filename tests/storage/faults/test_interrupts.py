"""Ctrl-C at any instant of taking, handing over and releasing a lock: the next one takes it all the same."""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from paddlelike.storage.local.filesystem import lock
from paddlelike.storage.local.filesystem.lock import Lock

#: After these the interpreter looks whether a signal has come.
LOOKS = {"CALL", "CALL_FUNCTION_EX", "CALL_KW", "JUMP_BACKWARD", "RESUME"}


@functools.cache
def _list_operations(code: CodeType) -> dict[int, str]:
    return {one.offset: one.opname for one in dis.get_instructions(code)}


class Interrupt:
    """Raises KeyboardInterrupt where the interpreter looks for signals the n-th time; -1: never."""

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0
        self._last: dict[int, int] = {}

    def __call__(self, frame: FrameType, event: str, arg: object) -> Any:
        callers = (frame, frame.f_back, frame.f_back and frame.f_back.f_back)
        if any(one is not None and one.f_code.co_name == "__del__" for one in callers):
            return None  # Python ends no program for what is raised there
        if frame.f_code.co_filename != lock.__file__:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._look

    def _look(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "opcode":
            before = self._last.get(id(frame), -1)
            self._last[id(frame)] = frame.f_lasti
            self.count += _list_operations(frame.f_code).get(before) in LOOKS
            if self.count == self.at:
                self.at = -1
                raise KeyboardInterrupt
        elif event == "return":
            self._last.pop(id(frame), None)
        return self._look


def _hold(path: str) -> None:
    with Lock(path, "it", wait=1.0):
        pass


def _hand_over(path: str) -> None:
    first, other = (Lock(path, "it", wait=1.0) for _ in range(2))
    try:
        with first:
            first.hand_over(other)
            other.check()
    finally:
        other.release()
        first.release()


def _run(what: Callable[[str], None], path: str, at: int) -> int:
    tracer, before = Interrupt(at), sys.gettrace()
    sys.settrace(tracer)
    try:
        what(path)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return tracer.count


@pytest.mark.parametrize("what", [_hold, _hand_over])
def test_an_interrupted_lock_is_released(
    what: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "_GONE", 0.0)  # else the next one waits for its turn
    path = str(tmp_path / "entry" / "lock")
    for _ in range(2):  # from Python 3.12 on, the first time reports no operations
        total = _run(what, path, -1)
    assert total > 20
    for at in range(1, total + 1):
        _run(what, path, at)
        with Lock(path, "it", wait=0):
            assert [one.name for one in (tmp_path / "entry").iterdir()] == ["lock"], at


def test_an_interrupted_thread_does_not_keep_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "entry" / "lock")
    gone = Lock(path, "it")
    monkeypatch.setattr(lock, "_waiting", [gone])  # Ctrl-C before the end of its waiting
    with Lock(path, "it", wait=None):
        assert (tmp_path / "entry" / "lock").exists()
