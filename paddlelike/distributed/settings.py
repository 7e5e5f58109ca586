"""The settings of a distributed run in the environment: Fluid's flags and this package's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paddlelike.distributed.protocol.trainer.retries import Limits
from paddlelike.errors import RoleError

_LEASE = 30.0
_LOG_EVERY = 60.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of this process: how long it waits for others, and how it handles a fault.

    ``FLAGS_rpc_deadline`` (ms, 180000): the longest time without an answer from a server.
    ``FLAGS_rpc_retry_times`` (3): the least number of calls before a server is given up.
    ``FLAGS_worker_update_interval_secs`` (900): how long a trainer waits for the others at a barrier, and a
    server for all trainers. ``PADDLELIKE_LEASE`` (s, 30): the time without a sign of life after which a
    trainer counts as silent. ``PADDLELIKE_RESUME_POLICY``: ``exit`` (the default) or ``rollback``.
    ``PADDLELIKE_JOB_ID``: a name that trainers and servers must share. ``PADDLELIKE_CHECKPOINT_DIR``: the
    directory of trainer 0's saves, to which servers can go back; they may write below it (``save_roots``; by
    default the working directory). ``PADDLELIKE_LOG_INTERVAL`` (s, 60): the time between two lines of a
    server's log. ``PADDLELIKE_JOB_ATTEMPT`` (0): the number of restarts of the job so far, which servers
    report to other launchers.
    """

    limits: Limits = field(default_factory=Limits)
    lease: float = _LEASE
    rollback: bool = False
    job: str = ""
    checkpoints: str | None = None
    log_every: float = _LOG_EVERY
    save_roots: tuple[str, ...] = ()
    attempt: int = 0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Return the settings in the environment. Raises RoleError for an invalid value."""
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
        return cls(
            limits=limits,
            lease=lease,
            rollback=policy == "rollback",
            job=environment.get("PADDLELIKE_JOB_ID", ""),
            checkpoints=environment.get("PADDLELIKE_CHECKPOINT_DIR") or None,
            save_roots=_save_roots(environment),
            log_every=max(_seconds(environment, "PADDLELIKE_LOG_INTERVAL", _LOG_EVERY), 1.0),
            attempt=int(_seconds(environment, "PADDLELIKE_JOB_ATTEMPT", 0)),
        )


def _save_roots(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the directories below which this server may write; ``/`` is refused."""
    root = environment.get("PADDLELIKE_CHECKPOINT_DIR") or str(Path.cwd())
    return () if root == "/" else (str(Path(root).absolute()),)


def _seconds(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise RoleError(f"{name} is {text!r}; expected a number from 0 to 1e9")
    return value
