"""JAX's distributed runtime, as one worker uses it: joining a job, its exchanges, and signs of life.

XLA uses gloo between CPUs and NCCL between GPUs. Worker 0 runs JAX's coordinator, which also keeps a few
texts by name. Workers write signs of life there, and a note when they leave.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from paddlelike.compiled.backend import load_jax, wide_types
from paddlelike.distributed.collective.job import Job
from paddlelike.distributed.collective.meeting import SAME_ENDPOINTS
from paddlelike.errors import DeadlineError, FaultError, GraphError, RoleError
from paddlelike.foundation.locks import Event, own_files

PULSE: Final = 1.0  # seconds between two signs of life
_AXIS: Final = "workers"
HINT: Final = "the launcher starts the job again; by hand, start all workers and load the last save"
Array = np.ndarray[Any, Any]


def connect(job: Job, *, window: float, lease: float, ending: Event) -> Notes:
    """Join a job through JAX's runtime; return the texts that its workers share.

    ``window`` is the time to wait for the other workers, in seconds. ``lease`` is the time after which a
    silent worker is lost, in seconds. ``ending`` is set when this process ends.

    Raises
    ------
    RoleError
        JAX has already computed something, so it cannot join a job.
    DeadlineError
        Not all workers came in time.
    """
    jax = load_jax()
    from jax._src import distributed, xla_bridge  # no public names for texts, and for gloo's address

    if xla_bridge.backends_are_initialized():
        raise RoleError(
            "JAX was used before this process joined its job, so it can no longer join",
            hint="run the startup program before anything else that computes, or set "
            "PADDLE_TRAINER_ENDPOINTS and PADDLE_TRAINER_ID, by which a process joins when JAX is loaded",
        )
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    # Else JAX aborts every process as soon as one is lost, without our error.
    jax.config.update("jax_enable_recoverability", True)
    jax.config.update("jax_enable_preemption_service", False)  # else JAX ignores SIGTERM
    joined = Event()
    handler = _exit_when_jax_aborts(job, ending, joined)
    host, _, port = job.endpoints[0].rpartition(":")
    try:
        jax.distributed.initialize(
            f"{host}:{port}",
            job.size,
            job.rank,
            local_device_ids=_read_gpus(),
            cluster_detection_method="deactivate",
            initialization_timeout=max(int(window), 1),
            heartbeat_timeout_seconds=max(int(lease), 1),
            shutdown_timeout_seconds=5,
            coordinator_bind_address=f"{host}:{port}",
        )
    except RuntimeError as error:
        raise DeadlineError(
            job.endpoints[0],
            "join",
            f"{job.name(job.rank)} could not join its job of {job.size} workers within {window:g} s: {error}",
            hint=SAME_ENDPOINTS,
        ) from error
    joined.set()
    client = distributed.global_state.client
    # Else gloo listens at the address of the machine's name, often 127.0.1.1, which other machines cannot
    # reach.
    own = job.endpoints[job.rank].rpartition(":")[0].strip("[]")
    gloo = xla_bridge._jax.make_gloo_tcp_collectives(distributed_client=client, hostname=own)
    xla_bridge.register_backend_factory("cpu", partial(xla_bridge.make_cpu_client, collectives=gloo))
    return Notes(client, handler)


def _read_gpus() -> list[int] | None:
    """Return the GPUs that the launcher assigned to this worker. None means all that JAX finds."""
    numbers = os.environ.get("FLAGS_selected_gpus", "").split(",")  # noqa: SIM112
    return [int(one) for one in numbers] if all(one.isdecimal() for one in numbers) else None


def disconnect() -> None:
    """Leave the job."""
    load_jax().distributed.shutdown()


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Redirect the process's standard output to its standard error inside the ``with``."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # one of them is closed
            (copy,) = own_files(map(os.dup, (1,)))
            stack.callback(os.dup2, copy.args[0], 1)
            os.dup2(2, 1)
        yield


def _exit_when_jax_aborts(job: Job, ending: Event, joined: Event) -> object:
    """Make this process end with the exit code for restarts if JAX's runtime aborts it.

    JAX aborts when the coordinator is lost, and in worker 0 when some worker does not join in time; no option
    prevents it. Return an object that must live as long as the process.
    """
    others = " or ".join(map(job.name, range(1, job.size)))

    def find_lost() -> str:
        if job.rank:
            return f"{job.name(0)}, which coordinates the job"
        if joined.is_set():
            return f"{others}, or was stopped itself for longer than PADDLELIKE_LEASE (JAX says above which)"
        return f"{others}, which did not join in time (JAX names it above as a task)"

    def end(number: int) -> None:
        if ending.is_set():  # the coordinator ended first
            error = getattr(sys, "last_value", None)  # that ended this process, such as our own FaultError
            os._exit(0 if error is None else getattr(error, "exit_code", 1))
        text = f"paddlelike: FaultError: lost {find_lost()}; {job.name(job.rank)} ends\n  hint: {HINT}\n"
        os.write(2, text.encode())
        os._exit(FaultError.exit_code)

    # Python's own handlers run between two steps of the main thread, which waits for the lost worker.
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(end)
    ctypes.CDLL(None).signal(signal.SIGABRT, handler)
    return handler


class Notes:
    """Short texts by name that all workers can read."""

    def __init__(self, client: Any, handler: object) -> None:
        self._client = client
        self._handler = handler  # of signals, which lives as long

    def write(self, name: str, text: str) -> None:
        """Set a text."""
        self._client.key_value_set(name, text, allow_overwrite=True)

    def write_first(self, name: str, text: str, seconds: float) -> str:
        """Set a text unless another worker has set it; return the text in effect."""
        try:
            self._client.key_value_set(name, text)
        except RuntimeError:  # it exists
            return str(self._client.blocking_key_value_get(name, int(seconds * 1000)))
        return text

    def write_bytes(self, name: str, data: bytes) -> None:
        """Set a text of bytes."""
        self._client.key_value_set_bytes(name, data, allow_overwrite=True)

    def take(self, name: str, wait: Callable[[], None]) -> bytes:
        """Wait for a text of bytes, remove it and return it; ``wait`` is called each second meanwhile."""
        while True:
            try:
                found: bytes = self._client.blocking_key_value_get_bytes(name, int(PULSE * 1000))
            except RuntimeError:  # not yet
                wait()
                continue
            self._client.key_value_delete(name)
            return found

    def list_names(self, folder: str) -> list[str]:
        """Return the names of the texts in a folder."""
        return [name for name, _ in self._client.key_value_dir_get_bytes(folder)]

    def read(self, folder: str) -> dict[int, str]:
        """Return the texts ``folder/<rank>`` by rank."""
        found = self._client.key_value_dir_get(folder)
        return {int(name.rpartition("/")[2]): text for name, text in found}


class Exchanges:
    """Exchanges of arrays between the workers, each an XLA computation on one device of every process.

    Every worker calls the same methods in the same order with arrays of the same shapes; the first call with
    a shape compares it with the shape of the other workers.
    """

    def __init__(self, job: Job, notes: Notes) -> None:
        self._job, self._notes = job, notes
        self._jax = jax = load_jax()
        by_process: dict[int, Any] = {}
        for device in jax.devices():
            by_process.setdefault(device.process_index, device)
        devices = [by_process[rank] for rank in range(job.size)]
        self._device = devices[job.rank]
        self._mesh = jax.sharding.Mesh(np.array(devices), (_AXIS,))
        self._sharding = jax.sharding.NamedSharding(self._mesh, jax.sharding.PartitionSpec(_AXIS))
        self._known: dict[Any, Callable[..., Any]] = {}

    def sum(self, value: Array) -> Array:
        """Return the sum over the workers, with the same bits on all."""
        return self._run("sum", value, lambda x: self._jax.lax.psum(x, _AXIS))

    def reduce(self, value: Array, how: str) -> Array:
        """Return the "sum", "max", "min" or "prod" over the workers."""
        if how == "sum":
            return self.sum(value)
        everything = self.gather(value[None])
        return np.asarray(_REDUCTIONS[how](everything), dtype=value.dtype)

    def gather(self, value: Array) -> Array:
        """Return the rows of all workers, one after the other."""
        return self._run("gather", value, lambda x: self._jax.lax.all_gather(x[0], _AXIS, tiled=True)[None])

    def broadcast(self, value: Array, root: int) -> Array:
        """Return the value of worker ``root``, bit for bit."""
        bits = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        padded = np.zeros(-(-bits.size // 4) * 4, np.uint8)
        if not bits.size:
            return value
        if self._job.rank == root:
            padded[: bits.size] = bits
        found = self.sum(padded.view(np.uint32)).view(np.uint8)[: bits.size]
        return found.view(value.dtype).reshape(value.shape)

    def scatter(self, value: Array) -> Array:
        """Return this worker's rows of the sum over the workers, with the same bits as ``sum``."""
        lax, count = self._jax.lax, len(value) // self._job.size

        def scatter(x: Any) -> Any:
            if self._device.platform != "cpu":
                return lax.psum_scatter(x[0], _AXIS, tiled=True)[None]
            # Not psum_scatter: over gloo (jaxlib 0.10.2) its sums of large rows are wrong now and then.
            return lax.dynamic_slice_in_dim(lax.psum(x, _AXIS), lax.axis_index(_AXIS) * count, count, axis=1)

        return self._run("scatter", value, scatter)

    def _run(self, what: str, value: Array, function: Callable[[Any], Any]) -> Array:
        jax = self._jax
        key = (what, value.shape, value.dtype.str)
        with wide_types():
            run = self._known.get(key)
            if run is None:
                self._compare(what, value)
                spec = jax.sharding.PartitionSpec(_AXIS)
                mapped = jax.shard_map(
                    function, mesh=self._mesh, in_specs=spec, out_specs=spec, check_vma=False
                )
                run = self._known[key] = jax.jit(mapped)
            part = jax.device_put(value[None], self._device)
            shape = (self._job.size, *value.shape)
            whole = jax.make_array_from_single_device_arrays(shape, self._sharding, [part])
            found: Array = np.asarray(run(whole).addressable_shards[0].data)[0]
            return found

    def _compare(self, what: str, value: Array) -> None:
        """Raise GraphError when another worker exchanges something else here."""
        mine = f"{what} of {value.dtype} {list(value.shape)}"
        name = f"exchanges/{len(self._known)}"
        stands = self._notes.write_first(name, f"{self._job.rank} {mine}", 60)
        rank, _, theirs = stands.partition(" ")
        if theirs != mine:  # W1
            raise GraphError(
                f"{self._job.name(self._job.rank)} exchanges a {mine} where {self._job.name(int(rank))} "
                f"exchanges a {theirs}",
                hint="all workers run the same programs in the same order",
            )


_REDUCTIONS: Final[Mapping[str, Callable[[Array], Any]]] = {
    "max": partial(np.max, axis=0),
    "min": partial(np.min, axis=0),
    "prod": partial(np.prod, axis=0),
}
