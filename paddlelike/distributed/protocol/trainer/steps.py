"""The limits, steps and outcomes of a trainer's state machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from paddlelike.distributed.protocol.messages import Request
from paddlelike.errors import FaultError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The timeouts of a trainer, in seconds."""

    call: float = 60.0  #: for one call
    window: float = 180.0  #: for a server that does not answer (FLAGS_rpc_deadline)
    #: For a server that replies Waiting, as at a barrier (FLAGS_worker_update_interval_secs).
    barrier: float = 900.0
    poll: float = 10.0  #: for which one call waits at a barrier
    attempts: int = 1  #: calls made at least before a server is given up (FLAGS_rpc_retry_times)


@dataclass(frozen=True, slots=True)
class Call:
    """Call the server of this index; copy the parameters that the reply brings to their arrays."""

    server: int
    request: Request
    timeout: float
    ticket: int  #: the id of the call, by which a late reply is told from the awaited one


@dataclass(frozen=True, slots=True)
class Pause:
    """Do not call this server before ``until``, or before the state changes."""

    until: float


@dataclass(frozen=True, slots=True)
class Done:
    """The goal was reached or failed: see ``outcome``."""


Step: TypeAlias = Call | Pause | Done


@dataclass(frozen=True, slots=True)
class Success:
    """The goal was reached; ``round`` is the next round of this trainer."""

    round: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """The job continues at ``round`` instead, whose parameters are in place: compute it again."""

    round: int


@dataclass(frozen=True, slots=True)
class Closed:
    """An earlier process of this trainer had left the job; this one has nothing to do."""

    round: int


#: A FaultError names the endpoint or the trainers; the caller raises it.
Outcome: TypeAlias = Success | Resumed | Closed | FaultError
