"""The training session: the loop around a trainer, with its checkpoints, cross validations and reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from paddlelike.foundation.docstrings import complete_docstring, read_entries
from paddlelike.io.asynchronous import wait_for_pending
from paddlelike.io.checkpoints.checkpoint import decode_state, encode_state
from paddlelike.lazy import dataclass
from paddlelike.training import snapshot
from paddlelike.training.configs import (
    AT_THE_END,
    CheckpointConfig,
    CrossValidationConfig,
    DataUnit,
    Frequency,
    TestConfig,
    read_frequency,
)
from paddlelike.training.feeding import Feeding
from paddlelike.training.learner import exchange_values
from paddlelike.training.sources.generator import ReplayedSource
from paddlelike.training.trainer import Trainer

if TYPE_CHECKING:
    from paddlelike.training.configs import FrequencyLike
    from paddlelike.training.feeding import SourceLike

SOURCE_STATE = "TrainingMinibatchSource"  # CNTK's key of the source's state


@dataclass
class Action:
    """An action that runs after the minibatch that reaches a multiple of its frequency."""

    frequency: Frequency
    do: Callable[[int], bool]  # of the index, counted from 0; returns whether to go on
    index: int = 0
    last: int = 0  # the count at which it was done last

    def continue_at(self, count: int) -> None:
        """Start at a position where ``count`` units were already seen."""
        self.last = count
        self.index = count // self.frequency.every if self.frequency.every else 0

    def reach(self, count: int) -> bool:
        """Run the action if ``count`` has passed the next multiple; return whether to continue training."""
        if not self.frequency.every or count // self.frequency.every == self.index:
            return True
        goes_on = self.do(self.index)
        self.index, self.last = count // self.frequency.every, count
        return goes_on

    def end(self, count: int) -> None:
        """Run the action for the partial period at the end of the training."""
        if self.frequency.every and count % self.frequency.every and count != self.last:
            self.do(self.index)
            self.last = count


class TrainingSession:
    """Trains a network from a source up to a number of samples; see :func:`training_session`.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> from paddlelike import training
    >>> x = fluid.data("x", [None, 4])
    >>> loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(x, 1)))
    >>> trainer = training.Trainer(None, loss, fluid.optimizer.SGD(0.1))
    >>> source = training.MinibatchSourceFromData({"x": np.ones((8, 4), "float32")}, max_samples=32)
    >>> training.TrainingSession(trainer, source, 8).train()
    >>> trainer.total_number_of_samples_seen
    32
    """

    def __init__(
        self,
        trainer: Trainer,
        mb_source: SourceLike,
        mb_size: int | Callable[[int], int],
        model_inputs_to_streams: Mapping[Any, str] | None = None,
        *,
        max_samples: int | None = None,
        progress_frequency: FrequencyLike = None,
        checkpoint_config: CheckpointConfig | None = None,
        cv_config: CrossValidationConfig | None = None,
        test_config: TestConfig | None = None,
    ) -> None:
        self.trainer = trainer
        self._inputs = model_inputs_to_streams
        self._data = Feeding(trainer, mb_source, mb_size, model_inputs_to_streams)
        self._max_samples = AT_THE_END if max_samples is None else int(max_samples)
        self._cv = cv_config
        self._cv_data = None if cv_config is None else self._make_feeding(cv_config)
        self._test_data = None if test_config is None else self._make_feeding(test_config)
        config = CheckpointConfig(None) if checkpoint_config is None else checkpoint_config
        self._config, self.checkpoints = config, config.open()
        self._cv_average: float | None = None  # of the last cross validation
        self._sum, self._samples = 0.0, 0  # of the metric since the last checkpoint
        progress = read_frequency(progress_frequency, "training_session: progress_frequency")
        self._actions = [
            Action(progress, self._summarize),
            Action(Frequency(0) if cv_config is None else cv_config.frequency, self._validate),
            Action(config.frequency, self._save),  # the last: a checkpoint holds what the others did
        ]

    def train(self) -> None:
        """Train until the data or samples end, from the newest checkpoint if the configuration says so.

        It may be interrupted at any time: called again in a new process, it gives the same bits as without
        the interruption. In distributed training every process calls this, servers too.

        Raises
        ------
        LoadError
            The newest checkpoint belongs to another network or optimizer.
        SourceError
            The data do not fit the network, or differ from the data of the checkpoint.
        SaveError
            A checkpoint could not be saved.
        """
        trainer = self.trainer
        if trainer.is_server:
            trainer.serve(self._config.filename if self._config.restore else None)
            return
        self._restore()
        restored = trainer.total_number_of_samples_seen
        for writer in trainer.progress_writers:
            writer.begin(restored, None if self._max_samples == AT_THE_END else self._max_samples)
        try:
            while self._train_minibatch():
                if not self._act():
                    break
            if trainer.total_number_of_samples_seen != restored:
                for action in self._actions:
                    action.end(self._count(action))
            self._save_last()
            if self._test_data is not None:
                self._evaluate(self._test_data, AT_THE_END)
        finally:
            for writer in trainer.progress_writers:
                writer.end()

    def _train_minibatch(self) -> bool:
        """Train with the next minibatch; return False if there is none."""
        trainer = self.trainer
        left = self._max_samples - trainer.total_number_of_samples_seen
        minibatch = self._data.read(trainer.total_number_of_samples_seen, left)
        if not trainer.train_minibatch(minibatch):
            return False
        metric = trainer.previous_minibatch_evaluation_average
        if trainer.evaluation_function is None:
            metric = trainer.previous_minibatch_loss_average
        self._sum += metric * minibatch.num_samples
        self._samples += minibatch.num_samples
        return True

    def _act(self) -> bool:
        """Run the actions due after a minibatch; return whether to continue training."""
        goes_on = [action.reach(self._count(action)) for action in self._actions]  # all of them
        return all(goes_on)

    def _count(self, action: Action) -> int:
        trainer, unit = self.trainer, action.frequency.unit
        if unit == DataUnit.sample:
            return trainer.total_number_of_samples_seen
        if unit == DataUnit.minibatch:
            return trainer.total_number_of_minibatches_seen
        return trainer.total_number_of_sweeps_seen

    def _make_feeding(self, config: CrossValidationConfig | TestConfig) -> Feeding | None:
        if config.minibatch_source is None:
            return None
        inputs = config.model_inputs_to_streams
        inputs = self._inputs if inputs is None else inputs
        return Feeding(self.trainer, config.minibatch_source, config.minibatch_size, inputs, repeats=False)

    # What is done now and then; each returns whether to go on

    def _summarize(self, index: int) -> bool:
        self.trainer.summarize_training_progress()
        return True

    def _validate(self, index: int) -> bool:
        assert self._cv is not None
        average, samples, minibatches = 0.0, 0, 0
        if self._cv_data is not None:
            average, samples, minibatches = self._evaluate(self._cv_data, self._cv.max_samples)
            self._cv_average = average
        callback = self._cv.callback
        return callback is None or callback(index, average, samples, minibatches) is not False

    def _evaluate(self, data: Feeding, max_samples: int) -> tuple[float, int, int]:
        """Test the network; return the average metric and the numbers of samples and minibatches."""
        trainer = self.trainer
        position = data.source.get_checkpoint_state()
        total, samples, minibatches = 0.0, 0, 0
        while minibatch := data.read(samples, max_samples - samples):
            total += trainer.test_minibatch(minibatch) * minibatch.num_samples
            samples += minibatch.num_samples
            minibatches += 1
        data.source.restore_from_checkpoint(position)
        trainer.summarize_test_progress()
        sums = exchange_values(trainer.workers, [total, samples])
        total, samples = sum(one[0] for one in sums), sum(one[1] for one in sums)
        return (total / samples if samples else 0.0), samples, minibatches

    def _save(self, index: int) -> bool:
        numbered = self._config.preserve_all or self._config.keep_best
        if numbered:
            self._write(index)
        if not self._config.preserve_all:
            self._write(None)
        self._sum, self._samples = 0.0, 0
        return True

    def _save_last(self) -> None:
        """Save the checkpoint without a number, unless it already holds this state."""
        if self.checkpoints is None or not self._config.frequency.every:
            return
        seen = self.trainer.total_number_of_samples_seen
        is_saved = any(
            one.path == self.checkpoints.path and one.step == seen for one in self.checkpoints.list()
        )
        if not all(exchange_values(self.trainer.workers, is_saved)):
            self._write(None)
        wait_for_pending()

    # Checkpoints

    def _write(self, index: int | None) -> None:
        assert self.checkpoints is not None
        average = self._sum / self._samples if self._samples else None
        snapshot.save(
            self.trainer,
            self.checkpoints,
            {SOURCE_STATE: self._data.source.get_checkpoint_state()},
            index=index,
            metric=average if self._cv_average is None else self._cv_average,
            session={
                "cross validation": self._cv_average,
                "writers": [writer.get_state() for writer in self.trainer.progress_writers],
            },
        )

    def _restore(self) -> None:
        trainer = self.trainer
        if self.checkpoints is not None and self._config.restore:
            found = snapshot.restore_newest(trainer, self.checkpoints)
            if found is not None:
                external, session = found
                if isinstance(external, dict) and SOURCE_STATE in external:
                    self._data.source.restore_from_checkpoint(external[SOURCE_STATE])
                self._cv_average = session.get("cross validation")
                saved = session.get("writers", [])
                if len(saved) == len(trainer.progress_writers):
                    for writer, state in zip(trainer.progress_writers, saved, strict=True):
                        writer.restore_state(state)
        if trainer.workers.size > 1 and not trainer.total_number_of_minibatches_seen:
            self._begin_alike()
        for action in self._actions:
            action.continue_at(self._count(action))

    def _begin_alike(self) -> None:
        """Make the readers of all processes begin with the random numbers of the first process."""
        source = self._data.source
        states = exchange_values(self.trainer.workers, encode_state(source.get_checkpoint_state()))
        if isinstance(source, ReplayedSource):
            source.restore_from_checkpoint(decode_state(states[0]))


def training_session(
    trainer: Trainer,
    mb_source: SourceLike,
    mb_size: int | Callable[[int], int],
    model_inputs_to_streams: Mapping[Any, str] | None = None,
    progress_frequency: FrequencyLike = None,
    max_samples: int | None = None,
    checkpoint_config: CheckpointConfig | None = None,
    cv_config: CrossValidationConfig | None = None,
    test_config: TestConfig | None = None,
) -> TrainingSession:
    """Return a training session, which :meth:`TrainingSession.train` carries out.

    Parameters
    ----------
    trainer
        The trainer that the session runs.
    mb_source
        A minibatch source; or a tuple of arrays or a reader of samples, in the order of the data variables,
        or a loader. Arrays, readers and loaders are read again and again.
    mb_size
        The samples of a minibatch, of all processes together; or a function of the samples seen.
    model_inputs_to_streams
        The stream of each data variable; None if the streams have the names of the variables.
    progress_frequency
        The distance between two summaries of the progress writers: samples, or (count, DataUnit).
    max_samples
        The number of samples, counted from the first start, after which the training ends; None for the end
        of the data.
    checkpoint_config, cv_config, test_config
        Settings of the checkpoints, the cross validations and the final test; None for none.

    Returns
    -------
    TrainingSession
        The session, which has not begun.

    >>> import tempfile
    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 1])
    >>> loss = fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y)
    >>> trainer = Trainer(None, loss, fluid.optimizer.Adam(0.1))
    >>> data = np.ones((12, 2), "float32"), np.ones((12, 1), "float32")
    >>> path = tempfile.mkdtemp() + "/model"
    >>> training_session(
    ...     trainer, data, 4, max_samples=24, checkpoint_config=CheckpointConfig(path, frequency=8)
    ... ).train()
    >>> trainer.total_number_of_samples_seen, trainer.total_number_of_sweeps_seen
    (24, 2)
    """
    return TrainingSession(
        trainer,
        mb_source,
        mb_size,
        model_inputs_to_streams,
        max_samples=max_samples,
        progress_frequency=progress_frequency,
        checkpoint_config=checkpoint_config,
        cv_config=cv_config,
        test_config=test_config,
    )


complete_docstring(TrainingSession, read_entries(training_session))
