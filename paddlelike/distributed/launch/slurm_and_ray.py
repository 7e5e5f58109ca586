"""The machines of a job: those of Slurm's job step, by its environment variables, and those of a Ray cluster.

Slurm's host lists are expanded as by ``scontrol show hostnames``: ``gpu[01-03,7],login``. Kubernetes starts
each process itself: ``tutorials/04_kubernetes.yaml``.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from paddlelike.distributed.launch.local import LocalSlot
from paddlelike.distributed.launch.processes_plan import (
    LOOPBACK,
    JobPlan,
    ProcessPlan,
    free_endpoints,
    is_loopback_job,
)
from paddlelike.distributed.launch.viewer import Viewer
from paddlelike.errors import DeadlineError, ExtraMissingError, RoleError
from paddlelike.import_paddle import add_to_path

_RANGES = re.compile(r"\[(\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)\]")
_ITEM = re.compile(rf"((?:[^,\[\]]|{_RANGES.pattern})+)(?:,|$)")


def read_machines(environ: Mapping[str, str]) -> tuple[tuple[str, ...], str] | None:
    """Return the machines of this job step, and this one's index; None for fewer than two.

    Raises RoleError for variables that contradict each other.
    """
    text, index = environ.get("SLURM_STEP_NODELIST", ""), environ.get("SLURM_NODEID", "")
    hosts = expand_hosts(text) if text else ()
    if len(hosts) < 2:
        return None
    if not index.isdecimal() or int(index) >= len(hosts):
        raise RoleError(
            f"SLURM_NODEID is {index!r}, but SLURM_STEP_NODELIST={text} has {len(hosts)} machines"
        )
    return hosts, hosts[int(index)]


def expand_hosts(text: str) -> tuple[str, ...]:
    """Return the hosts of a list. Raises RoleError for an invalid host.

    >>> expand_hosts("gpu[01-03,7],login")
    ('gpu01', 'gpu02', 'gpu03', 'gpu7', 'login')
    """
    items = [item[0] for item in _ITEM.findall(text)]
    parts = [_expand(item) for item in items]
    if ",".join(items) != text or not all(parts):
        raise RoleError(
            f"the host list {text!r} is not understood",
            hint="give --cluster_node_ips and --node_ip; `scontrol show hostnames` prints the hosts",
        )
    return tuple(host for part in parts for host in part)


def _expand(item: str) -> list[str]:
    match = _RANGES.search(item)
    if match is None:
        return [item]
    numbers: list[str] = []
    for part in match[1].split(","):
        first, _, last = part.partition("-")
        numbers += [f"{one:0{len(first)}d}" for one in range(int(first), int(last or first) + 1)]
    begin = item[: match.start()]
    return [begin + number + rest for number in numbers for rest in _expand(item[match.end() :])]


#: Prefixes of the launcher's environment variables that are passed on to the nodes.
_PASSED_ON: Final = (
    "PADDLELIKE_",
    "FLAGS_",
    "CPU_NUM",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PYTHONPATH",
)
_PLACING: Final = 300.0  # seconds that a cluster has to provide the CPUs, for instance by growing
_LOST: Final = 5.0  # seconds for an answer of an actor that may be lost


class RoleActor:
    """The Ray actor that runs one process on its node."""

    def __init__(self) -> None:
        self._slot: LocalSlot | None = None

    async def host(self) -> str:
        """Return the address of this node."""
        import ray

        here = ray.get_runtime_context().get_node_id()
        nodes = ray.nodes()  # type: ignore[no-untyped-call, unused-ignore]
        (host,) = (str(node["NodeManagerAddress"]) for node in nodes if node["NodeID"] == here)
        return host

    async def endpoints(self, host: str | None, count: int) -> tuple[str, ...]:
        """Return unused endpoints on this node, on that address or, for None, on the loopback address."""
        return free_endpoints(count, host)

    async def run(
        self,
        plan: ProcessPlan,
        command: Sequence[str],
        passed_on: Mapping[str, str],
        paths: _Paths,
        attempt: int,
    ) -> int:
        """Run the process and return its exit code."""
        environment = add_to_path(dict(os.environ) | dict(passed_on))
        self._slot = LocalSlot(
            plan, command, log_dir=paths.log_dir, environment=environment, directory=paths.directory
        )
        return await self._slot.run(attempt=attempt)

    async def send(self, signum: int) -> None:
        """Send a signal to the process, if it was started."""
        if self._slot is not None:
            await self._slot.send(signum)

    async def tail(self) -> str:
        """Return the last lines of its log."""
        return "" if self._slot is None else await self._slot.tail()

    async def pids(self) -> tuple[int, int | None]:
        """Return the process ids of this actor and of the process that it runs."""
        return os.getpid(), None if self._slot is None else self._slot.pid


@dataclass(frozen=True, slots=True)
class _Paths:
    directory: Path
    log_dir: Path | None


class RaySlot:
    """Runs one process on a cluster; a ``Slot``."""

    def __init__(self, actor: Any, ray: Any, command: Sequence[str], paths: _Paths) -> None:
        self.actor = actor
        self.plan = ProcessPlan("worker", 0, "", "", {})  # replaced before each attempt
        self.passed_on: Mapping[str, str] = {}
        self._ray = ray
        self._command = command
        self._paths = paths

    async def run(self, *, attempt: int) -> int:
        """Run the process on its node and return its exit code; a lost actor counts as killed."""
        try:
            call = self.actor.run.remote(self.plan, self._command, self.passed_on, self._paths, attempt)
            return int(await call)
        except self._ray.exceptions.RayActorError:
            return -signal.SIGKILL  # the kernel kills the process with its actor

    async def send(self, signum: int) -> None:
        """Send a signal to the process, unless its actor is lost."""
        with suppress(self._ray.exceptions.RayActorError, TimeoutError):
            await asyncio.wait_for(asyncio.shield(_answer(self.actor.send.remote(signum))), _LOST)

    async def tail(self) -> str:
        """Return the last lines of its log; none if the actor is lost."""
        try:
            return str(await asyncio.wait_for(_answer(self.actor.tail.remote()), _LOST))
        except (self._ray.exceptions.RayActorError, TimeoutError):
            return ""


async def _answer(reference: Any) -> Any:
    return await reference


class _RayJob:
    """The slots of a job; endpoints are known once Ray has placed the actors that listen there."""

    def __init__(self, servers: Sequence[RaySlot], workers: Sequence[RaySlot], viewer: Viewer) -> None:
        self.slots = [*servers, *workers]
        self._servers = servers
        self._workers = workers
        self._viewer = viewer
        self._token = secrets.token_hex(16)

    async def prepare(self) -> None:
        """Ask for the hosts of the actors, which change when a node is lost, and plan the job on them."""
        hosts = await asyncio.gather(*(_answer(slot.actor.host.remote()) for slot in self.slots))
        count = len(self._servers)
        listening = self._servers or self.slots  # workers alone have endpoints as well
        if len(set(hosts)) == 1:  # one machine: no other one needs to connect
            host = None if self._servers else LOOPBACK
            groups = [await listening[0].actor.endpoints.remote(host, len(listening))]
            hosts = [LOOPBACK] * len(hosts)
        else:
            calls = [
                slot.actor.endpoints.remote(host, 1) for slot, host in zip(listening, hosts, strict=False)
            ]
            groups = await asyncio.gather(*map(_answer, calls))
        endpoints = tuple(endpoint for group in groups for endpoint in group)
        trainers = () if self._servers else endpoints
        job = JobPlan(endpoints[:count], tuple(hosts[count:]), trainers)
        passed_on = {name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)}
        if is_loopback_job(job):
            passed_on.setdefault("PADDLELIKE_JOB_TOKEN", self._token)
        for slot, plan in zip(self.slots, job.processes(), strict=True):
            slot.plan, slot.passed_on = plan, passed_on
        lead = f"servers {','.join(job.servers)}, " if job.servers else ""
        self._viewer.report(f"{lead}workers on {','.join(hosts[count:])}")
        if job.servers:
            self._viewer.watch(job.servers, os.environ | passed_on)


@asynccontextmanager
async def ray_job(
    *,
    servers: int,
    workers: int,
    command: Sequence[str],
    log_dir: Path | None,
    address: str | None,
    viewer: Viewer,
) -> AsyncIterator[_RayJob]:
    """Yield a job on a cluster, whose actors end with the context.

    Parameters
    ----------
    servers, workers
        The number of processes of each kind, one CPU each.
    command
        The command line of every process.
    log_dir
        The directory of the logs, on the node of each process.
    address
        The cluster; None starts one on this machine that ends with the context.
    viewer
        Shows where the processes are, and watches them.

    Raises
    ------
    ExtraMissingError
        Ray is not installed.
    DeadlineError
        The cluster has too few free CPUs.
    """
    ray = _connect(address, servers + workers)
    try:
        from ray.util.placement_group import placement_group, remove_placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        group = placement_group([{"CPU": 1}] * (servers + workers), strategy="SPREAD")
        try:
            if not await asyncio.to_thread(group.wait, _PLACING):
                cpus = ray.cluster_resources().get("CPU", 0)
                raise DeadlineError(
                    address or "the cluster",
                    "placing",
                    f"no free CPUs after {_PLACING:g} s for {servers + workers} processes of one CPU each; "
                    f"the cluster has {cpus:g} CPUs in all",
                    hint="start fewer processes, or add nodes",
                )
            slots = [
                RaySlot(
                    ray.remote(RoleActor)
                    .options(
                        num_cpus=1,
                        max_restarts=-1,
                        scheduling_strategy=PlacementGroupSchedulingStrategy(
                            placement_group=group, placement_group_bundle_index=index
                        ),
                    )
                    .remote(),
                    ray,
                    command,
                    _Paths(Path.cwd(), log_dir),
                )
                for index in range(servers + workers)
            ]
            try:
                yield _RayJob(slots[:servers], slots[servers:], viewer)
            finally:
                for slot in slots:
                    ray.kill(slot.actor)
        finally:
            remove_placement_group(group)
    finally:
        await asyncio.to_thread(ray.shutdown)


def _connect(address: str | None, processes: int) -> Any:
    """Connect to a cluster and return the module ``ray``. Raises ExtraMissingError without Ray."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None:
        # A cluster for this job alone gets its own secret, which is not left in the home directory.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray
    except ImportError as error:
        raise ExtraMissingError(f"--engine ray needs Ray: {error}", extra="ray") from error
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if address is not None:
        ray.init(address=address, **quiet)
    else:
        ray.init(
            address="local",
            num_cpus=processes,
            include_dashboard=False,
            object_store_memory=80 << 20,  # the minimum: nothing is stored there
            _node_ip_address=LOOPBACK,
            **quiet,
        )
    return ray
