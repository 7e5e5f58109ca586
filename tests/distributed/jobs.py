"""Jobs of servers and trainers in the threads of one test, each with programs, executor and scope."""

from __future__ import annotations

import concurrent.futures
import itertools
import os
import random
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

import paddlelike as fluid
from tests.helpers.fresh import fresh_programs

Feed = dict[str, Any]
SEED = 2020


def _own_ports() -> Iterator[int]:
    """Ports outside of what is given to whoever asks for any; other processes of these tests have others."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8
    ports = list(range(20000 + 1000 * worker, 21000 + 1000 * worker))
    random.Random(os.getpid()).shuffle(ports)  # another one than that of a run which has just ended
    return itertools.cycle(ports)


_ports: Final = _own_ports()


def free_endpoints(count: int) -> list[str]:
    """Addresses of this machine that nobody uses, none given twice in a row."""
    found: list[str] = []
    while len(found) < count:
        port = next(_ports)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(f"127.0.0.1:{port}")
    return found


@dataclass
class Network:
    """What every process of a job builds alike: ``build`` returns the loss."""

    build: Callable[[], Any]
    optimizer: Callable[[], Any]
    config: dict[str, Any] = field(default_factory=dict)
    sync: bool = True


@dataclass
class Programs:
    """What one process runs: first ``startup``, then ``main``."""

    startup: Any
    main: Any
    loss: Any = None


class Job:
    """A job on this machine.

    Programs are made in the calling thread, since default programs belong to the process.
    """

    def __init__(self, network: Network, *, servers: int = 2, trainers: int = 2) -> None:
        self.network = network
        self.endpoints = free_endpoints(servers)
        self.trainers = trainers
        self.scopes: dict[str, Any] = {}
        self._pool = concurrent.futures.ThreadPoolExecutor(servers + trainers)
        self._serving: list[tuple[Any, concurrent.futures.Future[None]]] = []

    def transpiler(self, trainer: int = 0, endpoint: str = "") -> tuple[Any, Any]:
        """A transpiled network and its loss; call it inside ``fresh_programs``."""
        loss = self.network.build()
        self.network.optimizer().minimize(loss)
        config = fluid.DistributeTranspilerConfig()
        for name, value in self.network.config.items():
            setattr(config, name, value)
        t = fluid.DistributeTranspiler(config=config)
        t.transpile(
            trainer_id=trainer,
            pservers=",".join(self.endpoints),
            trainers=self.trainers,
            sync_mode=self.network.sync,
            current_endpoint=endpoint or self.endpoints[0],
        )
        return t, loss

    def server(self, endpoint: str) -> Programs:
        """The programs of a server."""
        with fresh_programs(SEED):
            t, _ = self.transpiler(endpoint=endpoint)
            main = t.get_pserver_program(endpoint)
            return Programs(t.get_startup_program(endpoint, main), main)

    def trainer(self, number: int) -> Programs:
        """The programs of a trainer."""
        with fresh_programs(SEED) as (_, startup):
            t, loss = self.transpiler(trainer=number)
            return Programs(startup, t.get_trainer_program(), loss)

    # Running

    def __enter__(self) -> Job:
        return self

    def start(self) -> Job:
        """Serve with the start values of the servers' own programs."""
        for endpoint in self.endpoints:
            self.serve(endpoint)
        return self

    def start_with(self, values: dict[str, Any]) -> None:
        """Serve with these start values of whole variables, each server with its rows of them."""
        for endpoint in self.endpoints:
            self.serve(endpoint, values)

    def __exit__(self, *_: object) -> None:
        for executor, _ in self._serving:
            executor.close()  # stops a server whose trainers did not come to their end
        for _, future in self._serving:
            future.result(timeout=60)
        self._pool.shutdown()

    def serve(self, endpoint: str, values: dict[str, Any] | None = None) -> None:
        """Start a server, with its rows of ``values`` if there are any."""
        programs, scope = self.server(endpoint), fluid.Scope()
        if values is not None:
            fluid.Executor().run(programs.startup, scope=scope)
            for one in programs.main._parameters_on_pservers.on(endpoint):
                if one.origin in values:
                    rows = values[one.origin][one.first_row : one.first_row + one.rows]
                    scope.var(one.name).get_tensor().set(rows)
            programs.startup = None
        self.start_server(endpoint, programs, scope)

    def start_server(self, endpoint: str, programs: Programs, scope: Any = None) -> None:
        """Run the programs of a server; without a startup program the scope has all values."""
        scope = self.scopes[endpoint] = fluid.Scope() if scope is None else scope
        executor = fluid.Executor()
        if programs.startup is not None:
            executor.run(programs.startup, scope=scope)
        future = self._pool.submit(lambda: executor.run(programs.main, scope=scope))
        self._serving.append((executor, future))  # type: ignore[arg-type]

    def train(self, feeds: Callable[[int, int], Feed], steps: int, **options: Any) -> list[list[float]]:
        """The losses of every trainer, which all take ``steps`` steps with ``feeds(step, trainer)``."""
        programs = [self.trainer(number) for number in range(self.trainers)]
        futures = [
            self._pool.submit(self.train_one, number, one, feeds, steps, **options)
            for number, one in enumerate(programs)
        ]
        return [future.result(timeout=120) for future in futures]

    def train_one(
        self,
        number: int,
        programs: Programs,
        feeds: Callable[[int, int], Feed],
        steps: int,
        *,
        program: Callable[[Any, Any], Any] = lambda main, loss: main,
    ) -> list[float]:
        """What one trainer does, from its startup program to its close."""
        scope = self.scopes[f"trainer {number}"] = fluid.Scope()
        executor = fluid.Executor()
        try:
            executor.run(programs.startup, scope=scope)
            main = program(programs.main, programs.loss)
            losses = []
            for step in range(steps):
                feed = feeds(step, number)
                losses += executor.run(main, feed=feed, fetch_list=[programs.loss.name], scope=scope)
            return [float(np.mean(loss)) for loss in losses]
        finally:
            executor.close()

    def values(self, where: str) -> dict[str, Any]:
        """Copies of the arrays in a scope, by name: of a server (its endpoint) or ``"trainer 0"``."""
        scope = self.scopes[where]
        found = {}
        for name in scope.local_var_names():
            value = scope.find_var(name).value
            if isinstance(value, fluid.LoDTensor) and value.array is not None:
                found[name] = np.array(value)
        return found


def train_locally(
    network: Network, feeds: Callable[[int], Feed], steps: int
) -> tuple[list[float], dict[str, Any]]:
    """The losses of the same network in one process without servers, and the parameters it began with."""
    with fresh_programs(SEED) as (main, startup):
        loss = network.build()
        network.optimizer().minimize(loss)
        executor = fluid.Executor()
        executor.run(startup)
        names = [parameter.name for parameter in main.all_parameters()]
        begun = {n: np.array(fluid.global_scope().find_var(n).get_tensor()) for n in names}
        losses = [float(executor.run(main, feed=feeds(s), fetch_list=[loss])[0]) for s in range(steps)]
        return losses, begun


# Networks


def perceptron(size: int = 128) -> Any:
    """The network of the recorded runs: 130 -> 128 -> 1; its first weight is cut in two for two servers."""
    x = fluid.data(name="x", shape=[None, 130], dtype="float32")
    y = fluid.data(name="y", shape=[None, 1], dtype="float32")
    hidden = fluid.layers.fc(input=x, size=size, act="tanh")
    out = fluid.layers.fc(input=hidden, size=1)
    return fluid.layers.mean(fluid.layers.square_error_cost(input=out, label=y))


def perceptron_feeds(step: int, trainer: int) -> Feed:
    """What the recorded runs were fed."""
    x = np.random.RandomState(1000 * step + trainer).uniform(-1, 1, (4, 130)).astype("float32")
    return {"x": x, "y": x[:, :5].sum(1, keepdims=True).astype("float32")}


def sgd() -> Any:
    return fluid.optimizer.SGD(0.01)


def momentum() -> Any:
    return fluid.optimizer.Momentum(0.01, 0.9)


def adam_with_schedule() -> Any:
    return fluid.optimizer.Adam(fluid.layers.exponential_decay(0.01, decay_steps=3, decay_rate=0.5))


MOMENTUM = Network(perceptron, momentum)
