"""The processes of a job and their environments, in the variables of every generation of Fluid."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Final

from paddlelike.distributed.wire.security import is_loopback

LOOPBACK: Final = "127.0.0.1"

#: Variables that another job may have left in the launcher's environment, and that not every process sets.
_STALE: Final = (
    "PADDLE_CURRENT_ENDPOINT",
    "PADDLE_PORT",
    "PADDLE_PSERVERS",
    "PADDLE_PSERVERS_IP_PORT_LIST",
    "PADDLE_PSERVERS_NUM",
    "PADDLE_PSERVER_ENDPOINTS",
    "PADDLE_PSERVER_ID",
    "PADDLE_PSERVER_IPS",
    "PADDLE_PSERVER_PORT",
    "PADDLE_TRAINER_ENDPOINTS",
    "PADDLE_TRAINER_ROLE",
)


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """One process of a job.

    Attributes
    ----------
    kind, index
        ``"server"`` or ``"worker"``, and its index among the processes of that kind.
    host
        The host that it runs on.
    log
        The name of its log, ``serverlog.N`` or ``workerlog.N``.
    variables
        The variables that are added to its environment.
    """

    kind: str
    index: int
    host: str
    log: str
    variables: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.kind} {self.index}"

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return ``base`` without the variables of other jobs, and with the variables of this process."""
        return {name: value for name, value in base.items() if name not in _STALE} | dict(self.variables)


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The servers of a job and its trainers.

    Attributes
    ----------
    servers
        The endpoints of all servers; none for a job of workers that train by collectives.
    trainer_hosts
        The host of each trainer.
    trainer_endpoints
        The trainers' endpoints if they were given, else empty. A job without servers has them.
    devices
        The numbers of the devices of each host's trainers, by ``--selected_gpus``; only for jobs without
        servers.
    has_free_ports
        Whether the launcher chose the ports and may choose others; only for jobs without servers.
    """

    servers: tuple[str, ...]
    trainer_hosts: tuple[str, ...]
    trainer_endpoints: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    has_free_ports: bool = False

    def renew(self) -> JobPlan:
        """Return the job with new ports where the launcher chose them, since one may be taken."""
        if not self.has_free_ports:
            return self
        return replace(self, trainer_endpoints=free_endpoints(len(self.trainer_hosts), LOOPBACK))

    def shrink(self, least: int) -> JobPlan:
        """Return the job with one trainer less, but at least ``least``; it has no servers."""
        kept = max(least, len(self.trainer_hosts) - 1)
        hosts, endpoints = self.trainer_hosts[:kept], self.trainer_endpoints[:kept]
        return replace(self, trainer_hosts=hosts, trainer_endpoints=endpoints)

    def processes(self) -> list[ProcessPlan]:
        """Return every process of the job, servers first.

        >>> plan = JobPlan(("127.0.0.1:6170", "127.0.0.1:6171"), ("127.0.0.1",))
        >>> [str(process) for process in plan.processes()]
        ['server 0', 'server 1', 'worker 0']
        >>> plan.processes()[1].variables["PADDLE_PORT"]
        '6171'
        """
        servers = [self._server(index) for index in range(len(self.servers))]
        return servers + [self._trainer(index) for index in range(len(self.trainer_hosts))]

    def _server(self, index: int) -> ProcessPlan:
        host, _, port = self.servers[index].rpartition(":")
        variables = self._make_shared_variables("PSERVER", host) | {
            "PADDLE_CURRENT_ENDPOINT": self.servers[index],
            "PADDLE_PORT": port,
            "PADDLE_PSERVER_ID": str(index),
            "PADDLE_TRAINER_ID": "0",  # the first scripts read it in every role
        }
        return ProcessPlan("server", index, host, f"serverlog.{index}", variables)

    def _trainer(self, index: int) -> ProcessPlan:
        host = self.trainer_hosts[index]
        variables = self._make_shared_variables("TRAINER", host) | {"PADDLE_TRAINER_ID": str(index)}
        if self.trainer_endpoints:
            variables["PADDLE_CURRENT_ENDPOINT"] = self.trainer_endpoints[index]
        if self.devices:
            variables["FLAGS_selected_gpus"] = self.devices[index % len(self.devices)]
        return ProcessPlan("worker", index, host, f"workerlog.{index}", variables)

    def _make_shared_variables(self, role: str, host: str) -> dict[str, str]:
        trainers = str(len(self.trainer_hosts))
        variables = {
            "PADDLE_CURRENT_IP": host,
            "PADDLE_IS_LOCAL": "0",
            "PADDLE_ROLE": role,
            "PADDLE_TRAINERS": trainers,
            "PADDLE_TRAINERS_NUM": trainers,
            "PADDLE_TRAINING_ROLE": role,
            "POD_IP": host,
            "TRAINING_ROLE": role,
        }
        if not self.servers:
            return variables | {"PADDLE_TRAINER_ENDPOINTS": ",".join(self.trainer_endpoints)}
        hosts, ports = zip(*(server.rpartition(":")[::2] for server in self.servers), strict=True)
        variables |= {
            "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(self.servers),
            "PADDLE_PSERVERS_NUM": str(len(self.servers)),
            "PADDLE_PSERVER_ENDPOINTS": ",".join(self.servers),
        }
        if len(set(ports)) == 1:  # the older generations have one port for all servers
            variables |= {
                "PADDLE_PORT": ports[0],
                "PADDLE_PSERVERS": ",".join(hosts),
                "PADDLE_PSERVER_IPS": ",".join(hosts),
                "PADDLE_PSERVER_PORT": ports[0],
            }
        if self.trainer_endpoints:
            # Only if they were given: dist_train scripts take these variables for collective training.
            variables["PADDLE_TRAINER_ENDPOINTS"] = ",".join(self.trainer_endpoints)
        return variables


def is_loopback_job(job: JobPlan) -> bool:
    """Return whether all servers listen on this machine's loopback only."""
    return all(is_loopback(server.rpartition(":")[0]) for server in job.servers)


def port_endpoints(start: int, count: int) -> tuple[str, ...]:
    """Return ``count`` endpoints on this machine, on the ports from ``start`` on.

    >>> port_endpoints(6170, 2)
    ('127.0.0.1:6170', '127.0.0.1:6171')
    """
    return tuple(f"{LOOPBACK}:{start + index}" for index in range(count))


def free_endpoints(count: int, host: str | None = None) -> tuple[str, ...]:
    """Return ``count`` unused endpoints, on ``host`` or this machine, if possible all with the same port.

    One port on 127.0.0.1, 127.0.0.2, ... lets scripts of every generation run, since the older ones have
    a single port. Where only 127.0.0.1 can be used, the ports differ.
    """
    if host is None and sys.platform == "linux" and count < 255:
        for _ in range(100):
            with suppress(OSError):
                return _on_one_port(count)
    host = host or LOOPBACK
    with ExitStack() as held:
        sockets = [held.enter_context(_bind(host, 0)) for _ in range(count)]
        return tuple(f"{host}:{one.getsockname()[1]}" for one in sockets)


def _on_one_port(count: int) -> tuple[str, ...]:
    with ExitStack() as held:
        port = held.enter_context(_bind(LOOPBACK, 0)).getsockname()[1]
        hosts = [f"127.0.0.{index + 1}" for index in range(count)]
        for host in hosts[1:]:
            held.enter_context(_bind(host, port))
        return tuple(f"{host}:{port}" for host in hosts)


def _bind(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener


def is_this_machine(host: str) -> bool:
    """Return whether a host name or address belongs to this machine.

    >>> is_this_machine("127.0.0.1")
    True
    """
    try:
        found: Sequence[
            tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]
        ]
        found = socket.getaddrinfo(host.strip("[]"), 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for family, kind, protocol, _, address in found:
        with suppress(OSError), socket.socket(family, kind, protocol) as probe:
            probe.bind(address)  # only an own address can be bound
            return True
    return False
