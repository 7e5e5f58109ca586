"""Optimizer state that the workers have shared out: each gives its own to a worker that saves.

A worker that saves asks each owner, through the texts that JAX's coordinator keeps: a request names
variables and the steps that the asking worker has completed; the owner, in a thread of its own, waits until
it has completed as many, then answers with the variables' rows, 1 MiB at a time, two pieces ahead of what
was taken. No owner can be a step further meanwhile, since a step needs all workers. The rows go into a
temporary file, which the scope holds as an array until the next step.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from paddlelike.core.scope import Scope
from paddlelike.core.tensor import LoDTensor
from paddlelike.distributed.collective.jax_runtime import Notes
from paddlelike.distributed.collective.job import Job
from paddlelike.distributed.collective.sharding import Sharding

__all__ = ["Shares"]

Array = np.ndarray[Any, Any]

_PIECE: Final = 1 << 20  # bytes
_AHEAD: Final = 2  # pieces that wait to be taken
_POLL: Final = 0.1  # seconds


class Shares:
    """This worker's part of the state. ``watch(begin)`` raises the error for a lost worker."""

    def __init__(
        self, job: Job, notes: Notes, ending: threading.Event, watch: Callable[[float], None]
    ) -> None:
        self._job, self._notes, self._ending, self._watch = job, notes, ending, watch
        self._scope: Scope | None = None
        self._completed = 0
        self._is_done = threading.Condition()
        self._asked = 0
        threading.Thread(target=self._serve, name="paddlelike-shares", daemon=True).start()

    def begin_step(self, scope: Scope, sharding: Sharding) -> None:
        """Release the state of other workers."""
        self._scope = scope
        for name in sharding.find_others(self._job.rank):
            holder = scope.find_var(name)
            if holder is not None and holder.value is not None:
                holder.set_value(None)

    def end_step(self) -> None:
        """Count a completed step."""
        with self._is_done:
            self._completed += 1
            self._is_done.notify_all()

    def fetch(self, scope: Scope, sharding: Sharding, chosen: Iterable[str]) -> None:
        """Put the state that other workers hold into the scope, where it is not there already."""
        wanted: dict[int, list[str]] = {}
        for name in sorted({*sharding.find_others(self._job.rank)} & {*chosen}):
            holder = scope.find_var(name)
            if holder is None or not holder.is_initialized():
                wanted.setdefault(sharding.state[name], []).append(name)
        for owner, names in wanted.items():
            self._asked += 1
            answer = f"{owner}-{self._job.rank}-{self._asked}"
            request = json.dumps({"names": names, "completed": self._completed})
            self._notes.write_bytes(f"asked/{owner}/{answer}", request.encode())
            wait = partial(self._watch, time.monotonic())
            specs = json.loads(self._notes.take(f"specs/{answer}", wait))
            pieces = 0
            for name, (dtype, shape) in zip(names, specs, strict=True):
                array = _make_array(np.dtype(dtype), shape)
                for part in _cut(array):
                    data = self._notes.take(f"piece/{answer}/{pieces}", wait)
                    part[:] = np.frombuffer(data, array.dtype)
                    pieces += 1
                    self._notes.write_bytes(f"taken/{answer}/{pieces}", b"taken")
                scope.var(name).set_value(LoDTensor(array))

    def _serve(self) -> None:
        folder = f"asked/{self._job.rank}"
        while not self._ending.wait(_POLL):
            try:
                for name in self._notes.list_names(folder):
                    request = json.loads(self._notes.take(name, self._check))
                    self._answer(name.rpartition("/")[2], **request)
            except (RuntimeError, EOFError):  # the coordinator or the other worker is lost
                continue

    def _answer(self, answer: str, names: list[str], completed: int) -> None:
        with self._is_done:
            while self._completed < completed:
                self._is_done.wait(_POLL)
                self._check()
        assert self._scope is not None
        arrays = [np.asarray(self._scope.var(name).get_tensor()) for name in names]
        specs = [[array.dtype.str, list(array.shape)] for array in arrays]
        self._notes.write_bytes(f"specs/{answer}", json.dumps(specs).encode())
        pieces = 0
        for array in arrays:
            for part in _cut(np.ascontiguousarray(array)):
                if pieces >= _AHEAD:
                    self._notes.take(f"taken/{answer}/{pieces - _AHEAD + 1}", self._check)
                self._notes.write_bytes(f"piece/{answer}/{pieces}", part.tobytes())
                pieces += 1

    def _check(self) -> None:
        if self._ending.is_set():
            raise EOFError


def _make_array(dtype: np.dtype[Any], shape: list[int]) -> Array:
    """Return an array in a temporary file without a name."""
    if not all(shape):
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile() as file:
        return np.asarray(np.memmap(file, dtype, "w+", shape=tuple(shape)))


def _cut(array: Array) -> Iterator[Array]:
    """Return views of the elements, one piece after the other."""
    flat = array.reshape(-1)
    count = max(_PIECE // array.itemsize, 1)
    for begin in range(0, flat.size, count):
        yield flat[begin : begin + count]
