"""Progress as lines of text, in CNTK's form."""

from __future__ import annotations

import os
import sys

from paddlelike.training.progress.writer import ProgressWriter, Span


class ProgressPrinter(ProgressWriter):
    """Prints a line for each update and each summary.

    Parameters
    ----------
    freq, first, test_freq, test_first
        The same as in :class:`ProgressWriter`; ``freq=0`` prints a table.
    tag
        A text that stands before the loss of a summary, in brackets.
    log_to_file
        A file to append the lines to; None for standard output.
    rank
        The rank of this process; each process writes its own file, ``<log_to_file>rank<rank>``.
    num_epochs
        The number of summaries to come: "[1 of 3]".
    metric_is_pct
        Whether to print metrics as percentages.

    >>> printer = ProgressPrinter(freq=2)
    >>> for loss in (0.5, 0.25, 0.125):
    ...     printer.update_training(4, loss, 0.5)
     Minibatch[   1-   2]: loss = 0.375000 * 8, metric = 50.00% * 8;
    """

    def __init__(
        self,
        freq: int | None = None,
        first: int = 0,
        tag: str = "",
        log_to_file: str | os.PathLike[str] | None = None,
        rank: int | None = None,
        *,
        num_epochs: int | None = None,
        test_freq: int | None = None,
        test_first: int = 0,
        metric_is_pct: bool = True,
    ) -> None:
        super().__init__(freq, first, test_freq, test_first)
        self._tag = f"[{tag}] " if tag else ""
        self._file = None if log_to_file is None else os.fspath(log_to_file)
        if self._file is not None and rank is not None:
            self._file += f"rank{rank}"
        self._epochs = "" if num_epochs is None else f" of {num_epochs}"
        self._is_percent = metric_is_pct
        if freq == 0:
            self.log(" average      since    average      since      examples")
            self.log("    loss       last     metric       last              ")
            self.log(" ------------------------------------------------------")

    def log(self, message: str) -> None:
        """Print a line."""
        if self._file is None:
            sys.stdout.write(message + "\n")
            sys.stdout.flush()
            return
        with open(self._file, "a", encoding="utf-8") as file:
            file.write(message + "\n")

    def on_write_training_update(
        self, samples: Span, updates: Span, aggregate_loss: Span, aggregate_metric: Span | None
    ) -> None:
        if self._training.freq == 0:
            columns = [_columns(aggregate_loss, samples), _columns(aggregate_metric, samples)]
            self.log(f" {columns[0]}{columns[1]} {samples[1]:10d}")
            return
        count = samples[1] - samples[0]
        metric = "" if aggregate_metric is None else ", " + self._metric(aggregate_metric, samples)
        loss = _average(aggregate_loss, samples)
        self.log(f" Minibatch{_span(updates)}: loss = {loss:0.6f} * {count}{metric};")

    def on_write_test_update(self, samples: Span, updates: Span, aggregate_metric: Span) -> None:
        if self._test.freq == 0:
            self.log(f" {_columns(None, samples)}{_columns(aggregate_metric, samples)} {samples[1]:10d}")
            return
        self.log(f" Evaluation Minibatch{_span(updates)}: {self._metric(aggregate_metric, samples)};")

    def on_write_training_summary(
        self,
        samples: int,
        updates: int,
        summaries: int,
        aggregate_loss: float,
        aggregate_metric: float | None,
        elapsed_milliseconds: float,
    ) -> None:
        if self._training.freq == 0:
            return
        seconds = elapsed_milliseconds / 1000
        metric = ""
        if aggregate_metric is not None:
            metric = ", " + self._metric((0.0, aggregate_metric), (0, samples))
        loss, speed = aggregate_loss / samples, samples / seconds if seconds else 0.0
        self.log(
            f"Finished Epoch[{summaries}{self._epochs}]: {self._tag}loss = {loss:0.6f} * {samples}{metric} "
            f"{seconds:0.3f}s ({speed:5.1f} samples/s);"
        )

    def on_write_test_summary(
        self, samples: int, updates: int, summaries: int, aggregate_metric: float, elapsed_milliseconds: float
    ) -> None:
        metric = self._metric((0.0, aggregate_metric), (0, samples))
        self.log(f"Finished Evaluation [{summaries}]: Minibatch[1-{updates}]: {metric};")

    def _metric(self, metric: Span, samples: Span) -> str:
        average, count = _average(metric, samples), samples[1] - samples[0]
        text = f"{100 * average:0.2f}%" if self._is_percent else f"{average:0.6f}"
        return f"metric = {text} * {count}"


def _average(sums: Span, samples: Span) -> float:
    count = samples[1] - samples[0]
    return (sums[1] - sums[0]) / count if count else 0.0


def _columns(sums: Span | None, samples: Span) -> str:
    """Return the averages since the last summary and since the last update."""
    if sums is None:
        return f"{'':8s}   {'':8s}   "
    return f"{_average((0.0, sums[1]), (0, samples[1])):8.3g}   {_average(sums, samples):8.3g}   "


def _span(updates: Span) -> str:
    return f"[{int(updates[0]) + 1:4d}-{int(updates[1]):4d}]"
