"""The job of workers that train by collectives: the list of workers, and the number of this process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paddlelike.distributed.roles import read_role
from paddlelike.distributed.wire.security import is_loopback
from paddlelike.errors import RoleError


@dataclass(frozen=True, slots=True)
class Job:
    """The workers' endpoints in the order of their ranks, and the rank of this process.

    JAX's runtime coordinates the job at the first endpoint; the other endpoints only name workers.
    """

    endpoints: tuple[str, ...]
    rank: int

    @property
    def size(self) -> int:
        """The number of workers."""
        return len(self.endpoints)

    def name(self, rank: int) -> str:
        """Return a worker in words, for errors."""
        return f"worker {rank} ({self.endpoints[rank]})"


def make_job(endpoints: Sequence[str], rank: int) -> Job:
    """Return a job.

    Raises RoleError for a worker on another machine without ``PADDLELIKE_INSECURE=1``, since neither JAX's
    runtime nor gloo encrypts or authenticates.
    """
    job = Job(tuple(one.strip() for one in endpoints), rank)
    beyond = [one for one in job.endpoints if not is_loopback(one.rpartition(":")[0])]
    if job.size > 1 and beyond and os.environ.get("PADDLELIKE_INSECURE") != "1":
        raise RoleError(
            f"the worker at {beyond[0]} is not on this machine's loopback, and collective training neither "
            "encrypts nor authenticates",
            hint="set PADDLELIKE_INSECURE=1 in all processes, on a network that only they can reach",
        )
    return job


def read_job(environ: Mapping[str, str] = os.environ) -> Job | None:
    """Return the job that the environment describes; None where it describes none, or has servers.

    Raises RoleError where it is incomplete.
    """
    if not environ.get("PADDLE_TRAINER_ENDPOINTS", "").strip():
        return None
    role = read_role(environ)
    return make_job(role.trainer_endpoints, role.index) if role.kind == "worker" else None
