"""Processes on a Ray cluster: an actor per process, which Ray places, watches and starts again.

Ray launches and supervises, nothing more: parameters and gradients never pass through it. Every actor runs
one process, with the same environment variables as anywhere else; if the actor is killed, so is the process.
Nodes need this package, and the script and its data under the same paths.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from paddlelike.distributed.launch.local import LocalSlot
from paddlelike.distributed.launch.plan import (
    LOOPBACK,
    JobPlan,
    ProcessPlan,
    free_endpoints,
    is_loopback_job,
)
from paddlelike.distributed.launch.viewer import Viewer
from paddlelike.errors import DeadlineError, ExtraMissingError

__all__ = ["RaySlot", "RoleActor", "ray_job"]

#: What of the launcher's environment goes to the nodes.
_PASSED_ON: Final = (
    "PADDLELIKE_",
    "FLAGS_",
    "CPU_NUM",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PYTHONPATH",
)
_PLACING: Final = 300.0  # seconds that a cluster may take to make room, for instance by growing
_LOST: Final = 5.0  # seconds for an answer of an actor that may be gone


class RoleActor:
    """Runs one process on the node where Ray placed it; its methods are Ray's calls."""

    def __init__(self) -> None:
        self._slot: LocalSlot | None = None

    async def host(self) -> str:
        """The address of this node."""
        import ray

        here = ray.get_runtime_context().get_node_id()
        nodes = ray.nodes()  # type: ignore[no-untyped-call, unused-ignore]
        (host,) = (str(node["NodeManagerAddress"]) for node in nodes if node["NodeID"] == here)
        return host

    async def endpoints(self, host: str | None, count: int) -> tuple[str, ...]:
        """Endpoints on this node that nobody uses: on that address, or None for loopback."""
        if host is None:
            return free_endpoints(count)
        with ExitStack() as held:
            sockets = [held.enter_context(socket.socket()) for _ in range(count)]
            for one in sockets:
                one.bind((host, 0))
            return tuple(f"{host}:{one.getsockname()[1]}" for one in sockets)

    async def run(
        self,
        plan: ProcessPlan,
        command: Sequence[str],
        passed_on: Mapping[str, str],
        place: _Place,
        attempt: int,
    ) -> int:
        """Run the process; its exit code."""
        environment = dict(os.environ) | dict(passed_on)
        self._slot = LocalSlot(
            plan, command, log_dir=place.log_dir, environment=environment, directory=place.directory
        )
        return await self._slot.run(attempt=attempt)

    async def send(self, number: int) -> None:
        """Send a signal to the process."""
        if self._slot is not None:
            await self._slot.send(number)

    async def tail(self) -> str:
        """The end of its log."""
        return "" if self._slot is None else await self._slot.tail()

    async def pids(self) -> tuple[int, int | None]:
        """This actor's process and the one it runs."""
        return os.getpid(), None if self._slot is None else self._slot.pid


@dataclass(frozen=True, slots=True)
class _Place:
    directory: Path
    log_dir: Path | None


class RaySlot:
    """The place of one process on a cluster; a ``Slot``."""

    def __init__(self, actor: Any, ray: Any, command: Sequence[str], place: _Place) -> None:
        self.actor = actor
        self.plan = ProcessPlan("worker", 0, "", "", {})  # filled before each attempt
        self.passed_on: Mapping[str, str] = {}
        self._ray = ray
        self._command = command
        self._place = place

    async def run(self, *, attempt: int) -> int:
        try:
            call = self.actor.run.remote(self.plan, self._command, self.passed_on, self._place, attempt)
            return int(await call)
        except self._ray.exceptions.RayActorError:
            return -signal.SIGKILL  # the actor is lost, and the kernel killed the process with it

    async def send(self, number: int) -> None:
        with suppress(self._ray.exceptions.RayActorError, TimeoutError):
            await asyncio.wait_for(asyncio.shield(_answer(self.actor.send.remote(number))), _LOST)

    async def tail(self) -> str:
        try:
            return str(await asyncio.wait_for(_answer(self.actor.tail.remote()), _LOST))
        except (self._ray.exceptions.RayActorError, TimeoutError):
            return ""


async def _answer(reference: Any) -> Any:
    return await reference


class _RayJob:
    """The slots of a job; servers' endpoints are known once Ray has placed their actors."""

    def __init__(self, servers: Sequence[RaySlot], workers: Sequence[RaySlot], viewer: Viewer) -> None:
        self.slots = [*servers, *workers]
        self._servers = servers
        self._workers = workers
        self._viewer = viewer
        self._token = secrets.token_hex(16)

    async def prepare(self) -> None:
        """Ask where the actors are, which may be elsewhere after a node was lost, and plan the job there."""
        hosts = await asyncio.gather(*(_answer(slot.actor.host.remote()) for slot in self.slots))
        number = len(self._servers)
        if len(set(hosts)) == 1:  # one machine: nobody else need be able to connect
            found = [await self._servers[0].actor.endpoints.remote(None, number)]
            hosts = [LOOPBACK] * len(hosts)
        else:
            asked = [
                slot.actor.endpoints.remote(host, 1) for slot, host in zip(self._servers, hosts, strict=False)
            ]
            found = await asyncio.gather(*map(_answer, asked))
        endpoints = [endpoint for some in found for endpoint in some]
        job = JobPlan(tuple(endpoints), tuple(hosts[number:]))
        passed_on = {name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)}
        if is_loopback_job(job):
            passed_on.setdefault("PADDLELIKE_JOB_TOKEN", self._token)
        for slot, plan in zip(self.slots, job.processes(), strict=True):
            slot.plan, slot.passed_on = plan, passed_on
        self._viewer.tell(f"servers {','.join(endpoints)}, workers on {','.join(hosts[number:])}")
        self._viewer.watch(endpoints, os.environ | passed_on)


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
    """A job's slots on a cluster, whose actors end with the context.

    Parameters
    ----------
    servers, workers
        How many processes of each kind, one CPU each.
    command
        What every process runs.
    log_dir
        Where logs go, on the node of the process.
    address
        Of a cluster; None starts one on this machine that ends with the context.
    viewer
        Is told where the processes are, and watches them.

    Raises
    ------
    ExtraMissingError
        Ray is not installed.
    DeadlineError
        The cluster has no room.
    """
    ray = _connect(address, servers + workers)
    try:
        from ray.util.placement_group import placement_group, remove_placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        group = placement_group([{"CPU": 1}] * (servers + workers), strategy="SPREAD")
        try:
            if not await asyncio.to_thread(group.wait, _PLACING):
                has = ray.cluster_resources().get("CPU", 0)
                raise DeadlineError(
                    address or "the cluster",
                    "placing",
                    f"no room after {_PLACING:g} s for {servers + workers} processes of one CPU each; "
                    f"it has {has:g} CPUs in all",
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
                    _Place(Path.cwd(), log_dir),
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
    """Ray, connected to a cluster."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None:
        # A cluster of this job alone has a secret of its own, and leaves none in the home directory.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray
    except ImportError as error:
        raise ExtraMissingError(
            f"--engine ray needs Ray: {error}", hint='pip install "paddlelike[ray]"'
        ) from error
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if address is not None:
        ray.init(address=address, **quiet)
    else:
        ray.init(
            address="local",
            num_cpus=processes,
            include_dashboard=False,
            object_store_memory=80 << 20,  # the least that it accepts: nothing is stored there
            _node_ip_address=LOOPBACK,
            **quiet,
        )
    return ray
