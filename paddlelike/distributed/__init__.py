"""Parameter servers: programs for trainers and servers, the protocol between them, saving and loading."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the launcher needs no other module, and starts without numpy
    from collections.abc import Iterator

    from paddlelike.core import Scope
    from paddlelike.framework import Program
    from paddlelike.framework.opdef.remote import Remote
    from paddlelike.io.partition import Partition

__all__ = ["connect_remote", "find_partition", "resumable_steps"]


def resumable_steps(steps: int, scope: Scope | None = None) -> Iterator[int]:
    """Return the indexes of the steps to train, up to ``steps``, beginning at the servers' round.

    A job that resumes from a save begins with the step after it. With ``PADDLELIKE_RESUME_POLICY=rollback``
    servers may go back to a save while the loop runs. Then the current step has no effect, and the loop
    continues with the step after that save. A save in the loop that this interrupts raises RoundRolledBack,
    which may be caught: the previous save is unchanged. Every step must run the trainer's program once, with
    the batch of its index. Without servers the steps are ``range(steps)``.

    Parameters
    ----------
    steps
        The number of steps of the whole training.
    scope
        The scope of the parameters. None means the global scope. The startup program must have been run in
        it.

    Returns
    -------
    iterator of int
        The indexes of the steps that remain, in order.

    See Also
    --------
    fluid.communicator.Communicator, fluid.distributed.connect_remote
    fluid.distributed.find_partition, fluid.DistributeTranspiler

    Examples
    --------
    >>> from paddlelike.distributed import resumable_steps
    >>> [step for step in resumable_steps(3)]
    [0, 1, 2]
    """
    from paddlelike.distributed.client import trainers  # late: imports the wire, needed by few

    return trainers.resumable_steps(steps, scope)


def connect_remote() -> Remote:
    """Return the remote operators of one executor, not connected yet (the hook of that name).

    Returns
    -------
    Remote
        The operators ``send``, ``recv`` and their barriers; the first of them connects.

    See Also
    --------
    fluid.communicator.Communicator, fluid.distributed.find_partition
    fluid.distributed.resumable_steps, fluid.DistributeTranspiler

    >>> remote = connect_remote()
    """
    from paddlelike.distributed.remote import RemoteOperators  # late: imports the wire, needed by few

    return RemoteOperators()


def find_partition(program: Program) -> Partition | None:
    """Describe how the variables of a program are distributed (the hook of that name).

    Parameters
    ----------
    program
        A program, transpiled or not.

    Returns
    -------
    Partition or None
        Which process or server holds which part of each variable.

    See Also
    --------
    fluid.communicator.Communicator, fluid.distributed.connect_remote
    fluid.distributed.resumable_steps, fluid.DistributeTranspiler

    >>> import paddlelike as fluid
    >>> partition = find_partition(fluid.Program())
    """
    if program._sharding is not None:
        from paddlelike.distributed.collective.data_parallel import SharedState  # late: needed by few

        return SharedState(program)
    if not program._is_distributed and not any(op.type == "listen_and_serv" for op in program.blocks[0].ops):
        from paddlelike.distributed.checkpoint.local import LocalPartition  # late: for few loads

        return LocalPartition(program)
    from paddlelike.distributed.checkpoint import partitions  # late: imports much more, needed by few

    return partitions.find_distributed_partition(program)
