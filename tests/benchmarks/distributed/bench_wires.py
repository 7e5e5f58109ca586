"""A trainer's share of a round over the direct connections of this package, pyzmq, Arrow Flight and a raw socket.

    python -m tests.benchmarks.distributed.bench_wires [--rounds 7] [--only 0.1,10,100]

Two processes on this machine. A round is what one trainer and one server of ``bench_rounds`` exchange: 20
gradients of half of the model go there and 20 parameters come back, each in one call; the server touches every
byte that came. pyzmq sends and receives without copies and has neither tokens nor TLS here; Flight has its own
gRPC. Needs ``pip install pyzmq pyarrow``; what is not installed is left out.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from paddlelike.distributed.wire import Channel, Into, Part, Server, as_bytes, make_parts
from tests.benchmarks.distributed.bench_wire import measure, receive_into, show
from tests.benchmarks.meters import Child, answer_questions

HERE = "tests.benchmarks.distributed.bench_wires"
COUNT = 20
REPEATS = {"0.1": 100, "10": 20, "100": 3}
Array = np.ndarray[Any, Any]


def make_arrays(numbers: int) -> list[Array]:
    """The parameters of a server."""
    return [np.zeros(numbers, np.float32) for _ in range(COUNT)]


class Sums:
    """What a server does with gradients."""

    def __init__(self) -> None:
        self.arrays: dict[int, list[Array]] = {}

    def get(self, numbers: int) -> list[Array]:
        """The arrays of a size."""
        return self.arrays.setdefault(numbers, make_arrays(numbers))

    def add(self, gradients: Iterable[Array]) -> int:
        """Add gradients, and return their size."""
        gradients = list(gradients)
        for array, gradient in zip(self.get(gradients[0].size), gradients, strict=True):
            array += gradient
        return gradients[0].size


# Raw TCP


def serve_tcp() -> None:
    listener, sums = socket.create_server(("127.0.0.1", 0)), Sums()

    def answer() -> None:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        size, into = memoryview(bytearray(8)), make_arrays(1)
        while True:
            receive_into(connection, size)
            numbers = int.from_bytes(size, "little")
            if into[0].size != numbers:
                into = make_arrays(numbers)
            for array in into:
                receive_into(connection, memoryview(array).cast("B"))
            sums.add(into)
            for array in sums.get(numbers):
                connection.sendall(memoryview(array).cast("B"))

    threading.Thread(target=answer, daemon=True).start()
    answer_questions(listener.getsockname()[1])


class Tcp:
    def __init__(self, port: int) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def round(self, gradients: list[Array], into: list[Array]) -> None:
        self.connection.sendall(gradients[0].size.to_bytes(8, "little"))
        for array in gradients:
            self.connection.sendall(memoryview(array).cast("B"))
        for array in into:
            receive_into(self.connection, memoryview(array).cast("B"))


# The wire of this package


class Push:
    """Adds gradients."""

    def __init__(self, sums: Sums) -> None:
        self.sums, self.into = sums, make_arrays(1)

    def begin(self, head: dict[str, Any]) -> Into:
        if self.into[0].size != head["size"]:
            self.into = make_arrays(head["size"])
        return Into(dict(enumerate(self.into)))

    def end(self, head: dict[str, Any], receiver: Into) -> tuple[dict[str, Any], Iterable[Part]]:
        receiver.check()
        self.sums.add(self.into)
        return {}, ()


class Pull:
    """Sends parameters."""

    def __init__(self, sums: Sums) -> None:
        self.sums = sums

    def begin(self, head: dict[str, Any]) -> None:
        return None

    def end(self, head: dict[str, Any], receiver: None) -> tuple[dict[str, Any], Iterable[Part]]:
        return {}, [Part(k, 0, as_bytes(one)) for k, one in enumerate(self.sums.get(head["size"]))]


def serve_direct() -> None:
    sums = Sums()
    with Server("127.0.0.1:0", {"Push": Push(sums), "Pull": Pull(sums)}, workers=12) as server:
        answer_questions(server.port)


class Direct:
    def __init__(self, port: int) -> None:
        self.channel = Channel(f"127.0.0.1:{port}")

    def round(self, gradients: list[Array], into: list[Array]) -> None:
        direct, head = self.channel.open_direct(), {"size": gradients[0].size}
        assert direct is not None
        self.channel.call("Push", head, make_parts(dict(enumerate(gradients))), direct=direct)
        receiver, size = Into(dict(enumerate(into))), COUNT * into[0].nbytes
        self.channel.call("Pull", head, (), receiver, answer_size=size, direct=direct)
        receiver.check()


# pyzmq


def serve_zmq() -> None:
    import zmq

    replies, sums = zmq.Context().socket(zmq.REP), Sums()
    port = replies.bind_to_random_port("tcp://127.0.0.1")

    def answer() -> None:
        while True:
            frames = replies.recv_multipart(copy=False)
            if len(frames) > 1:
                sums.add(np.frombuffer(frame, np.float32) for frame in frames)
                replies.send(b"")
            else:
                replies.send_multipart(sums.get(int(frames[0].bytes)), copy=False)

    threading.Thread(target=answer, daemon=True).start()
    answer_questions(port)


class Zmq:
    def __init__(self, port: int) -> None:
        import zmq

        self.requests = zmq.Context().socket(zmq.REQ)
        self.requests.connect(f"tcp://127.0.0.1:{port}")

    def round(self, gradients: list[Array], into: list[Array]) -> None:
        self.requests.send_multipart(gradients, copy=False)
        self.requests.recv()
        self.requests.send(str(into[0].size).encode())
        for array, frame in zip(into, self.requests.recv_multipart(copy=False), strict=True):
            array[:] = np.frombuffer(frame, np.float32)


# Arrow Flight


def serve_flight() -> None:
    import pyarrow
    import pyarrow.flight

    class Service(pyarrow.flight.FlightServerBase):
        sums = Sums()

        def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
            for chunk in reader:
                self.sums.add(one.to_numpy() for one in chunk.data.columns)

        def do_get(self, context: Any, ticket: Any) -> Any:
            batch = make_batch(self.sums.get(int(ticket.ticket)))
            return pyarrow.flight.RecordBatchStream(
                pyarrow.RecordBatchReader.from_batches(batch.schema, [batch])
            )

    service = Service("grpc://127.0.0.1:0")
    threading.Thread(target=service.serve, daemon=True).start()
    answer_questions(service.port)


def make_batch(arrays: list[Array]) -> Any:
    """A record batch over the memory of arrays."""
    import pyarrow

    return pyarrow.record_batch([pyarrow.array(one) for one in arrays], list(map(str, range(COUNT))))


class Flight:
    def __init__(self, port: int) -> None:
        import pyarrow.flight

        self.flight = pyarrow.flight
        self.client = self.flight.connect(f"grpc://127.0.0.1:{port}")

    def round(self, gradients: list[Array], into: list[Array]) -> None:
        batch = make_batch(gradients)
        writer, _ = self.client.do_put(self.flight.FlightDescriptor.for_path("g"), batch.schema)
        writer.write_batch(batch)
        writer.close()
        ticket = self.flight.Ticket(str(into[0].size).encode())
        for chunk in self.client.do_get(ticket):
            for array, column in zip(into, chunk.data.columns, strict=True):
                array[:] = column.to_numpy()


_CONTENDERS: dict[str, tuple[Callable[[], None], Callable[[int], Any], str]] = {
    "tcp": (serve_tcp, Tcp, "socket"),
    "direct": (serve_direct, Direct, "grpc"),
    "pyzmq": (serve_zmq, Zmq, "zmq"),
    "flight": (serve_flight, Flight, "pyarrow"),
}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default=",".join(REPEATS), help="megabytes of the model")
    options = parser.parse_args()
    names = [name for name, (_, _, needs) in _CONTENDERS.items() if importlib.util.find_spec(needs)]
    servers = {name: Child(HERE, name) for name in names}
    clients = {name: _CONTENDERS[name][1](servers[name].hello) for name in names}
    print(f"{'':16}{'':8}{'GB/s':>8}{'cpu s/GB':>10}{'x tcp':>8}{'wall x tcp':>12}{'peak x':>8}")
    for size in options.only.split(","):
        numbers = int(float(size) * 1e6 / 4 / COUNT / 2)
        gradients = [np.ones(numbers, np.float32) for _ in range(COUNT)]
        into = make_arrays(numbers)
        found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        for client in clients.values():
            client.round(gradients, into)
            assert into[-1][-1] == 1
        for _ in range(options.rounds):
            for name, client in clients.items():
                call = functools.partial(client.round, gradients, into)
                found[name].append(measure(call, REPEATS[size], servers[name]))
        show(f"round {size} MB", 2 * COUNT * numbers * 4, found)
    for server in servers.values():
        server.end()


if __name__ == "__main__":
    _CONTENDERS[sys.argv[1]][0]() if sys.argv[1:] and sys.argv[1] in _CONTENDERS else main()
