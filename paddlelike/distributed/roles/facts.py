"""Facts about a process from the environment: its role, the source of each fact, and the variables read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["trainer", "worker", "server", "local"]


@dataclass(frozen=True, slots=True)
class Reading:
    """One fact, its value, and the variable from which it was read."""

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
        The number of trainers.
    index
        A trainer's or worker's id, or a server's index in ``servers``.
    endpoint
        A server's own endpoint, an element of ``servers``; None for others.
    trainer_endpoints
        The trainers' endpoints, if the environment has them. No process connects to trainers' endpoints; at
        the first worker's endpoint JAX's runtime coordinates the job.
    """

    kind: Kind
    servers: tuple[str, ...] = ()
    trainers: int = 1
    index: int = 0
    endpoint: str | None = None
    trainer_endpoints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Understanding:
    """Facts read from the environment, and missing or contradictory ones. Print it to see them."""

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


#: By variable with a list of servers, the generation that uses it.
GENERATIONS: Final[Mapping[str, str]] = {
    "PADDLE_PSERVERS_IP_PORT_LIST": "3 (fleet of 1.6 and later, Paddle 2)",
    "PADDLE_PSERVER_ENDPOINTS": "2b (dist_train scripts)",
    "PADDLE_PSERVERS": "2 (cluster scripts)",
    "PADDLE_PSERVER_IPS": "1 (0.14 to 1.5)",
}

#: The generation of variables without servers.
COLLECTIVE: Final = "3 (collective training, without servers)"

#: The same variables, with the variable for the port of hosts that name none.
SERVER_LISTS: Final[Mapping[str, str | None]] = {
    "PADDLE_PSERVERS_IP_PORT_LIST": None,
    "PADDLE_PSERVER_ENDPOINTS": None,
    "PADDLE_PSERVERS": "PADDLE_PORT",
    "PADDLE_PSERVER_IPS": "PADDLE_PSERVER_PORT",
}

#: By variable with the role, a remark on it.
ROLES: Final[Mapping[str, str]] = {
    "TRAINING_ROLE": "",
    "PADDLE_TRAINING_ROLE": "",
    "PADDLE_ROLE": "",
    "PADDLE_TRAINER_ROLE": "a typing error in the guide to 1.5: it means PADDLE_TRAINING_ROLE",
}
DEFAULT_PORT: Final = "6174"
FALSE: Final = {"", "0", "false", "no"}


class Variables:
    """Environment variables, the facts that were read from them, and the problems found.

    Parameters
    ----------
    environ
        The variables by name.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.readings: list[Reading] = []
        self.problems: list[str] = []
        self.remarks: list[str] = []

    def record(self, what: str, value: str, variable: str) -> None:
        """Record a fact and the variable from which it was read."""
        self.readings.append(Reading(what, value, variable))

    def value(self, variable: str) -> str | None:
        """Return a variable without surrounding blanks; None if it is empty or not set."""
        return self.environ.get(variable, "").strip() or None

    def items(self, variable: str) -> tuple[str, ...]:
        """Return the items of a comma-separated variable."""
        value = self.value(variable)
        return () if value is None else tuple(item.strip() for item in value.split(","))

    def integer(self, variable: str) -> int | None:
        """Return a variable as an integer; None if it is not set. Other text is recorded as a problem."""
        value = self.value(variable)
        if value is None:
            return None
        if not value.isdecimal():
            self.problems.append(f"{variable}={value} is not a whole number")
            return None
        return int(value)
