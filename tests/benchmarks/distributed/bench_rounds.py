"""Rounds of synchronous training per second, beside raw TCP connections that carry the same bytes.

    python -m tests.benchmarks.distributed.bench_rounds [--sets 7] [--only 0.1,10,100]

Two trainers and two servers, four processes on this machine. A model is 40 parameters, 20 on each server; every
round each trainer sends all gradients and gets all parameters. The contenders:

tcp      sockets and numpy alone: no headers, no protocol, one process dies and all is lost
tcp2     the same in two trips: a server applies a round when every server has all gradients
runtime  the servers run their transpiled programs; the trainers have their gradients ready
script   the trainers run their transpiled program with the executor

The contenders take turns in sets of rounds, so that what else the machine does meets all of them. Shown are
medians over the sets: rounds per second, processor ms per round of the four processes together, and the ratio of
these to TCP's in the same set; and the peak memory of the largest trainer and server.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import paddlelike as fluid
from tests.benchmarks.distributed.bench_wire import receive_into
from tests.benchmarks.meters import Child, Meter, answer_questions

HERE = "tests.benchmarks.distributed.bench_rounds"
COUNT = 40  # parameters
ROUNDS = {"0.1": 100, "10": 15, "100": 3}  # in a set, by megabytes of the model
RATE = 0.01
Array = np.ndarray[Any, Any]
_HELLO = struct.Struct("<I")


def numbers(megabytes: str) -> int:
    """Float32 numbers in each parameter."""
    return int(float(megabytes) * 1e6 / 4 / COUNT)


def free_ports(count: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


# Raw TCP


def serve_tcp2(megabytes: str, ports: str, me: str) -> None:
    serve_tcp(megabytes, ports, me, is_confirmed=True)


def train_tcp2(megabytes: str, ports: str, me: str) -> None:
    train_tcp(megabytes, ports, me, is_confirmed=True)


def serve_tcp(megabytes: str, ports: str, me: str, *, is_confirmed: bool = False) -> None:
    """Sums what both trainers send, takes a step, answers with the parameters."""
    size = numbers(megabytes)
    parameters = [np.zeros(size, np.float32) for _ in range(COUNT // 2)]
    gradients = [[np.zeros(size, np.float32) for _ in range(COUNT // 2)] for _ in range(2)]
    barrier = threading.Barrier(2)
    listener = socket.create_server(("127.0.0.1", int(ports.split(",")[int(me)])))

    def step() -> None:
        for parameter, one, other in zip(parameters, *gradients, strict=True):
            np.add(one, other, out=one)
            one *= np.float32(RATE / 2)
            np.subtract(parameter, one, out=parameter)

    def answer(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        order = memoryview(bytearray(_HELLO.size))
        with connection:
            while True:
                try:
                    receive_into(connection, order)
                except EOFError:
                    return
                trainer = _HELLO.unpack(order)[0]
                for gradient in gradients[trainer]:
                    receive_into(connection, memoryview(gradient).cast("B"))
                if is_confirmed:
                    connection.sendall(order)
                    receive_into(connection, order)
                if barrier.wait() == 0:
                    step()
                barrier.wait()
                for parameter in parameters:
                    connection.sendall(memoryview(parameter).cast("B"))

    def accept() -> None:
        for _ in range(2):
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    answer_questions({})


def train_tcp(megabytes: str, ports: str, me: str, *, is_confirmed: bool = False) -> None:
    size = numbers(megabytes)
    connections = [socket.create_connection(("127.0.0.1", int(port))) for port in ports.split(",")]
    gradients = [np.full(size, 1.0, np.float32) for _ in range(COUNT // 2)]
    parameters = [[np.zeros(size, np.float32) for _ in range(COUNT // 2)] for _ in connections]
    arrived = threading.Barrier(2)

    def one(server: int) -> None:
        connection = connections[server]
        connection.sendall(_HELLO.pack(int(me)))
        for gradient in gradients:
            connection.sendall(memoryview(gradient).cast("B"))
        if is_confirmed:
            receive_into(connection, memoryview(bytearray(_HELLO.size)))
            arrived.wait()
            connection.sendall(_HELLO.pack(int(me)))
        for parameter in parameters[server]:
            receive_into(connection, memoryview(parameter).cast("B"))

    def step() -> None:
        other = threading.Thread(target=one, args=(1,))
        other.start()
        one(0)
        other.join()

    for connection in connections:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    run_sets(step)
    for connection in connections:
        connection.close()


# The package


def transpiled(megabytes: str, ports: str, me: str) -> tuple[Any, list[str]]:
    """The transpiler after a program of 40 parameters whose gradients cost next to nothing."""
    size = numbers(megabytes)
    means = []
    for number in range(COUNT):
        zero = fluid.initializer.Constant(0.0)
        parameter = fluid.layers.create_parameter([size], "float32", f"w{number}", default_initializer=zero)
        means.append(fluid.layers.mean(parameter))
    fluid.optimizer.SGD(RATE).minimize(fluid.layers.sums(means))
    endpoints = [f"127.0.0.1:{port}" for port in ports.split(",")]
    config = fluid.DistributeTranspilerConfig()
    config.slice_var_up = False
    transpiler = fluid.DistributeTranspiler(config)
    transpiler.transpile(int(me), pservers=",".join(endpoints), trainers=2)
    return transpiler, endpoints


def serve(megabytes: str, ports: str, me: str) -> None:
    transpiler, endpoints = transpiled(megabytes, ports, "0")
    program, startup = transpiler.get_pserver_programs(endpoints[int(me)])
    executor = fluid.Executor()
    executor.run(startup)
    threading.Thread(target=answer_then_end, daemon=True).start()
    executor.run(program)


def answer_then_end() -> None:
    """Answer the parent; a server whose parent died would wait for its trainers for ever."""
    answer_questions({})
    time.sleep(10)
    os._exit(1)


def train_runtime(megabytes: str, ports: str, me: str) -> None:
    from paddlelike.distributed.client.client import Client
    from paddlelike.distributed.placement import Kind

    _, endpoints = transpiled(megabytes, ports, me)
    trainer = Client(int(me), endpoints)
    ready: list[tuple[str, str, Array]] = []
    wanted: list[tuple[str, str]] = []
    for endpoint, table in zip(endpoints, trainer.tables, strict=True):
        gradients = table.having(Kind.GRADIENT)
        ready += [(endpoint, entry.name, np.full(entry.shape, 1.0, np.float32)) for entry in gradients]
        wanted += [(endpoint, entry.name) for entry in table.having(Kind.PARAMETER)]

    def step() -> None:
        for gradient in ready:
            trainer.stage(*gradient)
        trainer.push()
        for parameter in wanted:
            trainer.parameter(*parameter)

    run_sets(step)
    trainer.close()


def train_script(megabytes: str, ports: str, me: str) -> None:
    transpiler, _ = transpiled(megabytes, ports, me)
    program = transpiler.get_trainer_program()
    executor = fluid.Executor()
    executor.run(fluid.default_startup_program())
    run_sets(lambda: executor.run(program))
    executor.close()


# Measuring


def run_sets(step: Callable[[], object]) -> None:
    """In a trainer: carry out as many rounds as the parent says, and tell what they cost."""
    meter = Meter()
    print(json.dumps({}), flush=True)
    for line in sys.stdin:
        meter.reset()
        start = time.perf_counter()
        for _ in range(int(line)):
            step()
        print(json.dumps({"seconds": time.perf_counter() - start, **meter.read()}), flush=True)


class Job:
    """Two servers and two trainers of one contender."""

    def __init__(self, servers: str, trainers: str, megabytes: str) -> None:
        ports = ",".join(map(str, free_ports(2)))
        self.servers = [Child(HERE, servers, megabytes, ports, str(n)) for n in range(2)]
        self.trainers = [Child(HERE, trainers, megabytes, ports, str(n), hello=False) for n in range(2)]
        for trainer in self.trainers:
            trainer.receive()

    def run(self, rounds: int) -> dict[str, float]:
        for server in self.servers:
            server.ask("reset")
        for trainer in self.trainers:
            trainer.tell(str(rounds))
        told = [trainer.receive() for trainer in self.trainers]
        there = [server.ask("read") for server in self.servers]
        return {
            "seconds": max(one["seconds"] for one in told) / rounds,
            "cpu": sum(one["cpu"] for one in told + there) / rounds,
            "trainer": max(one["high"] for one in told),
            "server": max(one["high"] for one in there),
        }

    def end(self) -> None:
        for trainer in self.trainers:
            trainer.close()
        for child in self.trainers + self.servers:
            child.end()


CONTENDERS = {
    "tcp": ("serve_tcp", "train_tcp"),
    "tcp2": ("serve_tcp2", "train_tcp2"),
    "runtime": ("serve", "train_runtime"),
    "script": ("serve", "train_script"),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", type=int, default=7)
    parser.add_argument("--only", default=",".join(ROUNDS))
    parser.add_argument("--contenders", default=",".join(CONTENDERS))
    options = parser.parse_args()
    print(
        f"{'MB':>6} {'':8}{'rounds/s':>10}{'of tcp':>8}{'cpu ms':>10}{'x tcp':>8}{'MB trainer':>12}{'server':>8}"
    )
    for megabytes in options.only.split(","):
        jobs = {name: Job(*CONTENDERS[name], megabytes) for name in options.contenders.split(",")}
        found: dict[str, list[dict[str, float]]] = {name: [] for name in jobs}
        for job in jobs.values():
            job.run(2)
        for _ in range(options.sets):
            for name, job in jobs.items():
                found[name].append(job.run(ROUNDS[megabytes]))
        for name, job in jobs.items():
            job.end()
            show(megabytes, name, found)


def show(megabytes: str, name: str, found: dict[str, list[dict[str, float]]]) -> None:
    def median(key: str) -> float:
        return statistics.median(row[key] for row in found[name])

    def ratio(key: str) -> float:
        rows = zip(found[name], found.get("tcp", found[name]), strict=True)
        return statistics.median(one[key] / tcp[key] for one, tcp in rows)

    print(
        f"{megabytes:>6} {name:8}{1 / median('seconds'):10.1f}{1 / ratio('seconds'):8.2f}{1e3 * median('cpu'):10.1f}"
        f"{ratio('cpu'):8.2f}{median('trainer') / 1e6:12.0f}{median('server') / 1e6:8.0f}",
        flush=True,
    )


if __name__ == "__main__":
    parts = [serve_tcp, train_tcp, serve_tcp2, train_tcp2, serve, train_runtime, train_script]
    chosen = {part.__name__: part for part in parts}.get(sys.argv[1] if len(sys.argv) > 1 else "")
    if chosen is None:
        main()
    else:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        chosen(*sys.argv[2:])
