"""Training in one call: a trainer and its session, made from a criterion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Variable
from paddlelike.training.configs import CheckpointConfig, CrossValidationConfig, TestConfig
from paddlelike.training.feeding import Feeding
from paddlelike.training.progress.writer import ProgressWriter, Span
from paddlelike.training.session import TrainingSession
from paddlelike.training.trainer import Learner, Trainer

if TYPE_CHECKING:
    from paddlelike.training.configs import FrequencyLike
    from paddlelike.training.feeding import SourceLike


class TrainingSummary(dict[str, list[dict[str, Any]]]):
    """The losses and metrics of a training: "updates" by minibatch, and "epoch_summaries" by epoch.

    >>> import paddlelike as fluid
    >>> from paddlelike import training
    >>> training.TrainingSummary(updates=[], epoch_summaries=[])
    {'updates': [], 'epoch_summaries': []}
    """


class _Collector(ProgressWriter):
    """Collects the losses and metrics of a training summary."""

    def __init__(self) -> None:
        super().__init__(freq=1)
        self.summary = TrainingSummary(updates=[], epoch_summaries=[])

    def on_write_training_update(
        self, samples: Span, updates: Span, aggregate_loss: Span, aggregate_metric: Span | None
    ) -> None:
        count = samples[1] - samples[0]
        metric = None if aggregate_metric is None else aggregate_metric[1] - aggregate_metric[0]
        self._add("updates", count, aggregate_loss[1] - aggregate_loss[0], metric)

    def on_write_training_summary(
        self,
        samples: int,
        updates: int,
        summaries: int,
        aggregate_loss: float,
        aggregate_metric: float | None,
        elapsed_milliseconds: float,
    ) -> None:
        self._add("epoch_summaries", samples, aggregate_loss, aggregate_metric)

    def _add(self, name: str, samples: int, loss: float, metric: float | None) -> None:
        values = {"loss": loss / samples} | ({} if metric is None else {"metric": metric / samples})
        self.summary[name].append({**values, "samples": samples})


def train(
    criterion: Variable | Sequence[Variable],
    minibatch_source: SourceLike,
    minibatch_size: int = 32,
    model_inputs_to_streams: Mapping[Any, str] | None = None,
    parameter_learners: Learner | Sequence[Learner] | None = None,
    callbacks: Sequence[Any] = (),
    progress_frequency: FrequencyLike = None,
    max_epochs: int | None = None,
    epoch_size: int | None = None,
    max_samples: int | None = None,
) -> TrainingSummary:
    """Train a criterion, and return the losses: CNTK's ``criterion.train(...)``.

    Parameters
    ----------
    criterion
        The loss, or a pair of loss and metric.
    minibatch_source
        The same as in :func:`training_session`; arrays are read for one epoch by default.
    minibatch_size
        The samples of a minibatch.
    model_inputs_to_streams
        The stream of each data variable; None if the streams have the names of the variables.
    parameter_learners
        The optimizer that updates the parameters.
    callbacks
        Progress writers, and a :class:`CheckpointConfig`, :class:`CrossValidationConfig` and
        :class:`TestConfig`, at most one of each.
    progress_frequency
        The samples, or a count and its unit, between two summaries of the progress writers; None for every
        epoch.
    max_epochs, epoch_size
        The number of epochs, and the samples of one; by default one epoch, which is a sweep over the data. A
        source that repeats for ever needs one of them, or ``max_samples``.
    max_samples
        The number of samples after which the training ends, instead of ``max_epochs``.

    Returns
    -------
    TrainingSummary
        ``updates`` has a row for each minibatch, ``epoch_summaries`` one for each epoch: losses, metrics and
        numbers of samples.

    Raises
    ------
    TypeError
        A callback is not one of these.
    ValueError
        Both ``max_samples`` and ``max_epochs`` are given, or the size of an epoch is not known.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> from paddlelike import training
    >>> x = fluid.data("x", [None, 4])
    >>> loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(x, 1)))
    >>> data = np.ones((64, 4), "float32")
    >>> found = training.train(loss, (data,), 16, parameter_learners=fluid.optimizer.SGD(0.1))
    >>> len(found["updates"]), found["updates"][-1]["loss"] < found["updates"][0]["loss"]
    (4, True)
    """
    configs: dict[type, Any] = {}
    writers = []
    for one in callbacks:
        if isinstance(one, ProgressWriter):
            writers.append(one)
        elif type(one) in (CheckpointConfig, CrossValidationConfig, TestConfig) and type(one) not in configs:
            configs[type(one)] = one
        else:
            raise TypeError(
                f"train: callbacks are progress writers, and at most one CheckpointConfig, "
                f"CrossValidationConfig and TestConfig; got {one!r}"
            )
    if model_inputs_to_streams is not None and not isinstance(model_inputs_to_streams, Mapping):
        raise TypeError(
            f"train: model_inputs_to_streams is a dict of data variables and streams, got "
            f"{model_inputs_to_streams!r}\n  hint: train(loss, data, parameter_learners=optimizer)"
        )
    if parameter_learners is None and not _is_trained(criterion):
        warn_user(
            "train: without parameter_learners=optimizer nothing is learned; only the losses are computed"
        )
    collector = _Collector()
    trainer = Trainer(None, criterion, parameter_learners, [*writers, collector])
    source = Feeding(trainer, minibatch_source, 1).source
    if max_samples is None and max_epochs is None:
        if source is minibatch_source and epoch_size is None and _is_endless(source):
            raise ValueError(
                "train: epoch_size must be specified, unless max_samples is given or input is given as "
                "arrays: the source repeats for ever\n  hint: epoch_size=source.samples_in_sweep, or a "
                "source with max_samples=training.FULL_DATA_SWEEP"
            )
        if source is not minibatch_source or epoch_size is not None:
            max_epochs = 1
    epoch_size = getattr(source, "samples_in_sweep", None) if epoch_size is None else epoch_size
    if max_epochs is not None:
        if max_samples is not None or epoch_size is None:
            raise ValueError(
                "train: max_epochs excludes max_samples, and needs epoch_size for a source of unknown size"
            )
        max_samples = max_epochs * epoch_size
    TrainingSession(
        trainer,
        minibatch_source,
        minibatch_size,
        model_inputs_to_streams,
        max_samples=max_samples,
        progress_frequency=epoch_size if progress_frequency is None else progress_frequency,
        checkpoint_config=configs.get(CheckpointConfig),
        cv_config=configs.get(CrossValidationConfig),
        test_config=configs.get(TestConfig),
    ).train()
    return collector.summary


def _is_endless(source: object) -> bool:
    """Return whether a source declares that it repeats forever."""
    is_infinite = getattr(source, "is_infinite", None)
    return callable(is_infinite) and bool(is_infinite())


def _is_trained(criterion: Variable | Sequence[Variable]) -> bool:
    """Return whether the program of a criterion already updates its parameters."""
    first = criterion if isinstance(criterion, Variable) else next(iter(criterion), None)
    ops = [] if first is None else first.block.program.global_block().ops
    return any("ParamOut" in op.outputs or op.type in ("send", "listen_and_serv") for op in ops)
