"""Progress reports of a training, and the schedule by which they are written."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

Span = tuple[Any, Any]  # two totals: at the last report, and now


class Tally:
    """Sums since the last summary, and their values at the last report."""

    def __init__(self, freq: int | None, first: int) -> None:
        self.freq, self.first = freq, first
        self.summaries = 0
        self.reset()

    def reset(self) -> None:
        self.now: list[float] = [0, 0, 0.0, 0.0]  # samples, minibatches, loss, metric
        self.reported = list(self.now)
        self.has_metric = False

    def add(self, samples: int, loss: float, metric: float | None) -> tuple[Span, Span, Span, Span] | None:
        """Add a minibatch; return samples, minibatches, loss and metric if a report is due."""
        self.has_metric = metric is not None
        for index, value in enumerate((samples, 1, loss * samples, (metric or 0.0) * samples)):
            self.now[index] += value
        count = int(self.now[1])
        if self.freq is None:
            return None
        is_due = (count + 1) & count == 0 if self.freq == 0 else not count % self.freq or count <= self.first
        if not is_due:
            return None
        spans = tuple(zip(self.reported, self.now, strict=True))
        self.reported = list(self.now)
        return spans  # type: ignore[return-value]


class ProgressWriter:
    """Base class of progress writers: subclasses override the ``on_write_...`` methods.

    Sums are taken over samples. The average of a span is the difference of two sums of a loss or metric,
    divided by the number of its samples.

    Parameters
    ----------
    freq, test_freq
        The number of minibatches, of training and of tests, between two updates; 0 for updates after 1, 3,
        7, 15, ... minibatches, None for no updates.
    first, test_first
        The number of first minibatches that each give an update too.

    Attributes
    ----------
    position
        The number of minibatches that the trainer has seen.

    >>> from paddlelike import training
    >>> issubclass(training.LossLog, training.ProgressWriter)
    True
    """

    def __init__(
        self, freq: int | None = None, first: int = 0, test_freq: int | None = None, test_first: int = 0
    ) -> None:
        self.position = 0
        self._training, self._test = Tally(freq, first), Tally(test_freq, test_first)
        self._began = {"training": time.monotonic(), "test": time.monotonic()}

    def update_training(self, samples: int, loss: float, metric: float | None) -> None:
        """Record the averages of a training minibatch."""
        spans = self._training.add(samples, loss, metric)
        if spans is not None:
            counts, updates, losses, metrics = spans
            self.on_write_training_update(
                counts, updates, losses, metrics if self._training.has_metric else None
            )

    def update_test(self, samples: int, metric: float) -> None:
        """Record the average metric of a test minibatch."""
        if not self._test.now[1]:
            self._began["test"] = time.monotonic()
        spans = self._test.add(samples, 0.0, metric)
        if spans is not None:
            counts, updates, _, metrics = spans
            self.on_write_test_update(counts, updates, metrics)

    def summarize_training(self) -> None:
        """Summarize the training since the last summary, and start a new one."""
        tally = self._training
        if tally.now[1]:
            tally.summaries += 1
            samples, updates, loss, metric = tally.now
            self.on_write_training_summary(
                int(samples),
                int(updates),
                tally.summaries,
                loss,
                metric if tally.has_metric else None,
                1000 * (time.monotonic() - self._began["training"]),
            )
        tally.reset()
        self._began["training"] = time.monotonic()

    def summarize_test(self) -> None:
        """Summarize the tests since the last summary, and start a new one."""
        tally = self._test
        if tally.now[1]:
            tally.summaries += 1
            samples, updates, _, metric = tally.now
            elapsed = 1000 * (time.monotonic() - self._began["test"])
            self.on_write_test_summary(int(samples), int(updates), tally.summaries, metric, elapsed)
        tally.reset()

    def begin(self, done: int, total: int | None) -> None:
        """Begin a session after ``done`` samples of ``total`` (None means no end)."""

    def end(self) -> None:
        """Do what is needed at the end of the session, which may have failed."""

    def on_write_training_update(
        self, samples: Span, updates: Span, aggregate_loss: Span, aggregate_metric: Span | None
    ) -> None:
        """Report an update of the training."""

    def on_write_test_update(self, samples: Span, updates: Span, aggregate_metric: Span) -> None:
        """Report an update of a test."""

    def on_write_training_summary(
        self,
        samples: int,
        updates: int,
        summaries: int,
        aggregate_loss: float,
        aggregate_metric: float | None,
        elapsed_milliseconds: float,
    ) -> None:
        """Report a summary of the training; ``summaries`` counts the summaries from 1."""

    def on_write_test_summary(
        self, samples: int, updates: int, summaries: int, aggregate_metric: float, elapsed_milliseconds: float
    ) -> None:
        """Report a summary of a test."""

    def get_state(self) -> dict[str, Any]:
        """Return the sums, for a checkpoint."""
        return {
            name: {
                "now": list(tally.now),
                "reported": list(tally.reported),
                "summaries": tally.summaries,
                "has_metric": tally.has_metric,
                "seconds": time.monotonic() - self._began[name],
            }
            for name, tally in (("training", self._training), ("test", self._test))
        }

    def restore_state(self, state: Mapping[str, Any]) -> None:
        """Continue with the sums of a checkpoint."""
        for name, tally in (("training", self._training), ("test", self._test)):
            saved = state[name]
            tally.now, tally.reported = list(saved["now"]), list(saved["reported"])
            tally.summaries, tally.has_metric = int(saved["summaries"]), bool(saved["has_metric"])
            self._began[name] = time.monotonic() - saved["seconds"]
