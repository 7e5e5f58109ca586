"""Which part this process plays: the environment variables of a job, in all the spellings scripts use.

Four generations are still found (``GENERATIONS``). Each fact, such as the list of servers, is looked up
under every spelling; spellings that contradict each other are an error that names both. Sources: Fluid's
cluster guides from 0.14 to 1.5, ``PaddleCloudRoleMaker`` and ``GeneralRoleMaker`` of 1.8.5, the launcher
of Paddle 2, and the ``env.py`` that training scripts bring along.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from paddlelike.errors import RoleError

__all__ = ["GENERATIONS", "ProcessRole", "Reading", "Understanding", "describe", "read_role"]

#: How a list of servers is spelled tells the generation.
GENERATIONS: Final[Mapping[str, str]] = {
    "PADDLE_PSERVERS_IP_PORT_LIST": "3 (fleet of 1.6 and later, Paddle 2)",
    "PADDLE_PSERVER_ENDPOINTS": "2b (dist_train scripts)",
    "PADDLE_PSERVERS": "2 (cluster scripts)",
    "PADDLE_PSERVER_IPS": "1 (0.14 to 1.5)",
}

_ROLES: Final[Mapping[str, str]] = {
    "TRAINING_ROLE": "",
    "PADDLE_TRAINING_ROLE": "",
    "PADDLE_ROLE": "",
    "PADDLE_TRAINER_ROLE": "a slip of the guide to 1.5, for PADDLE_TRAINING_ROLE",
}
_DEFAULT_PORT: Final = "6174"
_FALSE: Final = {"", "0", "false", "no"}

Kind = Literal["trainer", "server", "local"]


@dataclass(frozen=True, slots=True)
class Reading:
    """One fact, and the variable that says it."""

    what: str
    value: str
    variable: str


@dataclass(frozen=True, slots=True)
class ProcessRole:
    """The part one process plays in a job.

    Attributes
    ----------
    kind
        ``"trainer"``, ``"server"``, or ``"local"``: no job at all.
    servers
        Every server's endpoint, ``host:port``, in the order all processes know.
    trainers
        How many trainers there are.
    index
        A trainer's number, or a server's place in ``servers``.
    endpoint
        A server's own endpoint, an element of ``servers``; None for others.
    trainer_endpoints
        Where trainers are, if the environment says so; nobody connects there.
    """

    kind: Kind
    servers: tuple[str, ...] = ()
    trainers: int = 1
    index: int = 0
    endpoint: str | None = None
    trainer_endpoints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Understanding:
    """What the environment says: facts and where they stand, and what is missing or contradictory."""

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
            lines.append("this process plays no part in a job: it trains by itself")
        return "\n".join(lines)


def read_role(environ: Mapping[str, str] | None = None) -> ProcessRole:
    """The part this process plays.

    Parameters
    ----------
    environ
        The variables to read; by default those of the process.

    Raises
    ------
    RoleError
        If something is missing or contradictory; it lists everything at once.

    Examples
    --------
    >>> job = {"PADDLE_PSERVERS_IP_PORT_LIST": "10.0.0.1:6174,10.0.0.2:6174", "PADDLE_TRAINERS_NUM": "4"}
    >>> role = read_role(job | {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "3"})
    >>> role.kind, role.index, role.trainers
    ('trainer', 3, 4)
    >>> read_role(job | {"TRAINING_ROLE": "PSERVER", "POD_IP": "10.0.0.2", "PADDLE_PORT": "6174"}).index
    1
    """
    understood = describe(environ)
    if understood.role is None:
        problems = "\n".join(f"  - {problem}" for problem in understood.problems)
        raise RoleError(
            f"the environment does not say which part this process plays:\n{problems}",
            hint="paddlelike.distributed.roles.describe() shows every variable that was read; "
            "python -m paddlelike.distributed.launch sets all of them",
        )
    return understood.role


def describe(environ: Mapping[str, str] | None = None) -> Understanding:
    """What the environment says, without raising: print it to see it.

    >>> print(describe({"TRAINING_ROLE": "TRAINER", "PADDLE_PSERVERS_IP_PORT_LIST": "ps0:6174"}))
    generation of variables: 3 (fleet of 1.6 and later, Paddle 2)
      role     TRAINER   from TRAINING_ROLE
      servers  ps0:6174  from PADDLE_PSERVERS_IP_PORT_LIST
    missing or wrong: PADDLE_TRAINERS_NUM, the number of trainers
    """
    return _Reader(os.environ if environ is None else environ).understand()


class _Reader:
    """Looks every fact up under all of its spellings."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.generation: str | None = None
        self.readings: list[Reading] = []
        self.problems: list[str] = []
        self.remarks: list[str] = []

    def understand(self) -> Understanding:
        self._remark_on_what_is_ignored()
        role = self._role()
        if self.problems:
            role = None
        facts = self.generation, tuple(self.readings), tuple(self.problems), tuple(self.remarks)
        return Understanding(role, *facts)

    def _role(self) -> ProcessRole | None:
        local = self._value("PADDLE_IS_LOCAL")
        if local is not None and local.lower() not in _FALSE:
            self._read("role", "local", "PADDLE_IS_LOCAL")
            return ProcessRole("local")
        name = self._role_name()
        servers = self._servers()
        if not servers and self._value("PADDLE_TRAINER_ENDPOINTS") and name in {None, "TRAINER"}:
            self.problems.append(
                "PADDLE_TRAINER_ENDPOINTS without a list of servers asks for collective training (nccl2), "
                "which is not here; set PADDLE_PSERVERS_IP_PORT_LIST for parameter servers"
            )
            return None
        if name is None and not servers and not self.problems:
            return ProcessRole("local")
        if name is None and not self.problems:
            self.problems.append("TRAINING_ROLE, which is TRAINER or PSERVER")
        if not servers and not self.problems:
            self.problems.append("PADDLE_PSERVERS_IP_PORT_LIST, the servers as host:port,host:port")
        where = self._list("PADDLE_TRAINER_ENDPOINTS")
        trainers = self._trainers(where)
        if name == "PSERVER":
            return self._server(servers, trainers, where)
        if name == "TRAINER":
            return self._trainer(servers, trainers, where)
        return None

    def _trainer(self, servers: tuple[str, ...], trainers: int | None, where: tuple[str, ...]) -> ProcessRole:
        index = self._integer("PADDLE_TRAINER_ID")
        if index is not None:
            self._read("trainer", str(index), "PADDLE_TRAINER_ID")
        elif self._value("PADDLE_TRAINER_ID") is None and trainers is not None:
            if trainers > 1 and self.generation != GENERATIONS["PADDLE_PSERVER_IPS"]:
                self.problems.append(f"PADDLE_TRAINER_ID, the number of this trainer, 0 to {trainers - 1}")
            else:
                self._read("trainer", "0", "its default: PADDLE_TRAINER_ID is not set")
        if index is not None and trainers is not None and not 0 <= index < trainers:
            self.problems.append(
                f"PADDLE_TRAINER_ID={index}, but the {trainers} trainers are numbered from 0"
            )
        return ProcessRole("trainer", servers, trainers or 1, index or 0, None, where)

    def _server(self, servers: tuple[str, ...], trainers: int | None, where: tuple[str, ...]) -> ProcessRole:
        endpoint = self._own_endpoint(servers) if servers else None
        index = servers.index(endpoint) if endpoint is not None else 0
        return ProcessRole("server", servers, trainers or 1, index, endpoint, where)

    def _role_name(self) -> str | None:
        said = {variable: value for variable in _ROLES if (value := self._value(variable)) is not None}
        for variable, value in said.items():
            if value not in {"TRAINER", "PSERVER"}:
                near = {"TRAINER": "TRAINER", "WORKER": "TRAINER", "PSERVER": "PSERVER", "SERVER": "PSERVER"}
                meant = near.get(value.upper(), "TRAINER or PSERVER")
                self.problems.append(f"{variable}={value}: write {meant}, in upper case")
                return None
        if len(set(said.values())) > 1:
            self.problems.append(" but ".join(f"{variable}={value}" for variable, value in said.items()))
            return None
        for variable, value in said.items():
            self._read("role", value, variable)
            if _ROLES[variable]:
                self.remarks.append(f"{variable}: {_ROLES[variable]}")
            return value
        return None

    def _servers(self) -> tuple[str, ...]:
        """The list of servers; the first spelling wins, the others must agree."""
        found: dict[str, tuple[str, ...]] = {}
        bare: set[str] = set()
        for variable, port in (
            ("PADDLE_PSERVERS_IP_PORT_LIST", None),
            ("PADDLE_PSERVER_ENDPOINTS", None),
            ("PADDLE_PSERVERS", "PADDLE_PORT"),
            ("PADDLE_PSERVER_IPS", "PADDLE_PSERVER_PORT"),
        ):
            entries = self._list(variable)
            if not entries:
                continue
            if port is not None and not any(":" in entry for entry in entries):
                bare.add(variable)
                entries = tuple(f"{entry}:{self._value(port) or _DEFAULT_PORT}" for entry in entries)
            found[variable] = entries
        if not found:
            return ()
        used, servers = next(iter(found.items()))
        self.generation = GENERATIONS[used]
        with_port = " with PADDLE_PORT" if used == "PADDLE_PSERVERS" else " with PADDLE_PSERVER_PORT"
        self._read("servers", ",".join(servers), used + (with_port if used in bare else ""))
        for variable, others in found.items():
            same: Callable[[str], str] = _host if variable in bare and used not in bare else str
            if [same(one) for one in others] != [same(one) for one in servers]:
                self.problems.append(f"{used} says {','.join(servers)}, but {variable} {','.join(others)}")
        self._check_endpoints(used, servers)
        number = self._integer("PADDLE_PSERVERS_NUM")
        if number is not None and number != len(servers):
            self.problems.append(f"PADDLE_PSERVERS_NUM={number}, but {used} lists {len(servers)} servers")
        return servers

    def _check_endpoints(self, variable: str, endpoints: Sequence[str]) -> None:
        for endpoint in endpoints:
            host, _, port = endpoint.rpartition(":")
            if not host or not port.isdecimal() or not 0 < int(port) < 65536:
                self.problems.append(f"{variable} has the entry {endpoint!r}, which is not host:port")
        for endpoint in sorted({one for one in endpoints if endpoints.count(one) > 1}):
            self.problems.append(f"{variable} lists {endpoint} {endpoints.count(endpoint)} times")

    def _trainers(self, where: tuple[str, ...]) -> int | None:
        """How many trainers there are, by three spellings that must agree."""
        counts: dict[str, int] = {}
        number = self._integer("PADDLE_TRAINERS_NUM")
        if number is not None:
            counts["PADDLE_TRAINERS_NUM"] = number
        trainers = self._value("PADDLE_TRAINERS")
        if trainers is not None:
            # A count up to 1.5; the addresses of the trainers in PaddleCloud of 1.6 and later.
            if trainers.isdecimal():
                counts["PADDLE_TRAINERS"] = int(trainers)
            else:
                addresses = len(self._list("PADDLE_TRAINERS"))
                counts["PADDLE_TRAINERS, a list of addresses"] = addresses
        if where:
            counts["PADDLE_TRAINER_ENDPOINTS, a list of endpoints"] = len(where)
        if len(set(counts.values())) > 1:
            self.problems.append(" but ".join(f"{count} by {name}" for name, count in counts.items()))
        for name, count in counts.items():
            self._read("trainers", str(count), name)
            if count < 1:
                self.problems.append(f"{name}={count}: a job has at least one trainer")
            return count
        if self._value("PADDLE_TRAINERS_NUM") is None:
            first = self.generation == GENERATIONS["PADDLE_PSERVER_IPS"]
            variable = "PADDLE_TRAINERS" if first else "PADDLE_TRAINERS_NUM"
            self.problems.append(f"{variable}, the number of trainers")
        return None

    def _own_endpoint(self, servers: tuple[str, ...]) -> str | None:
        """A server's own endpoint, which must stand in the list as it is written there."""
        said: dict[str, str] = {}
        number = self._integer("PADDLE_PSERVER_ID")
        if number is not None:
            if not 0 <= number < len(servers):
                counted = f"the {len(servers)} servers are numbered from 0"
                self.problems.append(f"PADDLE_PSERVER_ID={number}, but {counted}")
                return None
            said["PADDLE_PSERVER_ID"] = servers[number]
        current = self._value("PADDLE_CURRENT_ENDPOINT")
        if current is not None:
            said["PADDLE_CURRENT_ENDPOINT"] = current
        newest = self.generation == GENERATIONS["PADDLE_PSERVERS_IP_PORT_LIST"]
        ports = {name: self._value(name) for name in ("PADDLE_PORT", "PADDLE_PSERVER_PORT")}
        if not newest and not any(ports.values()):
            ports = {f"the default port {_DEFAULT_PORT}": _DEFAULT_PORT}
        for host in ("POD_IP", "PADDLE_CURRENT_IP"):
            for name, port in ports.items():
                if (address := self._value(host)) is not None and port is not None:
                    said[f"{host} and {name}"] = f"{address}:{port}"
        return self._one_of(servers, said)

    def _one_of(self, servers: tuple[str, ...], said: Mapping[str, str]) -> str | None:
        listed = {name: endpoint for name, endpoint in said.items() if endpoint in servers}
        if len(set(listed.values())) > 1:
            self.problems.append(
                "this server is " + " but ".join(f"{end} by {name}" for name, end in listed.items())
            )
            return None
        for name, endpoint in listed.items():
            self._read("endpoint", endpoint, name)
            return endpoint
        if not said:
            self.problems.append("POD_IP and PADDLE_PORT, this server's own host and port")
        for name, endpoint in said.items():
            near = difflib.get_close_matches(endpoint, servers, n=1)
            meant = f"; near it is {near[0]}" if near else ""
            self.problems.append(
                f"{name} say {endpoint}, which is not in the list of servers {','.join(servers)}, "
                f"where it must stand as it is written{meant}"
            )
        return None

    def _remark_on_what_is_ignored(self) -> None:
        old = sorted(name for name in self.environ if name.startswith("PADDLE_INIT_"))
        if old:
            self.remarks.append(f"ignored, of Paddle before Fluid (generation 0, v2): {', '.join(old)}")
        if self._value("DISTRIBUTED_TRAINER_ENDPOINTS") is not None:
            self.remarks.append("ignored, for collective training: DISTRIBUTED_TRAINER_ENDPOINTS")

    def _read(self, what: str, value: str, variable: str) -> None:
        self.readings.append(Reading(what, value, variable))

    def _value(self, variable: str) -> str | None:
        """A variable without blanks around it; one that is empty counts as not set."""
        return self.environ.get(variable, "").strip() or None

    def _list(self, variable: str) -> tuple[str, ...]:
        value = self._value(variable)
        return () if value is None else tuple(entry.strip() for entry in value.split(","))

    def _integer(self, variable: str) -> int | None:
        value = self._value(variable)
        if value is None:
            return None
        if not value.isdecimal():
            self.problems.append(f"{variable}={value} is not a whole number")
            return None
        return int(value)


def _host(endpoint: str) -> str:
    return endpoint.rpartition(":")[0]
