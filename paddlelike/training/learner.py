"""The processes that train one model together, and an optimizer whose updates they share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Protocol

from paddlelike.errors import UnsupportedError
from paddlelike.executor.run import Executor
from paddlelike.framework import Program
from paddlelike.hooks import Hook
from paddlelike.optimizer.base import Optimizer

if TYPE_CHECKING:
    from paddlelike.framework import Operator
    from paddlelike.optimizer.state import ParamGrads


_distribute_training: Final[Hook[..., Any]] = Hook("distribute_training")


class DistributedLearner:
    """An optimizer for all trainers of a job; see :func:`data_parallel_distributed_learner`."""

    def __init__(self, optimizer: Optimizer, *, sync_mode: bool) -> None:
        self.optimizer = optimizer
        self.sync_mode = sync_mode

    def minimize(self, *given: Any) -> tuple[list[Operator], ParamGrads]:
        """Append the optimizer's operators; see :meth:`Optimizer.minimize`."""
        return self.optimizer.minimize(*given)

    def distribute(self, program: Program, startup: Program) -> tuple[Program, Program, bool] | None:
        """Return the two programs of this process and whether it is a server, or None without a job."""
        share: tuple[Program, Program, bool] | None = _distribute_training.function(
            program, startup, sync_mode=self.sync_mode
        )
        return share


def data_parallel_distributed_learner(
    learner: Optimizer, num_quantization_bits: int = 32, distributed_after: int = 0, *, sync_mode: bool = True
) -> DistributedLearner:
    """Return an optimizer that averages the gradients of all trainers of a job.

    Every process runs the same script under ``python -m paddlelike.distributed.launch``: a trainer trains
    with its share of each minibatch, a parameter server serves. Without a launcher the result works like
    ``learner``.

    Parameters
    ----------
    learner
        The optimizer that each trainer has.
    num_quantization_bits, distributed_after
        Options of CNTK; here gradients travel in 32 bits, from the first sample on.
    sync_mode
        Whether all trainers take every step together; only then can a training be repeated with the same
        bits.

    Returns
    -------
    DistributedLearner
        The optimizer for :class:`Trainer`, in place of ``learner``.

    Raises
    ------
    UnsupportedError
        ``num_quantization_bits`` is not 32, or ``distributed_after`` is not 0.

    >>> import paddlelike as fluid
    >>> from paddlelike import training
    >>> learner = training.data_parallel_distributed_learner(fluid.optimizer.SGD(0.1))
    """
    if num_quantization_bits != 32 or distributed_after:
        raise UnsupportedError(
            f"data_parallel_distributed_learner: num_quantization_bits={num_quantization_bits}, "
            f"distributed_after={distributed_after}; here gradients travel in 32 bits from the start",
            hint="leave both out",
        )
    return DistributedLearner(learner, sync_mode=sync_mode)


_connect_workers: Final[Hook[[Program, Executor], Workers]] = Hook("connect_workers")


class Workers(Protocol):
    """The trainers of a job. Each must call :meth:`exchange` at the same point of the training."""

    rank: int
    size: int

    def exchange(self, text: str) -> list[str]:
        """Exchange a text with all trainers; return all texts by rank.

        Raises
        ------
        FaultError
            A trainer or a server does not answer in time; names it.
        """


class Alone:
    """A single process, without other trainers."""

    rank = 0
    size = 1

    def exchange(self, text: str) -> list[str]:
        """Return the process's own text."""
        return [text]


def find_workers(program: Program, executor: Executor) -> Workers:
    """Return the trainers of a program: those that share its parameter servers, or this process alone."""
    found = _connect_workers.function(program, executor) if program._is_distributed else None
    return Alone() if found is None else found


def exchange_values(workers: Workers, value: object) -> list[Any]:
    """Exchange JSON values with all trainers."""
    return [json.loads(text) for text in workers.exchange(json.dumps(value))]
