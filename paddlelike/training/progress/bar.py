"""Progress as a bar, on a terminal or below a notebook's cell."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Final

from paddlelike.foundation.progress import find_notebook
from paddlelike.training.progress.writer import ProgressWriter, Span

_INTERVAL: Final = 0.1  # seconds between two drawings below a cell


class ProgressBar(ProgressWriter):
    """Draws the number of samples done, with loss and metric: below a notebook's cell, or on a terminal.

    On a terminal ``rich`` (extra ``progress``) draws it, on standard error. Without ``rich``, or without a
    terminal or notebook, nothing is drawn.

    >>> from paddlelike import training
    >>> callbacks = [training.ProgressBar()]
    """

    def __init__(self) -> None:
        super().__init__(freq=1)
        self._drawn: Any = None
        self._notebook: Callable[[str], None] | None = None
        self._total: int | None = None
        self._done = 0
        self._text = ""
        self._due = 0.0

    def begin(self, done: int, total: int | None) -> None:
        """Draw the bar."""
        self._done, self._total = done, total
        self._notebook = find_notebook()
        if self._notebook is not None:
            return
        if sys.stderr is None or not sys.stderr.isatty():
            return
        try:
            from rich.console import Console  # an extra
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
        except ImportError:
            return
        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("samples, {task.description}"),
            TimeRemainingColumn(),
        )
        self._drawn = Progress(*columns, console=Console(stderr=True))
        self._drawn.add_task("", total=total, completed=done)
        self._drawn.start()

    def end(self) -> None:
        """Leave the bar as it was last drawn."""
        if self._drawn is not None:
            self._drawn.stop()
            self._drawn = None
        if self._notebook is not None:
            self._show(self._notebook)

    def _show(self, notebook: Callable[[str], None]) -> None:
        self._due = time.monotonic() + _INTERVAL
        bar = (
            "" if self._total is None else f'<progress value="{self._done}" max="{self._total}"></progress> '
        )
        count = f"{self._done:,}" if self._total is None else f"{self._done:,} of {self._total:,}"
        notebook(f"<div>{bar}{count} samples, {self._text}</div>")

    def on_write_training_update(
        self, samples: Span, updates: Span, aggregate_loss: Span, aggregate_metric: Span | None
    ) -> None:
        count = samples[1] - samples[0]
        self._done += count
        if self._drawn is None and (self._notebook is None or time.monotonic() < self._due):
            return
        text = f"loss {(aggregate_loss[1] - aggregate_loss[0]) / count:.4g}"
        if aggregate_metric is not None:
            text += f", metric {(aggregate_metric[1] - aggregate_metric[0]) / count:.4g}"
        self._text = text
        if self._notebook is not None:
            self._show(self._notebook)
            return
        self._drawn.update(self._drawn.task_ids[0], completed=self._done, description=text)
