"""The facts that the environment gives about a process: its role, and where each was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["trainer", "worker", "server", "local"]


@dataclass(frozen=True, slots=True)
class Reading:
    """One fact, its value, and the variable that it was read from."""

    what: str
    value: str
    variable: str


@dataclass(frozen=True, slots=True)
class ProcessRole:
    """The role of one process in a job.

    Attributes
    ----------
    kind
        ``"trainer"``, ``"server"``, ``"worker"`` (a trainer of a job without servers, by collectives), or
        ``"local"``: not in a job.
    servers
        Every server's endpoint, ``host:port``, in the order that all processes have.
    trainers
        The count of trainers.
    index
        A trainer's or worker's id, or a server's index in ``servers``.
    endpoint
        A server's own endpoint, an element of ``servers``; None for others.
    trainer_endpoints
        The trainers' endpoints, if the environment has them. To those of trainers no process connects; at
        the first of workers JAX's runtime coordinates the job.
    """

    kind: Kind
    servers: tuple[str, ...] = ()
    trainers: int = 1
    index: int = 0
    endpoint: str | None = None
    trainer_endpoints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Understanding:
    """Everything that was read from the environment, and what is missing or contradictory; print it."""

    role: ProcessRole | None  # None if there are problems
    generation: str | None
    readings: tuple[Reading, ...]
    problems: tuple[str, ...]
    remarks: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"generation of variables: {self.generation or 'none'}"]
        widths = [max((len(getattr(r, key)) for r in self.readings), default=0) for key in ("what", "value")]
        for reading in self.readings:
            what, value = reading.what.ljust(widths[0]), reading.value.ljust(widths[1])
            lines.append(f"  {what}  {value}  from {reading.variable}")
        lines += [f"missing or wrong: {problem}" for problem in self.problems]
        lines += [f"note: {remark}" for remark in self.remarks]
        if self.role is not None and self.role.kind == "local":
            lines.append("this process is not in a job: it trains by itself")
        return "\n".join(lines)
