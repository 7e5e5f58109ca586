"""The reader of a role: looks up every fact under all its spellings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from paddlelike.distributed.roles.facts import (
    COLLECTIVE,
    DEFAULT_PORT,
    FALSE,
    GENERATIONS,
    ROLES,
    SERVER_LISTS,
    ProcessRole,
    Understanding,
    Variables,
)
from paddlelike.errors import RoleError
from paddlelike.foundation.near_names import suggest_names


class RoleReader:
    """Reads the role of a process from environment variables.

    Parameters
    ----------
    environ
        The variables by name.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._variables = Variables(environ)
        self._problems = self._variables.problems
        self._generation: str | None = None

    def read(self) -> Understanding:
        """Return the role and the facts, or the problems."""
        self._remark_on_ignored()
        role = self._role()
        variables = self._variables
        return Understanding(
            None if self._problems else role,
            self._generation,
            tuple(variables.readings),
            tuple(variables.problems),
            tuple(variables.remarks),
        )

    def _role(self) -> ProcessRole | None:
        variables, problems = self._variables, self._problems
        local = variables.value("PADDLE_IS_LOCAL")
        if local is not None and local.lower() not in FALSE:
            variables.record("role", "local", "PADDLE_IS_LOCAL")
            return ProcessRole("local")
        name = self._role_name()
        servers = self._servers()
        if not servers and variables.value("PADDLE_TRAINER_ENDPOINTS") and name in {None, "TRAINER"}:
            return self._worker()
        if name is None and not servers and not problems:
            return ProcessRole("local")
        if name is None and not problems:
            problems.append("TRAINING_ROLE, which is TRAINER or PSERVER")
        if not servers and not problems:
            problems.append("PADDLE_PSERVERS_IP_PORT_LIST, the servers as host:port,host:port")
        trainer_endpoints = variables.items("PADDLE_TRAINER_ENDPOINTS")
        trainers = self._trainer_count(trainer_endpoints)
        if name == "PSERVER":
            return self._server(servers, trainers, trainer_endpoints)
        if name == "TRAINER":
            return self._trainer(servers, trainers, trainer_endpoints)
        return None

    def _worker(self) -> ProcessRole:
        """Return the role of a trainer without servers, in collective training."""
        variables = self._variables
        self._generation = COLLECTIVE
        endpoints = variables.items("PADDLE_TRAINER_ENDPOINTS")
        variables.record("workers", ",".join(endpoints), "PADDLE_TRAINER_ENDPOINTS")
        self._check_endpoints("PADDLE_TRAINER_ENDPOINTS", endpoints)
        self._trainer_count(endpoints)
        given = {}
        index = variables.integer("PADDLE_TRAINER_ID")
        if index is not None:
            given["PADDLE_TRAINER_ID"] = index
        current = variables.value("PADDLE_CURRENT_ENDPOINT")
        if current is not None and current not in endpoints:
            self._problems.append(f"PADDLE_CURRENT_ENDPOINT={current} is not in PADDLE_TRAINER_ENDPOINTS")
        elif current is not None:
            given["PADDLE_CURRENT_ENDPOINT"] = endpoints.index(current)
        if len(set(given.values())) > 1:
            self._problems.append(
                "this worker is "
                + " but ".join(f"number {number} by {name}" for name, number in given.items())
            )
        if not given and len(endpoints) > 1:
            self._problems.append(f"PADDLE_TRAINER_ID, the id of this worker, 0 to {len(endpoints) - 1}")
        for name, number in given.items():
            variables.record("worker", str(number), name)
            if not 0 <= number < len(endpoints):
                self._problems.append(f"{name}={number}, expected 0 to {len(endpoints) - 1}")
        rank = next(iter(given.values()), 0)
        return ProcessRole("worker", (), len(endpoints), rank, None, endpoints)

    def _trainer(
        self, servers: tuple[str, ...], trainers: int | None, trainer_endpoints: tuple[str, ...]
    ) -> ProcessRole:
        variables = self._variables
        index = variables.integer("PADDLE_TRAINER_ID")
        if index is not None:
            variables.record("trainer", str(index), "PADDLE_TRAINER_ID")
        elif variables.value("PADDLE_TRAINER_ID") is None and trainers is not None:
            if trainers > 1 and self._generation != GENERATIONS["PADDLE_PSERVER_IPS"]:
                self._problems.append(f"PADDLE_TRAINER_ID, the id of this trainer, 0 to {trainers - 1}")
            else:
                variables.record("trainer", "0", "its default: PADDLE_TRAINER_ID is not set")
        if index is not None and trainers is not None and not 0 <= index < trainers:
            self._problems.append(
                f"PADDLE_TRAINER_ID={index}, expected 0 to {trainers - 1} for {trainers} trainers"
            )
        return ProcessRole("trainer", servers, trainers or 1, index or 0, None, trainer_endpoints)

    def _server(
        self, servers: tuple[str, ...], trainers: int | None, trainer_endpoints: tuple[str, ...]
    ) -> ProcessRole:
        endpoint = self._own_endpoint(servers) if servers else None
        index = servers.index(endpoint) if endpoint is not None else 0
        return ProcessRole("server", servers, trainers or 1, index, endpoint, trainer_endpoints)

    def _role_name(self) -> str | None:
        variables = self._variables
        given = {name: value for name in ROLES if (value := variables.value(name)) is not None}
        for variable, value in given.items():
            if value not in {"TRAINER", "PSERVER"}:
                near = {"TRAINER": "TRAINER", "WORKER": "TRAINER", "PSERVER": "PSERVER", "SERVER": "PSERVER"}
                meant = near.get(value.upper(), "TRAINER or PSERVER")
                self._problems.append(f"{variable}={value}: write {meant}, in upper case")
                return None
        if len(set(given.values())) > 1:
            self._problems.append(" but ".join(f"{variable}={value}" for variable, value in given.items()))
            return None
        for variable, value in given.items():
            variables.record("role", value, variable)
            if ROLES[variable]:
                variables.remarks.append(f"{variable}: {ROLES[variable]}")
            return value
        return None

    def _servers(self) -> tuple[str, ...]:
        """Return the list of servers; the first spelling is used, the others must agree with it."""
        variables = self._variables
        found: dict[str, tuple[str, ...]] = {}
        without_ports: set[str] = set()
        for variable, port in SERVER_LISTS.items():
            entries = variables.items(variable)
            if not entries:
                continue
            if port is not None and not any(":" in entry for entry in entries):
                without_ports.add(variable)
                entries = tuple(f"{entry}:{variables.value(port) or DEFAULT_PORT}" for entry in entries)
            found[variable] = entries
        if not found:
            return ()
        used, servers = next(iter(found.items()))
        self._generation = GENERATIONS[used]
        source = f"{used} with {SERVER_LISTS[used]}" if used in without_ports else used
        variables.record("servers", ",".join(servers), source)
        for variable, others in found.items():
            compared: Callable[[str], str] = (
                _host if variable in without_ports and used not in without_ports else str
            )
            if [compared(one) for one in others] != [compared(one) for one in servers]:
                self._problems.append(f"{used} says {','.join(servers)}, but {variable} {','.join(others)}")
        self._check_endpoints(used, servers)
        count = variables.integer("PADDLE_PSERVERS_NUM")
        if count is not None and count != len(servers):
            self._problems.append(f"PADDLE_PSERVERS_NUM={count}, but {used} lists {len(servers)} servers")
        return servers

    def _check_endpoints(self, variable: str, endpoints: Sequence[str]) -> None:
        for endpoint in endpoints:
            host, _, port = endpoint.rpartition(":")
            if not host or not port.isdecimal() or not 0 < int(port) < 65536:
                self._problems.append(f"{variable} has the entry {endpoint!r}, which is not host:port")
        for endpoint in sorted({one for one in endpoints if endpoints.count(one) > 1}):
            self._problems.append(f"{variable} lists {endpoint} {endpoints.count(endpoint)} times")

    def _trainer_count(self, trainer_endpoints: tuple[str, ...]) -> int | None:
        """Return the number of trainers by three spellings, which must agree."""
        variables = self._variables
        counts: dict[str, int] = {}
        count = variables.integer("PADDLE_TRAINERS_NUM")
        if count is not None:
            counts["PADDLE_TRAINERS_NUM"] = count
        trainers = variables.value("PADDLE_TRAINERS")
        if trainers is not None:
            # A count up to 1.5; the addresses of the trainers in PaddleCloud of 1.6 and later.
            if trainers.isdecimal():
                counts["PADDLE_TRAINERS"] = int(trainers)
            else:
                counts["PADDLE_TRAINERS, a list of addresses"] = len(variables.items("PADDLE_TRAINERS"))
        if trainer_endpoints:
            counts["PADDLE_TRAINER_ENDPOINTS, a list of endpoints"] = len(trainer_endpoints)
        if len(set(counts.values())) > 1:
            self._problems.append(" but ".join(f"{count} by {name}" for name, count in counts.items()))
        for name, count in counts.items():
            variables.record("trainers", str(count), name)
            if count < 1:
                self._problems.append(f"{name}={count}: a job has at least one trainer")
            return count
        if variables.value("PADDLE_TRAINERS_NUM") is None:
            is_first = self._generation == GENERATIONS["PADDLE_PSERVER_IPS"]
            variable = "PADDLE_TRAINERS" if is_first else "PADDLE_TRAINERS_NUM"
            self._problems.append(f"{variable}, the number of trainers")
        return None

    def _own_endpoint(self, servers: tuple[str, ...]) -> str | None:
        """Return a server's own endpoint, which must be in the list of servers, spelled exactly so."""
        variables = self._variables
        given: dict[str, str] = {}
        index = variables.integer("PADDLE_PSERVER_ID")
        if index is not None:
            if not 0 <= index < len(servers):
                expected = f"0 to {len(servers) - 1} for {len(servers)} servers"
                self._problems.append(f"PADDLE_PSERVER_ID={index}, expected {expected}")
                return None
            given["PADDLE_PSERVER_ID"] = servers[index]
        current = variables.value("PADDLE_CURRENT_ENDPOINT")
        if current is not None:
            given["PADDLE_CURRENT_ENDPOINT"] = current
        is_newest = self._generation == GENERATIONS["PADDLE_PSERVERS_IP_PORT_LIST"]
        ports = {name: variables.value(name) for name in ("PADDLE_PORT", "PADDLE_PSERVER_PORT")}
        if not is_newest and not any(ports.values()):
            ports = {f"the default port {DEFAULT_PORT}": DEFAULT_PORT}
        for host in ("POD_IP", "PADDLE_CURRENT_IP"):
            for name, port in ports.items():
                if (address := variables.value(host)) is not None and port is not None:
                    given[f"{host} and {name}"] = f"{address}:{port}"
        return self._find_listed_endpoint(servers, given)

    def _find_listed_endpoint(self, servers: tuple[str, ...], given: Mapping[str, str]) -> str | None:
        listed = {name: endpoint for name, endpoint in given.items() if endpoint in servers}
        if len(set(listed.values())) > 1:
            self._problems.append(
                "this server is " + " but ".join(f"{end} by {name}" for name, end in listed.items())
            )
            return None
        for name, endpoint in listed.items():
            self._variables.record("endpoint", endpoint, name)
            return endpoint
        if not given:
            self._problems.append("POD_IP and PADDLE_PORT, this server's own host and port")
        for name, endpoint in given.items():
            near = suggest_names(endpoint, servers, lead="; ", count=1)
            self._problems.append(
                f"{name} say {endpoint}, which is not in the list of servers {','.join(servers)} "
                f"as it is written there{near}"
            )
        return None

    def _remark_on_ignored(self) -> None:
        variables = self._variables
        old = sorted(name for name in variables.environ if name.startswith("PADDLE_INIT_"))
        if old:
            names = ", ".join(old)
            variables.remarks.append(f"ignored, of Paddle before Fluid (generation 0, v2): {names}")
        if variables.value("DISTRIBUTED_TRAINER_ENDPOINTS") is not None:
            variables.remarks.append(
                "ignored, PADDLE_TRAINER_ENDPOINTS counts: DISTRIBUTED_TRAINER_ENDPOINTS"
            )


def _host(endpoint: str) -> str:
    return endpoint.rpartition(":")[0]


def read_role(environ: Mapping[str, str] | None = None) -> ProcessRole:
    """Return the role of this process.

    Parameters
    ----------
    environ
        The variables to read; by default the environment of the process.

    Raises
    ------
    RoleError
        Something is missing or contradictory; the error lists everything at once.

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
            f"the environment variables do not define the role of this process:\n{problems}",
            hint="paddlelike.distributed.roles.describe() shows every variable that was read; "
            "python -m paddlelike.distributed.launch sets all of them",
        )
    return understood.role


def describe(environ: Mapping[str, str] | None = None) -> Understanding:
    """Return everything that was read from the environment, without raising; print it to see it.

    >>> print(describe({"TRAINING_ROLE": "TRAINER", "PADDLE_PSERVERS_IP_PORT_LIST": "ps0:6174"}))
    generation of variables: 3 (fleet of 1.6 and later, Paddle 2)
      role     TRAINER   from TRAINING_ROLE
      servers  ps0:6174  from PADDLE_PSERVERS_IP_PORT_LIST
    missing or wrong: PADDLE_TRAINERS_NUM, the number of trainers
    """
    return RoleReader(os.environ if environ is None else environ).read()
