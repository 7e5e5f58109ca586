"""Parameter servers: programs for trainers and servers, what travels between them, and who keeps what."""

from __future__ import annotations

from collections.abc import Iterator

from paddlelike.core.scope import Scope
from paddlelike.framework.graph.program import Program
from paddlelike.framework.opdef.remote import Remote
from paddlelike.io.partition import Partition

__all__ = ["connect_remote", "find_partition", "resumable_steps"]


def resumable_steps(steps: int, scope: Scope | None = None) -> Iterator[int]:
    """The numbers of the steps to train, up to ``steps``, wherever the servers stand.

    A job that goes on from a save begins with the step after it. When servers go back to a save while the
    loop runs (``PADDLELIKE_RESUME_POLICY=rollback``), the step under way ends without an effect and the loop
    goes on from there. Every step must run the trainer's program once, with what belongs to its number. A
    save in the loop that is cut short so raises RoundRolledBack, which may be caught: the save before stands.
    Without servers it is ``range(steps)``.

    Parameters
    ----------
    scope
        Where the parameters are; None: the global scope. The startup program must have been run in it.

    Examples
    --------
    >>> from paddlelike.distributed import resumable_steps
    >>> [step for step in resumable_steps(3)]
    [0, 1, 2]
    """
    from paddlelike.distributed.client.trainers import resumable_steps

    return resumable_steps(steps, scope)


def connect_remote() -> Remote:
    """Return the remote operators of one executor, not connected yet (the hook of that name)."""
    from paddlelike.distributed.remote import RemoteOperators  # late: imports the wire, needed by few

    return RemoteOperators()


def find_partition(program: Program) -> Partition | None:
    """Return how a program is distributed (the hook of that name)."""
    if not program._is_distributed and not any(op.type == "listen_and_serv" for op in program.blocks[0].ops):
        from paddlelike.distributed.checkpoint.alone import Alone

        return Alone(program)
    from paddlelike.distributed.checkpoint.programs import part_of  # late: more to import, needed by few

    return part_of(program)
