"""An optimizer whose updates the processes of a job share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from paddlelike.errors import UnsupportedError
from paddlelike.framework.graph.program import Program
from paddlelike.hooks import Hook
from paddlelike.optimizer.base import Optimizer

if TYPE_CHECKING:
    from paddlelike.framework.graph.operator import Operator
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
        """Return what this process runs, with ``program``, ``startup`` and ``is_server``; None: in no job."""
        share: tuple[Program, Program, bool] | None = _distribute_training.function(
            program, startup, sync_mode=self.sync_mode
        )
        return share


def data_parallel_distributed_learner(
    learner: Optimizer, num_quantization_bits: int = 32, distributed_after: int = 0, *, sync_mode: bool = True
) -> DistributedLearner:
    """Return an optimizer that averages the gradients of all trainers of a job.

    Every process runs the same script under ``python -m paddlelike.distributed.launch``: a trainer trains
    with its share of each minibatch, a parameter server serves. Without a launcher it is the optimizer
    itself.

    ``learner`` is an optimizer.

    Parameters
    ----------
    learner
        The optimizer that each trainer has.
    num_quantization_bits, distributed_after
        CNTK's; gradients travel in 32 bits, from the first sample on.
    sync_mode
        Whether all trainers take every step together; only then a training has the same bits again.

    Raises
    ------
    UnsupportedError
        Other values of CNTK's parameters.

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
