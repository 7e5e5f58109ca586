"""The state of a training besides its variables, saved and restored with them.

The entry "training" of a checkpoint's state (see ``io.checkpoints``) has ``counts`` (samples, minibatches,
sweeps), ``network`` (see ``training.network``), ``session``, and ``workers``, which holds the external state
and the random generators of each process.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from paddlelike.core import Generator, global_scope
from paddlelike.errors import FormatError, SaveError
from paddlelike.executor.run import Executor
from paddlelike.framework import Program
from paddlelike.io.checkpoints.checkpoint import ARRAY_KEY, Checkpoint, decode_state, encode_state
from paddlelike.io.checkpoints.numbered import NumberedCheckpoints
from paddlelike.training.learner import Workers, exchange_values
from paddlelike.training.network import check_network
from paddlelike.training.progress.writer import ProgressWriter
from paddlelike.training.random_streams import capture_random_state, check_random_state, restore_random_state

if TYPE_CHECKING:
    from paddlelike.io.asynchronous import PendingSave
    from paddlelike.io.report import SaveReport

_HINTS = {"tuple": "use list(...)", "bytes": "use .decode(), or numpy.frombuffer(..., 'uint8')"}
_COUNTS = ("total_number_of_samples_seen", "total_number_of_minibatches_seen", "total_number_of_sweeps_seen")


class Trained(Protocol):
    """The parts of a trainer that a snapshot saves."""

    program: Program
    network: dict[str, Any]
    executor: Executor
    progress_writers: list[ProgressWriter]
    total_number_of_samples_seen: int
    total_number_of_minibatches_seen: int

    @property
    def workers(self) -> Workers:
        """The processes that train together."""


def save(
    trainer: Trained,
    checkpoints: NumberedCheckpoints,
    external_state: object,
    *,
    index: int | None = None,
    metric: float | None = None,
    session: Mapping[str, Any] | None = None,
) -> SaveReport | PendingSave | None:
    """Save a checkpoint; every process of the training calls this. See :meth:`Trainer.save_checkpoint`."""
    check_external_state(external_state, "external_state")
    workers = trainer.workers
    own = {
        "external": dict(external_state) if isinstance(external_state, Mapping) else external_state,
        "random": capture_random_state(),
        "generator": global_scope().generator.state,
    }
    states = [decode_state(one) for one in exchange_values(workers, encode_state(own))]
    report, problem = None, None
    if workers.rank == 0:
        state = {
            "training": {
                "counts": {name: getattr(trainer, name) for name in _COUNTS},
                "network": dict(trainer.network),
                "session": dict(session or {}),
                "workers": states,
            }
        }
        try:
            report = checkpoints.save_numbered(
                trainer.executor, trainer.program, trainer.total_number_of_samples_seen, index, metric, state
            )
        except BaseException as error:
            problem = error
    if workers.size > 1:
        (failed, *_) = workers.exchange("" if problem is None else f"{type(problem).__name__}: {problem}")
        if failed and problem is None:
            raise SaveError(
                f"the first process of the training could not save {checkpoints.path}: {failed}",
                hint="the earlier checkpoints are as they were",
            )
    if problem is not None:
        raise problem
    return report


def restore(trainer: Trained, checkpoints: NumberedCheckpoints) -> Any:
    """Restore exactly the checkpoint of that name. See :meth:`Trainer.restore_from_checkpoint`."""
    state = checkpoints.restore_named(trainer.executor, trainer.program, _make_check(trainer))
    return _take(trainer, state)[0]


def restore_newest(trainer: Trained, checkpoints: NumberedCheckpoints) -> tuple[Any, dict[str, Any]] | None:
    """Restore the checkpoint with the most samples; return its external and session states, or None without
    one.
    """
    state = checkpoints.restore_newest(trainer.executor, trainer.program, _make_check(trainer))
    return None if state is None else _take(trainer, state)


class _Position(NamedTuple):
    """The state of one process in a checkpoint, besides the variables."""

    counts: tuple[int, ...]
    external: Any
    session: dict[str, Any]
    random: dict[str, Any]
    generator: int


def _make_check(trainer: Trained) -> Callable[[Checkpoint], None]:
    def check(checkpoint: Checkpoint) -> None:
        training = checkpoint.state.get("training")
        if not isinstance(training, dict):
            raise FormatError(
                f"checkpoint {checkpoint.path} was not saved by a Trainer",
                hint="fluid.io.Checkpoints restores what it saved; load_persistables takes the values alone",
            )
        try:
            position = _read_position(training, trainer.workers.rank)
            check_random_state(position.random)
            Generator(1).state = position.generator
            check_network(training["network"], trainer.network, checkpoint.path)
        except (LookupError, TypeError, ValueError, AttributeError, zlib.error) as error:
            raise FormatError(f"checkpoint {checkpoint.path} has no valid state: {error!r:.200}") from error

    return check


def _read_position(training: Mapping[str, Any], rank: int) -> _Position:
    states = training["workers"]
    own = states[rank if rank < len(states) else 0]
    counts = tuple(int(training["counts"][name]) for name in _COUNTS)
    return _Position(counts, own["external"], dict(training["session"]), own["random"], own["generator"])


def _take(trainer: Trained, state: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    position = _read_position(state["training"], trainer.workers.rank)
    for name, count in zip(_COUNTS, position.counts, strict=True):
        setattr(trainer, name, count)
    for writer in trainer.progress_writers:
        writer.position = trainer.total_number_of_minibatches_seen
    global_scope().generator.state = position.generator
    restore_random_state(position.random)
    return position.external, position.session


def check_external_state(value: object, where: str) -> None:
    """Check that a value can be saved and restored unchanged.

    Raises
    ------
    TypeError
        A part of the value has a type that cannot be saved; the error names its place.
    """
    if value is None or type(value) in (bool, int, float, str):
        return
    if type(value) is list:
        for index, one in enumerate(value):
            check_external_state(one, f"{where}[{index}]")
        return
    if isinstance(value, Mapping):
        for key, one in value.items():
            if type(key) is not str:
                raise TypeError(f"{where} has the key {key!r}; keys must be texts\n  hint: use str(key)")
            if key == ARRAY_KEY:
                raise TypeError(f"{where} has the key {key!r}, which marks arrays\n  hint: use another name")
            check_external_state(one, f"{where}[{key!r}]")
        return
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return
    hint = "use .item()" if isinstance(value, np.generic) else _HINTS.get(type(value).__name__, "convert it")
    raise TypeError(
        f"{where} is a {type(value).__name__}, which is not saved; None, bool, int, float, str, list, dict "
        f"and arrays can\n  hint: {hint}"
    )
