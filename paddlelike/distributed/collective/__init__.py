"""Training by collectives: every worker has all parameters, and adds up the gradients of all workers.

``transpiler`` makes the programs, like Fluid's ``transpiler.collective``. The other modules carry out their
operators by JAX's distributed runtime; a process has one :class:`~.workers.Workers`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paddlelike.distributed.collective.workers import JobWorkers

__all__ = ["find_workers", "join_workers"]


def find_workers() -> JobWorkers:
    """Return the workers of the job that this process is in, or joins (the hook of that name)."""
    from paddlelike.distributed.collective import workers  # late: needed by few

    return workers.find_workers()


def join_workers() -> None:
    """Join the job that the environment describes, if any, before JAX computes anything.

    Later calls do nothing. It is the hook of the same name.
    """
    if os.environ.get("PADDLE_TRAINER_ENDPOINTS"):
        from paddlelike.distributed.collective import workers

        workers.find_workers().join_environment()
