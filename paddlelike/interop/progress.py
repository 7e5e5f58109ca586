"""A progress bar on standard error, when that is a terminal, ``rich`` is installed and it takes a while."""

from __future__ import annotations

import sys
import time
from typing import Any, Final, Self

__all__ = ["ProgressBar"]

_DELAY: Final = 1.0  # seconds before the bar is drawn


class ProgressBar:
    """Draws the bytes done of all bytes; nothing without a terminal, without ``rich``, or before a second.

    Parameters
    ----------
    text
        What is done; it stands before the bar.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._begin = time.monotonic()
        self._drawn: Any = None
        self._wanted = sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn is not None:
            self._drawn.stop()

    def __call__(self, done: int, total: int) -> None:
        """Show ``done`` of ``total`` bytes."""
        if self._drawn is None and self._wanted and time.monotonic() - self._begin >= _DELAY:
            self._draw(total)
        if self._drawn is not None:
            self._drawn.update(self._drawn.task_ids[0], completed=done)

    def _draw(self, total: int) -> None:
        try:
            from rich.console import Console  # an extra
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
        except ImportError:
            self._wanted = False
            return
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self._drawn = Progress(*columns, console=Console(stderr=True))
        self._drawn.add_task(self._text, total=total)
        self._drawn.start()
