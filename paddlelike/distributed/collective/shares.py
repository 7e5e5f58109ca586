"""Optimizer state divided among the workers: each sends its part to a worker that saves.

A worker that saves writes a request to each owner into the texts that JAX's coordinator keeps. It names
variables, and the counts of completed steps and of loads since then. A thread of the owner waits until the
owner's counts are equal. It answers with the variables' dtypes and shapes, an address, and a token for one
connection that sends the elements. No owner can be a step ahead, since a step needs all workers. The elements
go into temporary files; the scope holds them as arrays until the next step.
"""

from __future__ import annotations

import hmac
import json
import math
import os
import secrets
import socket
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final, NoReturn

import numpy as np

from paddlelike.core import Array, LoDTensor, Scope
from paddlelike.distributed.collective.jax_runtime import PULSE, Notes
from paddlelike.distributed.collective.job import Job
from paddlelike.distributed.collective.sharding import Sharding
from paddlelike.foundation.locks import Condition, Event
from paddlelike.foundation.threads import Thread

_Watch = Callable[[float], None]
_Fail = Callable[[Exception], NoReturn]

_PIECE: Final = 1 << 22  # bytes that one call sends or receives
_POLL: Final = 0.1  # seconds
_CONNECT: Final = 10.0  # seconds


class Shares:
    """This worker's part of the state.

    ``watch(begin)`` raises the error for a lost worker, if any; ``fail(error)`` waits until a worker is lost.
    """

    def __init__(self, job: Job, notes: Notes, ending: Event, watch: _Watch, fail: _Fail) -> None:
        self._job, self._notes, self._ending, self._watch, self._fail = job, notes, ending, watch, fail
        self._scope: Scope | None = None
        self._released: weakref.WeakSet[Scope] = weakref.WeakSet()
        self._completed = [0, 0]  # steps, and loads since the last of them
        self._is_done = Condition()
        self._asked = 0
        Thread(self._serve, "paddlelike-shares").start()

    def release(self, scope: Scope, sharding: Sharding) -> None:
        """Release the state of other workers."""
        self._scope = scope
        self._released.add(scope)
        for name in sharding.find_others(self._job.rank):
            holder = scope.find_var(name)
            if holder is not None and holder.value is not None:
                holder.set_value(None)

    def may_release(self, scope: Scope) -> bool:
        """Return whether the state that this worker sends to saves exists in this scope alone."""
        return self._scope is None or self._scope is scope

    def has_released(self, scope: Scope) -> bool:
        """Return whether a scope contains only this worker's state."""
        return scope in self._released

    def count(self, *, is_step: bool) -> None:
        """Count a completed step, or a load."""
        with self._is_done.hold():
            steps, loads = self._completed
            self._completed = [steps + 1, 0] if is_step else [steps, loads + 1]
            self._is_done.notify_all()

    def fetch(self, scope: Scope, sharding: Sharding, chosen: Iterable[str]) -> None:
        """Fetch the state of other workers into the scope, unless it is there already."""
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
            found = json.loads(self._notes.take(f"specs/{answer}", wait))
            arrays = [_make_array(np.dtype(dtype), shape) for dtype, shape in found["specs"]]
            try:
                with socket.create_connection(tuple(found["address"]), _CONNECT) as connection:
                    connection.sendall(found["token"].encode())
                    connection.settimeout(PULSE)
                    for array in arrays:
                        _transfer(connection.recv_into, array, self._watch)
            except OSError as error:
                self._fail(error)
            for name, array in zip(names, arrays, strict=True):
                scope.var(name).set_value(LoDTensor(array))

    def _serve(self) -> None:
        folder = f"asked/{self._job.rank}"
        while not self._ending.wait(_POLL):
            try:
                for name in self._notes.list_names(folder):
                    request = json.loads(self._notes.take(name, self._check))
                    self._answer(name.rpartition("/")[2], **request)
            except (RuntimeError, EOFError, OSError):  # the coordinator or the other worker is lost
                continue

    def _answer(self, answer: str, names: list[str], completed: list[int]) -> None:
        with self._is_done.hold():
            while self._completed < completed:
                self._is_done.wait(_POLL)
                self._check()
        assert self._scope is not None
        arrays = [np.asarray(self._scope.var(name).get_tensor()) for name in names]
        host, token = self._job.endpoints[self._job.rank].rpartition(":")[0].strip("[]"), secrets.token_hex()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, 0), family=family) as server:
            server.settimeout(PULSE)
            specs = [[array.dtype.str, list(array.shape)] for array in arrays]
            found = {"specs": specs, "address": server.getsockname()[:2], "token": token}
            self._notes.write_bytes(f"specs/{answer}", json.dumps(found).encode())
            with self._accept(server, token.encode()) as connection:
                connection.settimeout(PULSE)
                for array in arrays:
                    _transfer(connection.send, np.ascontiguousarray(array), self._check)

    def _accept(self, server: socket.socket, token: bytes) -> socket.socket:
        """Return the connection that presents the token. Raises EOFError when this process ends."""
        while True:
            self._check()
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            connection.settimeout(_CONNECT)
            with suppress(OSError):
                if hmac.compare_digest(connection.makefile("rb").read(len(token)), token):
                    return connection
            connection.close()

    def _check(self, begin: float = 0) -> None:
        if self._ending.is_set():
            raise EOFError


def _make_array(dtype: np.dtype[Any], shape: list[int]) -> Array:
    """Return an array in a temporary file without a name."""
    if not all(shape):
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile() as file:
        if hasattr(os, "posix_fallocate"):  # a full disk is an error now
            os.posix_fallocate(file.fileno(), 0, math.prod(shape) * dtype.itemsize)
        return np.asarray(np.memmap(file, dtype, "r+" if file.seek(0, 2) else "w+", shape=tuple(shape)))


def _transfer(move: Callable[[memoryview], int], array: Array, watch: _Watch) -> None:
    """Send or receive all elements; in each second without data, call ``watch`` with the time of the last
    byte.
    """
    rest, begin = array.reshape(-1).view(np.uint8).data, time.monotonic()
    while rest:
        try:
            count = move(rest[:_PIECE])
        except TimeoutError:
            watch(begin)
            continue
        if not count:
            raise ConnectionError("the other worker closed the connection")
        rest, begin = rest[count:], time.monotonic()
