"""What the environment says of a distributed run: Fluid's flags and ours."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from paddlelike.distributed.protocol.steps import Limits
from paddlelike.errors import RoleError

__all__ = ["Settings"]

_LEASE = 30.0


@dataclass(frozen=True, slots=True)
class Settings:
    """How patient this process is, and what it does after a fault.

    ``FLAGS_rpc_deadline`` (ms, 180000): a server that does not answer. ``FLAGS_rpc_retry_times`` (3): calls
    made at least before it is given up. ``FLAGS_worker_update_interval_secs`` (900): other trainers at a
    barrier. ``PADDLELIKE_LEASE`` (s, 30): without a sign of life a trainer counts as silent.
    ``PADDLELIKE_RESUME_POLICY``: ``exit`` (the default) or ``rollback``. ``PADDLELIKE_JOB_ID``: a name.
    ``PADDLELIKE_CHECKPOINT_DIR``: where servers look for what trainer 0 saved, to go back to it.
    """

    limits: Limits = field(default_factory=Limits)
    lease: float = _LEASE
    rollback: bool = False
    job: str = ""
    checkpoints: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """The settings in the environment. Raises RoleError for what cannot be read."""
        window = _seconds(environment, "FLAGS_rpc_deadline", 180000.0) / 1000
        policy = environment.get("PADDLELIKE_RESUME_POLICY", "exit")
        if policy not in ("exit", "rollback"):
            raise RoleError(f"PADDLELIKE_RESUME_POLICY is {policy!r}; it is exit or rollback")
        lease = _seconds(environment, "PADDLELIKE_LEASE", _LEASE)
        barrier = _seconds(environment, "FLAGS_worker_update_interval_secs", 900.0)
        limits = Limits(
            call=min(60.0, window),
            window=window,
            barrier=barrier,
            poll=min(10.0, window / 2, barrier / 2),
            attempts=int(_seconds(environment, "FLAGS_rpc_retry_times", 3)),
        )
        job, checkpoints = (
            environment.get("PADDLELIKE_JOB_ID", ""),
            environment.get("PADDLELIKE_CHECKPOINT_DIR"),
        )
        return cls(limits, lease, policy == "rollback", job, checkpoints or None)


def _seconds(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise RoleError(f"{name} is {text!r}; it is a number")
    return value
