"""What a trainer's state machine is given and gives: patience, steps, outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from paddlelike.distributed.protocol.messages import Request
from paddlelike.errors import FaultError

__all__ = ["Call", "Closed", "Done", "Limits", "Outcome", "Pause", "Resumed", "Step", "Success"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How patient a trainer is, in seconds."""

    call: float = 60.0  #: one call
    window: float = 180.0  #: a server that does not answer (FLAGS_rpc_deadline)
    barrier: float = (
        900.0  #: a server that answers "not yet", e.g. at a barrier (worker_update_interval_secs)
    )
    poll: float = 10.0  #: one turn of waiting at a barrier
    attempts: int = 1  #: calls before a server is given up even after the window (FLAGS_rpc_retry_times)


@dataclass(frozen=True, slots=True)
class Call:
    """Call server number ``server``; where the reply brings parameters, take them into place."""

    server: int
    request: Request
    timeout: float
    ticket: int  #: tells late answers from the awaited one


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing to call on this server before ``until``, or before something else changes."""

    until: float


@dataclass(frozen=True, slots=True)
class Done:
    """The goal is reached or lost: see ``outcome``."""


Step: TypeAlias = Call | Pause | Done


@dataclass(frozen=True, slots=True)
class Success:
    """The goal is reached; ``round`` is the next round of this trainer."""

    round: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """The job goes on from ``round`` instead, whose parameters are in place: compute it anew."""

    round: int


@dataclass(frozen=True, slots=True)
class Closed:
    """An earlier process of this trainer had closed already; nothing is left to do for this one."""

    round: int


#: A FaultError names the endpoint or the trainers; whoever drives raises it.
Outcome: TypeAlias = Success | Resumed | Closed | FaultError
