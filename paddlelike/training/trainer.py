"""The trainer: a network with its optimizer, trained by minibatches, saved and restored as a whole."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from paddlelike.core import Array, LoDTensor, numpy_dtype
from paddlelike.errors import FeedError, GraphError
from paddlelike.executor.run import Executor
from paddlelike.framework import Program, Variable, default_startup_program, program_guard
from paddlelike.io.checkpoints.numbered import NumberedCheckpoints
from paddlelike.layers import mean
from paddlelike.optimizer.base import Optimizer
from paddlelike.storage.options import SaveKeywords
from paddlelike.training import snapshot, startup
from paddlelike.training.learner import DistributedLearner, Workers, find_workers
from paddlelike.training.network import describe_network
from paddlelike.training.progress.writer import ProgressWriter
from paddlelike.training.sources.base import Minibatch, count_samples

if TYPE_CHECKING:
    from paddlelike.io.asynchronous import PendingSave
    from paddlelike.io.report import SaveReport

Learner = Optimizer | DistributedLearner


class Trainer:
    """Trains a network, and saves and restores the complete training state.

    Creating it appends the optimizer's operators and runs the initializers of variables without a value.

    Parameters
    ----------
    model
        The output variable, or a list of them; None to train only a criterion.
    criterion
        The loss, or a pair of loss and metric. A variable with more than one element is averaged.
    parameter_learners
        An optimizer, or a list of one; None if the program already has its update operators. With
        :func:`data_parallel_distributed_learner` all processes of a job train together.
    progress_writers
        Writers that report the progress, such as a :class:`ProgressPrinter`.
    program, startup_program
        The program to run in training, for example a transpiler's program for trainers, and the program of
        the initializers; None for the program of the loss and the default startup program.
    executor
        The executor; None for one on the CPU.

    Raises
    ------
    GraphError
        The criterion is not a variable, or several optimizers were given.

    >>> import paddlelike as fluid
    >>> x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 1])
    >>> loss = fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y)
    >>> trainer = Trainer(None, loss, fluid.optimizer.SGD(0.1))
    >>> batch = {x: np.ones((4, 2), "float32"), y: np.ones((4, 1), "float32")}
    >>> before = trainer.test_minibatch(batch)
    >>> trainer.train_minibatch(batch), trainer.test_minibatch(batch) < before
    (True, True)
    >>> trainer.total_number_of_samples_seen
    4
    """

    def __init__(
        self,
        model: Variable | Sequence[Variable] | None,
        criterion: Variable | Sequence[Variable | None],
        parameter_learners: Learner | Sequence[Learner] | None = None,
        progress_writers: ProgressWriter | Sequence[ProgressWriter] | None = None,
        *,
        program: Program | None = None,
        startup_program: Program | None = None,
        executor: Executor | None = None,
    ) -> None:
        given = [one for one in _as_list(criterion) if one is not None]  # CNTK takes (loss, None), too
        if not 1 <= len(given) <= 2 or not all(isinstance(one, Variable) for one in given):
            raise GraphError(f"Trainer: criterion is a loss, or a pair of loss and metric; got {criterion!r}")
        self.model = model
        startup_program = default_startup_program() if startup_program is None else startup_program
        with program_guard(given[0].block.program, startup_program):
            given = [one if tuple(one.shape) in ((), (1,)) else mean(one) for one in given]
        self.loss_function, self.evaluation_function = given[0], given[1] if len(given) == 2 else None
        network = given[0].block.program
        self.program = network if program is None else program
        self._test_program = network.clone(for_test=True)._prune(given)
        self.parameter_learners = _as_list(parameter_learners)
        if len(self.parameter_learners) > 1:
            raise GraphError(
                f"Trainer takes one optimizer, got {len(self.parameter_learners)}",
                hint="parameters learn at rates of their own by ParamAttr(learning_rate=...)",
            )
        for learner in self.parameter_learners:
            learner.minimize(self.loss_function, startup_program)
        self.network = describe_network(network, self.loss_function.name)
        self.progress_writers: list[ProgressWriter] = _as_list(progress_writers)
        self.executor = Executor() if executor is None else executor
        self._startup, self.is_server = startup_program, False
        self._distribute(network)
        if not self.is_server:
            startup.initialize(self.executor, self._startup, self.program)
        self._workers: Workers | None = None
        self.total_number_of_samples_seen = 0
        self.total_number_of_minibatches_seen = 0
        self.total_number_of_sweeps_seen = 0
        self.previous_minibatch_sample_count = 0
        self.previous_minibatch_loss_average = 0.0
        self.previous_minibatch_evaluation_average = 0.0
        needed = {v.name for v in self._test_program.list_vars()}
        self._data = {v.name: v for v in network.list_vars() if v.is_data and v.name in needed}

    @property
    def data_variables(self) -> list[Variable]:
        """The data variables that the criterion needs, in the order of their creation."""
        return list(self._data.values())

    @property
    def data_names(self) -> list[str]:
        """The names of the data variables."""
        return list(self._data)

    @property
    def workers(self) -> Workers:
        """The processes that train together."""
        if self._workers is None:
            self._workers = find_workers(self.program, self.executor)
        return self._workers

    def train_minibatch(
        self,
        arguments: Mapping[Any, Any] | Sequence[Any],
        outputs: Sequence[Variable] | None = None,
        *,
        is_sweep_end: bool | None = None,
    ) -> bool | tuple[bool, dict[Variable, Array]]:
        """Train with one minibatch.

        Parameters
        ----------
        arguments
            Arrays or LoDTensors by data variable or its name, a minibatch of a source, or a sequence in the
            order of the data variables.
        outputs
            Variables whose values are also returned.
        is_sweep_end
            Whether a sweep over the data ends; None to take it from the minibatch.

        Returns
        -------
        Whether the network was trained; False for an empty minibatch, at the end of the data. With
        ``outputs`` also their values by variable.

        Raises
        ------
        FeedError
            A variable is not fed, or a value does not fit it.
        """
        if self.is_server:
            raise GraphError(
                "Trainer.train_minibatch: this process is a parameter server of the job",
                hint="if trainer.is_server: trainer.serve(), or let a training session do it",
            )
        wanted = list(outputs or ())
        feed, samples = self._make_feed(arguments)
        if not feed:
            self.previous_minibatch_sample_count = 0
            return (False, {}) if outputs is not None else False
        fetches = [v for v in (self.loss_function, self.evaluation_function, *wanted) if v is not None]
        values = self.executor.run(self.program, feed=feed, fetch_list=fetches)
        self._record(arguments, samples, values, is_sweep_end)
        if outputs is None:
            return True
        return True, dict(zip(wanted, values[len(fetches) - len(wanted) :], strict=True))

    def test_minibatch(self, arguments: Mapping[Any, Any] | Sequence[Any]) -> float:
        """Return the average metric of one minibatch, or its loss if no metric is set.

        The network is in test mode. Raises the errors of :meth:`train_minibatch`.
        """
        feed, samples = self._make_feed(arguments)
        if not feed:
            return 0.0
        wanted = self.loss_function if self.evaluation_function is None else self.evaluation_function
        (value,) = self.executor.run(self._test_program, feed=feed, fetch_list=[wanted.name])
        average = float(np.mean(value))
        for writer in self.progress_writers:
            writer.update_test(samples, average)
        return average

    def save_checkpoint(
        self, filename: str | os.PathLike[str], external_state: object = None, **options: Unpack[SaveKeywords]
    ) -> SaveReport | PendingSave | None:
        """Save the training as the directory ``filename``; an earlier one is replaced as a whole, or stays.

        It holds every persistable variable, as ``fluid.io.save_persistables`` writes them; the states of the
        random generators; the numbers of samples, minibatches and sweeps; and ``external_state``. In
        distributed training every process calls this; the first process writes, including all external
        states.

        Parameters
        ----------
        external_state
            None, a boolean, a number, a text, an array, or a list or dict of such, for example the state of a
            source. The default is ``{}``, as in CNTK.
        options
            The fields of :class:`~paddlelike.storage.options.SaveOptions`.

        Returns
        -------
        The report of the save; None in all processes but the first.

        Raises
        ------
        TypeError
            ``external_state`` holds an object of another type; nothing was written.
        SaveError
            The checkpoint could not be saved; the earlier one is unchanged.
        """
        checkpoints = NumberedCheckpoints(filename, **options)
        return snapshot.save(self, checkpoints, {} if external_state is None else external_state)

    def restore_from_checkpoint(self, filename: str | os.PathLike[str]) -> Any:
        """Restore the training from ``filename`` and return the external state of this process.

        The learning rate, too, comes from the checkpoint. A process that is not in the checkpoint gets the
        external state of the first process.

        Raises
        ------
        LoadError
            The checkpoint belongs to another network or optimizer, or is damaged; nothing has changed.
        MissingFileError
            There is no such checkpoint.
        """
        return snapshot.restore(self, NumberedCheckpoints(filename))

    def summarize_training_progress(self) -> None:
        """Let the writers summarize the training since the last summary."""
        for writer in self.progress_writers:
            writer.summarize_training()

    def summarize_test_progress(self) -> None:
        """Let the writers summarize the tests since the last summary."""
        for writer in self.progress_writers:
            writer.summarize_test()

    def serve(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Serve parameters until all trainers have finished, in a process that is a server of the job.

        Parameters
        ----------
        filename
            The checkpoint of the training, if there is one; the newest is restored, as in a session.

        Raises
        ------
        GraphError
            This process is not a server.
        """
        if not self.is_server:
            raise GraphError("Trainer.serve: this process is a trainer, not a parameter server")
        self.executor.run(self._startup)
        if filename is not None:
            NumberedCheckpoints(filename).restore_newest(self.executor, self.program)
        self.executor.run(self.program)

    def close(self) -> None:
        """Report to the servers, in distributed training, that this trainer has finished."""
        self.executor.close()

    def _distribute(self, network: Program) -> None:
        """Take this process's share of the network, if a learner distributes it."""
        for learner in self.parameter_learners:
            if isinstance(learner, DistributedLearner):
                share = learner.distribute(network, self._startup)
                if share is not None:
                    self.program, self._startup, self.is_server = share

    def _record(
        self, arguments: object, samples: int, values: Sequence[Any], is_sweep_end: bool | None
    ) -> None:
        if is_sweep_end is None:
            is_sweep_end = getattr(arguments, "end_of_sweep", False)
        total = getattr(arguments, "total_samples", samples * self.workers.size)
        self.previous_minibatch_sample_count = samples
        self.previous_minibatch_loss_average = float(np.mean(values[0]))
        metric = None if self.evaluation_function is None else float(np.mean(values[1]))
        self.previous_minibatch_evaluation_average = 0.0 if metric is None else metric
        self.total_number_of_samples_seen += total
        self.total_number_of_minibatches_seen += 1
        self.total_number_of_sweeps_seen += bool(is_sweep_end)
        for writer in self.progress_writers:
            writer.position = self.total_number_of_minibatches_seen
            writer.update_training(samples, self.previous_minibatch_loss_average, metric)

    def _make_feed(self, arguments: Mapping[Any, Any] | Sequence[Any]) -> tuple[dict[str, Any], int]:
        """Return the feed for a minibatch, and the number of its samples."""
        if not isinstance(arguments, Mapping):
            values = [arguments] if isinstance(arguments, np.ndarray | LoDTensor) else list(arguments)
            if values and len(values) != len(self._data):
                raise FeedError(
                    f"the minibatch has {len(values)} arrays, expected {len(self._data)}: "
                    f"{', '.join(self._data)}"
                )
            arguments = dict(zip(self._data, values, strict=bool(values)))
        named = {getattr(key, "name", key): value for key, value in arguments.items()}
        if not named:
            return {}, 0
        missing = [name for name in self._data if name not in named]
        if missing:
            raise FeedError(
                f"the minibatch has no value for {', '.join(missing)}; it has {', '.join(map(str, named))}",
                hint="map variables to streams: model_inputs_to_streams={x: source.streams.x}, or input_map=",
            )
        feed = {n: _fit(self._data[n], value) if n in self._data else value for n, value in named.items()}
        if isinstance(arguments, Minibatch):
            return feed, arguments.num_samples
        return feed, count_samples(feed[next(iter(self._data))])


def _as_list(given: object) -> list[Any]:
    if given is None:
        return []
    given = getattr(given, "outputs", given)  # of a Function
    return list(given) if isinstance(given, list | tuple) else [given]


def _fit(variable: Variable, value: Any) -> Any:
    """Return a value in the dtype of its variable. If that has no LoD, a LoD of single rows is removed."""
    wanted = numpy_dtype(variable.dtype)
    if isinstance(value, LoDTensor):
        lengths = value.recursive_sequence_lengths()
        if variable.lod_level or value.held_array is None or len(lengths) != 1 or set(lengths[0]) != {1}:
            return value
        value = value.held_array
    if isinstance(value, list | tuple):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray) or value.dtype == wanted:
        return value
    lossless = value.dtype.kind == wanted.kind or (value.dtype.kind in "biu" and wanted.kind in "if")
    return value.astype(wanted) if lossless else value
