"""Progress as curves: in a file, across restarts, or as event files of TensorBoard."""

from __future__ import annotations

import os
from typing import Any

from paddlelike.errors import ExtraMissingError
from paddlelike.io.training_log import TrainingLog
from paddlelike.training.progress.writer import ProgressWriter, Span


class LossLog(ProgressWriter):
    """Writes losses and metrics into a :class:`~paddlelike.io.TrainingLog`; a step is a minibatch.

    Training that continues from a checkpoint repeats the steps after it. The curves then have the values of
    the later run, as if training had not been interrupted.

    Parameters
    ----------
    log
        The log, or the path of its file.
    freq
        The number of minibatches between two points, which are averages.

    >>> import os, tempfile
    >>> from paddlelike import training
    >>> callbacks = [training.LossLog(os.path.join(tempfile.mkdtemp(), "losses.jsonl"))]
    """

    def __init__(self, log: TrainingLog | str | os.PathLike[str], freq: int = 1) -> None:
        super().__init__(freq=freq)
        self.log = log if isinstance(log, TrainingLog) else TrainingLog(log)

    def on_write_training_update(
        self, samples: Span, updates: Span, aggregate_loss: Span, aggregate_metric: Span | None
    ) -> None:
        count = samples[1] - samples[0]
        values = {"loss": (aggregate_loss[1] - aggregate_loss[0]) / count}
        if aggregate_metric is not None:
            values["metric"] = (aggregate_metric[1] - aggregate_metric[0]) / count
        self.log.write(self.position, **values)

    def on_write_test_summary(
        self, samples: int, updates: int, summaries: int, aggregate_metric: float, elapsed_milliseconds: float
    ) -> None:
        self.log.write(self.position, test=aggregate_metric / samples)


class TensorBoardWriter(ProgressWriter):
    """Writes losses and metrics into a directory that ``tensorboard --logdir`` shows; a step is a minibatch.

    The scalars are ``training/loss``, ``training/metric`` and ``test/metric``.

    Parameters
    ----------
    directory
        The directory of the event files; each session adds one.
    freq
        The number of minibatches between two points, which are averages.

    See Also
    --------
    fluid.training.ProgressPrinter, fluid.training.LossLog

    Raises
    ------
    ExtraMissingError
        The extra ``tensorboard`` is not installed.

    >>> import tempfile
    >>> from importlib.util import find_spec
    >>> if find_spec("tensorboardX"):
    ...     writer = TensorBoardWriter(tempfile.mkdtemp())
    """

    def __init__(self, directory: str | os.PathLike[str], freq: int = 1) -> None:
        super().__init__(freq=freq)
        try:
            import tensorboardX  # an extra
        except ImportError as error:
            raise ExtraMissingError(
                "TensorBoardWriter needs the package tensorboardX",
                extra="tensorboard",
            ) from error
        self._open, self._directory = tensorboardX.SummaryWriter, os.fspath(directory)
        self._file: Any = None

    def end(self) -> None:
        """Write the remaining values, and close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def on_write_training_update(
        self, samples: Span, updates: Span, aggregate_loss: Span, aggregate_metric: Span | None
    ) -> None:
        count = samples[1] - samples[0]
        self._write("training/loss", (aggregate_loss[1] - aggregate_loss[0]) / count)
        if aggregate_metric is not None:
            self._write("training/metric", (aggregate_metric[1] - aggregate_metric[0]) / count)

    def on_write_test_summary(
        self, samples: int, updates: int, summaries: int, aggregate_metric: float, elapsed_milliseconds: float
    ) -> None:
        self._write("test/metric", aggregate_metric / samples)

    def _write(self, name: str, value: float) -> None:
        if self._file is None:
            self._file = self._open(self._directory)
        self._file.add_scalar(name, value, self.position)
