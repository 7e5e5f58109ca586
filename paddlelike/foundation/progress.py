"""Progress of an operation: one line, on a terminal or below a notebook's cell, drawn after a second.

The outermost operation of the main thread owns the line; the operations that it calls add their bytes.
Nothing is drawn without a terminal or notebook, or with ``PADDLELIKE_PROGRESS=0``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from paddlelike.foundation.amounts import format_size
from paddlelike.foundation.locks import Event, Lock
from paddlelike.foundation.threads import Thread

_DELAY: Final = 1.0  # seconds before the line is drawn
_INTERVAL: Final = 0.1  # seconds between two drawings
_TICK: Final = 1.0  # seconds between two drawings of an operation that has counted nothing


class _Line:
    """Progress in bytes, counted by several threads. Without a text nothing is drawn."""

    def __init__(self, text: str | None, total: int) -> None:
        self._text = text
        self._total = total
        self._done = 0
        self._begin = time.monotonic()
        self._due = self._begin + _DELAY
        self._drawn = False
        self._reported = False  # the operation counts its bytes itself; operations that it calls add none
        self._lock = Lock()
        self._notebook = find_notebook()
        self._ended = Event()
        if text is not None and self._notebook is None:
            with contextlib.suppress(RuntimeError):  # without a further thread the seconds are not drawn
                Thread(self._tick, "paddlelike progress").start()

    def _tick(self) -> None:
        """Draw the elapsed seconds while nothing is counted."""
        while not self._ended.wait(_TICK):
            with self._lock.hold():
                if not self._done and not self._ended.is_set():
                    self._draw(self._format(time.monotonic()))

    def advance(self, nbytes: int) -> None:
        with self._lock.hold():
            if not self._reported:
                self._count(self._done + nbytes)

    def report(self, done: int, total: int) -> None:
        with self._lock.hold():
            self._total, self._reported = total, True
            self._count(done)

    def _count(self, done: int) -> None:
        self._done = done
        now = time.monotonic()
        if self._text is not None and now >= self._due:
            self._due = now + _INTERVAL
            self._draw(self._format(now))

    def _format(self, now: float) -> str:
        speed = format_size(int(self._done / max(now - self._begin, 1e-9)))
        if not self._done:
            return self._fit(f"{self._text}: {now - self._begin:.0f} s")
        share = f"{min(self._done / self._total, 1):.0%} of {format_size(self._total)}" if self._total else ""
        return self._fit(f"{self._text}: {share or format_size(self._done)}, {speed}/s")

    @staticmethod
    def _fit(text: str) -> str:
        """Return the end of a text, cut to the terminal's width, without control characters."""
        text = "".join(
            one if one.isprintable() else "?" for one in text
        )  # a path cannot control the terminal
        return text[-(shutil.get_terminal_size().columns - 1) :]

    def _draw(self, text: str) -> None:
        import html  # late: it takes long

        if self._notebook is not None:
            self._notebook(f"<pre>{html.escape(text)}</pre>" if text else "")
            self._drawn = True
            return
        with contextlib.suppress(OSError, ValueError):  # the terminal has gone
            sys.stderr.write(f"\r{text}\x1b[K")
            sys.stderr.flush()
            self._drawn = True

    def end(self) -> None:
        with self._lock.hold():
            self._ended.set()
            if self._drawn:
                self._draw("")


def find_notebook() -> Callable[[str], None] | None:
    """Return a function that shows and replaces HTML below a notebook's cell, or None outside notebooks."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):
        return None
    display: Any = sys.modules["IPython"].display
    shown: list[Any] = []

    def show(text: str) -> None:
        if shown:
            shown[0].update(display.HTML(text))
        else:
            shown.append(display.display(display.HTML(text), display_id=True))

    return show


_line: _Line | None = None  # of the operation that runs


@contextlib.contextmanager
def show_progress(text: str | None, sizes: Iterable[int] = ()) -> Iterator[None]:
    """Draw the progress of the ``with`` block, unless an outer block draws its own or ``text`` is None.

    Parameters
    ----------
    text
        The activity, such as "saving models".
    sizes
        The bytes of its parts, as far as they are known; added up only if something is drawn.
    """
    global _line
    if _line is not None or not _is_wanted():
        yield
        return
    line = _line = _Line(text, sum(sizes))
    try:
        yield
    finally:
        _line = None
        line.end()


def _is_wanted() -> bool:
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return (
        (terminal or find_notebook() is not None)
        and os.environ.get("PADDLELIKE_PROGRESS") != "0"
        and threading.get_ident() == threading.main_thread().ident
    )


def advance_progress(nbytes: int) -> None:
    """Add finished bytes to the operation that is drawn, if there is one; callable from any thread."""
    if _line is not None:
        _line.advance(nbytes)


def report_progress(done: int, total: int) -> None:
    """Report the finished bytes and the total bytes, for operations that count themselves."""
    if _line is not None:
        _line.report(done, total)


def _forget() -> None:
    global _line
    _line = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # the line is the parent's
