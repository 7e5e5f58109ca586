"""Progress as a bar on a terminal."""

from __future__ import annotations

import sys
from typing import Any

from paddlelike.training.progress.writer import ProgressWriter, Span

__all__ = ["ProgressBar"]


class ProgressBar(ProgressWriter):
    """Draws the samples done of all samples, with loss and metric, by ``rich`` on standard error.

    Nothing is drawn where that is no terminal, or without ``rich`` (extra ``progress``).

    >>> from paddlelike import training
    >>> callbacks = [training.ProgressBar()]
    """

    def __init__(self) -> None:
        super().__init__(freq=1)
        self._drawn: Any = None
        self._done = 0

    def begin(self, done: int, total: int | None) -> None:
        """Draw the bar."""
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
        self._done = done
        self._drawn = Progress(*columns, console=Console(stderr=True))
        self._drawn.add_task("", total=total, completed=done)
        self._drawn.start()

    def end(self) -> None:
        """Leave the bar as it is."""
        if self._drawn is not None:
            self._drawn.stop()
            self._drawn = None

    def on_write_training_update(
        self, samples: Span, updates: Span, aggregate_loss: Span, aggregate_metric: Span | None
    ) -> None:
        count = samples[1] - samples[0]
        self._done += count
        if self._drawn is None:
            return
        text = f"loss {(aggregate_loss[1] - aggregate_loss[0]) / count:.4g}"
        if aggregate_metric is not None:
            text += f", metric {(aggregate_metric[1] - aggregate_metric[0]) / count:.4g}"
        self._drawn.update(self._drawn.task_ids[0], completed=self._done, description=text)
