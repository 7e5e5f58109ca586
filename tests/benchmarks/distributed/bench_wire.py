"""What calls cost, over gRPC and over direct connections, beside a raw TCP connection with the same bytes.

    python -m tests.benchmarks.distributed.bench_wire [--rounds 7] [--only 1KB,64MB]

Two processes on this machine. A push puts an array of the client into an array of the server; a pull the other
way round. Within a round the contenders follow one another, so that what else the machine does meets all.
Shown for each: medians over the rounds of GB/s (1 KB: ms), processor seconds per GB of both processes together,
the ratios of these to TCP's in the same round, and the peak of extra memory in multiples of the payload.
"""

from __future__ import annotations

import argparse
import functools
import socket
import statistics
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from paddlelike.distributed.wire import Channel, Into, Part, Server, as_bytes, make_parts
from tests.benchmarks.meters import Child, Meter, answer_questions

HERE = "tests.benchmarks.distributed.bench_wire"
SIZES = {"1KB": 1 << 10, "1MB": 1 << 20, "64MB": 64 << 20, "256MB": 256 << 20}
REPEATS = {"1KB": 300, "1MB": 60, "64MB": 3, "256MB": 1}
_ORDER = struct.Struct("<cQ")
Array = np.ndarray[Any, Any]
Call = Callable[[], object]

# Raw TCP: one byte of what to do, the length, the bytes


def receive_into(connection: socket.socket, view: memoryview) -> None:
    got = 0
    while got < len(view):
        more = connection.recv_into(view[got:])
        if not more:
            raise EOFError
        got += more


def serve_tcp() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    arrays: dict[int, Array] = {}

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            order = memoryview(bytearray(_ORDER.size))
            while True:
                try:
                    receive_into(connection, order)
                except EOFError:
                    return
                what, size = _ORDER.unpack(order)
                array = arrays.setdefault(size, np.zeros(size, np.uint8))
                if what == b"W":
                    receive_into(connection, memoryview(array))
                    connection.sendall(b"k")
                else:
                    connection.sendall(memoryview(array))

    threading.Thread(target=answer, daemon=True).start()
    answer_questions(listener.getsockname()[1])


class Tcp:
    def __init__(self, port: int) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def push(self, array: Array) -> None:
        self.connection.sendall(_ORDER.pack(b"W", array.nbytes))
        self.connection.sendall(memoryview(array))
        assert self.connection.recv(1) == b"k"

    def pull(self, array: Array) -> None:
        self.connection.sendall(_ORDER.pack(b"R", array.nbytes))
        receive_into(self.connection, memoryview(array))

    def close(self) -> None:
        self.connection.close()


# The wire


class Keep:
    """Push and Pull of one array for each size."""

    def __init__(self) -> None:
        self.arrays: dict[int, Array] = {}

    def array(self, head: dict[str, Any]) -> Array:
        return self.arrays.setdefault(head["size"], np.zeros(head["size"], np.uint8))


class Push(Keep):
    def begin(self, head: dict[str, Any]) -> Into:
        return Into({0: self.array(head)})

    def end(self, head: dict[str, Any], receiver: Into) -> tuple[dict[str, Any], Iterable[Part]]:
        receiver.check()
        return {}, ()


class Pull(Keep):
    def begin(self, head: dict[str, Any]) -> None:
        return None

    def end(self, head: dict[str, Any], receiver: None) -> tuple[dict[str, Any], Iterable[Part]]:
        return {}, [Part(0, 0, as_bytes(self.array(head)))]


def serve_wire() -> None:
    with Server("127.0.0.1:0", {"Push": Push(), "Pull": Pull()}, workers=12) as server:
        answer_questions(server.port)


class Wire:
    def __init__(self, port: int, *, is_direct: bool) -> None:
        self.channel = Channel(f"127.0.0.1:{port}")
        self.is_direct = is_direct

    def push(self, array: Array) -> None:
        self.channel.call("Push", {"size": array.nbytes}, make_parts({0: array}), direct=self.connection())

    def pull(self, array: Array) -> None:
        into = Into({0: array})
        size = array.nbytes
        self.channel.call("Pull", {"size": size}, (), into, answer_size=size, direct=self.connection())
        into.check()

    def connection(self) -> Any:
        if not self.is_direct:
            return None
        found = self.channel.open_direct()
        assert found is not None
        return found

    def close(self) -> None:
        self.channel.close()


# Measuring


def measure(call: Call, repeats: int, server: Child) -> dict[str, float]:
    """Seconds, processor seconds of both ends, and peak memory of the worse end, each of one call."""
    meter = Meter()
    server.ask("reset")
    meter.reset()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    seconds = time.perf_counter() - start
    here, there = meter.read(), server.ask("read")
    return {
        "seconds": seconds / repeats,
        "cpu": (here["cpu"] + there["cpu"]) / repeats,
        "peak": max(here["peak"], there["peak"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default=",".join(SIZES))
    options = parser.parse_args()
    wire = Child(HERE, "serve-wire")
    servers = {"tcp": Child(HERE, "serve-tcp"), "grpc": wire, "direct": wire}
    clients: dict[str, Tcp | Wire] = {
        "tcp": Tcp(servers["tcp"].hello),
        "grpc": Wire(wire.hello, is_direct=False),
        "direct": Wire(wire.hello, is_direct=True),
    }
    print(f"{'':16}{'':8}{'GB/s':>8}{'cpu s/GB':>10}{'x tcp':>8}{'wall x tcp':>12}{'peak x':>8}")
    for size in options.only.split(","):
        array = np.random.default_rng(0).integers(0, 256, SIZES[size], np.uint8)
        for what in ("push", "pull"):
            found: dict[str, list[dict[str, float]]] = {name: [] for name in clients}
            for client in clients.values():
                getattr(client, what)(array)
            for _ in range(options.rounds):
                for name, client in clients.items():
                    call = functools.partial(getattr(client, what), array)
                    found[name].append(measure(call, REPEATS[size], servers[name]))
            show(f"{what} {size}", SIZES[size], found)
    for client in clients.values():
        client.close()
    for server in {*servers.values()}:
        server.end()


def show(title: str, size: int, found: dict[str, list[dict[str, float]]]) -> None:
    for name, rows in found.items():

        def median(key: str, rows: list[dict[str, float]] = rows) -> float:
            return statistics.median(row[key] for row in rows)

        def ratio(key: str, rows: list[dict[str, float]] = rows) -> float:
            return statistics.median(row[key] / tcp[key] for row, tcp in zip(rows, found["tcp"], strict=True))

        is_small = size < 1 << 16
        speed = 1e3 * median("seconds") if is_small else size / median("seconds") / 1e9
        print(
            f"{title + (' (ms)' if is_small else ''):16}{name:8}{speed:8.3f}{median('cpu') / size * 1e9:10.3f}"
            f"{ratio('cpu'):8.2f}{ratio('seconds'):12.2f}{median('peak') / size:8.2f}",
            flush=True,
        )


if __name__ == "__main__":
    {"serve-tcp": serve_tcp, "serve-wire": serve_wire}.get(sys.argv[1] if sys.argv[1:] else "", main)()
