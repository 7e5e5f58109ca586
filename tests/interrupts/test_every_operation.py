"""KeyboardInterrupt at any operation of a public call that takes a lock: afterwards the same call works.

At some of its operations, with a seed, most of them those at which locks, threads and files change hands.
Every call is tried in the slow test, four that take different locks at once.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import inference, training
from paddlelike.distributed.client import trainers
from paddlelike.distributed.wire import Channel
from paddlelike.errors import PaddlelikeError
from paddlelike.io import asynchronous
from paddlelike.io.save import copies
from tests.distributed.jobs import Job, Network, sgd
from tests.helpers.fresh import fresh_programs
from tests.interrupts.interrupting import (
    Left,
    count_left,
    interrupt,
    list_operations,
    no_longer_than,
    wait_until_left,
)

pytestmark = [
    pytest.mark.usefixtures("small_heap"),
    # A thread that was interrupted as it left its turn is waited for, for seconds.
    pytest.mark.filterwarnings("ignore:waiting for another thread"),
    # Python ignores what is raised in what a __del__ calls.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

W = "fc_0.w_0"
SHAPES = {W: (3, 1), "fc_0.b_0": (1,)}
FEED = {"x": np.ones((4, 3), "float32")}
#: Modules in which locks, threads, turns and files change hands.
HANDS = (
    "foundation/current.py",
    "foundation/garbage.py",
    "foundation/locks.py",
    "foundation/snapshot.py",
    "foundation/threads.py",
    "executor/threads.py",
    "io/asynchronous.py",
    "io/save/chosen.py",
    "io/save/copies.py",
    "storage/threads.py",
    "storage/local/syncing.py",
    "filesystem/lock.py",
    "distributed/wire/server.py",
    "direct/server.py",
)
_LONGEST = 60.0  # seconds, much more than any call takes


class Session:
    """A network, its values, and the calls of a script."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.exe = fluid.Executor()
        self.main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard():
            x = fluid.data("x", [None, 3])
            self.loss = fluid.layers.mean(fluid.layers.fc(x, 1))
            self.test = self.main.clone(for_test=True)
            fluid.optimizer.SGD(0.0).minimize(self.loss)
        self.exe.run(startup)
        self.step = self.samples = 0
        self.trainer: training.Trainer | None = None
        self.server: Server | None = None
        self.fill(1.0)
        fluid.io.save_persistables(self.exe, self.path("m"), self.main)
        fluid.io.save_inference_model(
            self.path("served"), ["x"], [self.loss], self.exe, main_program=self.test
        )
        self.predictor = inference.create_predictor(inference.Config(self.path("served")))
        self.checkpoints = fluid.io.Checkpoints(home / "checkpoints", keep_last=1)
        self.save_one_file()
        self.save_prefix()
        self.checkpoint()

    def path(self, name: str) -> str:
        return str(self.home / name)

    def fill(self, value: float) -> None:
        for name, shape in SHAPES.items():
            fluid.global_scope().var(name).get_tensor().set(np.full(shape, value, "float32"))

    def values(self) -> set[float]:
        """The numbers in all variables: one, unless they are a mix."""
        found = (np.asarray(fluid.global_scope().var(name).get_tensor()) for name in SHAPES)
        return {float(number) for one in found for number in one.ravel()}

    def read(self, name: str, filename: str | None = None) -> float:
        scope = fluid.Scope()
        with fluid.scope_guard(scope):
            fluid.io.load_persistables(self.exe, self.path(name), self.main, filename)
            return float(np.asarray(scope.var(W).get_tensor())[0, 0])

    def run(self) -> None:
        self.exe.run(self.main, feed=FEED, fetch_list=[self.loss])

    def save(self, **options: Any) -> Any:
        return fluid.io.save_persistables(self.exe, self.path("m"), self.main, **options)

    def save_from_snapshot(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(copies, "_HELD", 0)
            patch.setattr(copies, "_LARGE", 0)
            self.save(blocking=False).wait()

    def save_one_file(self) -> None:
        fluid.io.save_persistables(self.exe, self.path("one"), self.main, filename="all")

    def save_prefix(self) -> None:
        fluid.save(self.main, self.path("prefix/m"))

    def save_model(self) -> None:
        fluid.io.save_inference_model(
            self.path("model"), ["x"], [self.loss], self.exe, main_program=self.test
        )

    def load(self, name: str = "m", filename: str | None = None, **options: Any) -> None:
        fluid.io.load_persistables(self.exe, self.path(name), self.main, filename, **options)

    def load_prefix(self) -> None:
        fluid.load(self.main, self.path("prefix/m"), self.exe)

    def load_state(self) -> None:
        fluid.set_program_state(self.main, fluid.load_program_state(self.path("prefix/m")))

    def load_model(self) -> None:
        fluid.io.load_inference_model(self.path("served"), self.exe)

    def checkpoint(self) -> None:
        self.step += 1
        self.checkpoints.save(self.exe, self.main, self.step)

    def restore(self) -> None:
        self.checkpoints.restore(self.exe, self.main)

    def predict(self) -> None:
        self.predictor.run([FEED["x"]])

    def open_predictor(self) -> None:
        inference.create_predictor(inference.Config(self.path("served"))).run([FEED["x"]])

    def train_session(self) -> None:
        """Train two steps further, with a checkpoint after each."""
        if self.trainer is None:
            with fresh_programs():
                self.trainer = make_trainer()
        self.samples += 4
        config = training.CheckpointConfig(self.path("session"), 2)
        training.training_session(
            self.trainer, make_source(), 2, max_samples=self.samples, checkpoint_config=config
        ).train()

    def serve_beside(self) -> Server:
        if self.server is None:
            self.server = Server()
            self.server.serve_beside()
        return self.server

    def connect(self) -> None:
        """Begin as a trainer that was restarted."""
        server = self.serve_beside()
        for client in trainers._clients.get(server.trainer_scope, {}).values():
            client.abandon()  # as by the end of its process; an interrupted one is abandoned again
        trainers._clients.pop(server.trainer_scope, None)
        server.trainer_scope = fluid.Scope()
        server.executor.run(server.trainer.startup, scope=server.trainer_scope)

    def train_with_servers(self) -> None:
        self.serve_beside().train()

    def serve(self) -> None:
        """Be a server until somebody has called it, and stop."""
        if self.server is None:
            self.server = Server()
        executor, ended = fluid.Executor(), threading.Event()
        asking = threading.Thread(target=call_and_stop, args=(self.server.endpoint, executor, ended))
        asking.start()
        try:
            executor.run(self.server.program, scope=self.server.scope)
        finally:
            ended.set()
            asking.join()

    def read_ahead(self) -> None:
        assert list(fluid.io.buffered(lambda: iter(range(3)), 2)()) == [0, 1, 2]


def make_network() -> Any:
    x = fluid.data("x", [None, 3])
    return fluid.layers.mean(fluid.layers.fc(x, 1))


NETWORK = Network(make_network, sgd)


class Server:
    """The programs and values of a server, and those of its trainer."""

    def __init__(self) -> None:
        self.job = Job(NETWORK, servers=1, trainers=1)
        (self.endpoint,) = self.job.endpoints
        programs = self.job.server(self.endpoint)
        self.program, self.scope = programs.main, fluid.Scope()
        fluid.Executor().run(programs.startup, scope=self.scope)
        self.executor = fluid.Executor()

    def serve_beside(self) -> None:
        """Serve in another thread, which is not interrupted, for as long as the process lives."""
        run = functools.partial(fluid.Executor().run, self.program, scope=self.scope)
        threading.Thread(target=run, daemon=True).start()
        self.trainer, self.trainer_scope = self.job.trainer(0), fluid.Scope()
        self.executor.run(self.trainer.startup, scope=self.trainer_scope)

    def train(self) -> None:
        """Push a gradient and pull the parameters."""
        main, loss = self.trainer.main, self.trainer.loss.name
        self.executor.run(main, feed=FEED, fetch_list=[loss], scope=self.trainer_scope)


def make_trainer() -> training.Trainer:
    return training.Trainer(None, make_network(), fluid.optimizer.SGD(0.1))


def make_source() -> training.MinibatchSourceFromData:
    return training.MinibatchSourceFromData({"x": FEED["x"]})


def call_and_stop(endpoint: str, executor: fluid.Executor, ended: threading.Event) -> None:
    """Call a server until it answers, and stop it."""
    while not ended.is_set():
        with contextlib.suppress(PaddlelikeError), Channel(endpoint) as channel:
            channel.call("Status", {}, timeout=5.0)
            break
        ended.wait(0.01)
    executor.close()


CALLS: dict[str, Callable[[Session], object]] = {
    "run": Session.run,
    "save": Session.save,
    "save beside": lambda session: session.save(blocking=False),
    "save and wait": lambda session: session.save(blocking=False).wait(),
    "save from a snapshot": Session.save_from_snapshot,
    "save what changed": lambda session: session.save(delta=True),
    "save one file": Session.save_one_file,
    "fluid.save": Session.save_prefix,
    "save_inference_model": Session.save_model,
    "load": Session.load,
    "load and verify": lambda session: session.load(verify=True),
    "load one file": lambda session: session.load("one", "all"),
    "load in place": lambda session: session.load(in_place=True),
    "fluid.load": Session.load_prefix,
    "set_program_state": Session.load_state,
    "load_inference_model": Session.load_model,
    "restore": Session.restore,
    "checkpoint": Session.checkpoint,
    "predictor": Session.predict,
    "create_predictor": Session.open_predictor,
    "training session": Session.train_session,
    "server": Session.serve,
    "startup of a trainer": Session.connect,
    "trainer of servers": Session.train_with_servers,
    "reader": Session.read_ahead,
}
IN_M = ("save", "save beside", "save and wait", "save from a snapshot", "save what changed")
LOADS = (
    "load",
    "load and verify",
    "load one file",
    "fluid.load",
    "set_program_state",
    "load_inference_model",
    "restore",
)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with fluid.scope_guard(fluid.Scope()):
        session = Session(tmp_path)
        yield session
        if session.server is not None:
            session.server.executor.close()
    asynchronous.discard_pending()


def interrupt_and_repeat(
    session: Session, name: str, at: Any, turn: int, *, is_kept: bool, left: Left
) -> None:
    """Interrupt a call at one operation, and find that the same call works, and nothing is left."""
    call = CALLS[name]
    before, during, after = (session.step + n / 4 for n in (1, 2, 3))
    session.fill(before)
    call(session)
    asynchronous.wait_for_pending()
    session.fill(during)
    with no_longer_than(_LONGEST):
        error = interrupt(lambda: call(session), at, turn)
        kept = error if is_kept else None  # as an interactive session does
        del error
        with ThreadPoolExecutor(1) as pool:  # a thread has the values of a block that any thread is in
            assert pool.submit(fluid.global_scope).result() is fluid.global_scope(), at
            assert pool.submit(fluid.default_main_program).result() is fluid.default_main_program(), at
        assert gc.isenabled(), at
        asynchronous.wait_for_pending()
        if name in IN_M:
            assert session.read("m") in (before, during)
        found = session.values()
        session.fill(after)
        begin = time.monotonic()
        call(session)
        asynchronous.wait_for_pending()
        assert time.monotonic() - begin < _LONGEST / 2
        if name in IN_M:
            assert session.read("m") == after
        if name in LOADS:
            assert found in ({during}, session.values()), at
            assert session.values() == {1.0}
    del kept
    gc.collect()
    assert not wait_until_left(left).is_more(left), at
    assert not [one.name for one in session.home.iterdir() if one.name.startswith(".")], at


def find_left(session: Session, name: str) -> tuple[dict[Any, int], Left]:
    """Return the operations of a call, and what the process holds after it."""
    for _ in range(2):
        CALLS[name](session)
        asynchronous.wait_for_pending()
    operations = list_operations(lambda: CALLS[name](session))
    asynchronous.wait_for_pending()
    with no_longer_than(_LONGEST):  # its thread stays
        pass
    time.sleep(0.1)
    found = count_left()
    of_grpc = 8 if session.server is not None else 0  # it keeps some, as many as it likes
    return operations, found._replace(threads=found.threads + 1 + of_grpc)


def interrupt_some(session: Session, name: str, seed: int, hands: int, others: int) -> None:
    """Interrupt a call at some of its operations: where things change hands, and elsewhere."""
    operations, left = find_left(session, name)
    dice = random.Random(seed)
    within = [at for at in operations if at[0].co_filename.endswith(HANDS)]
    beyond = [at for at in operations if not at[0].co_filename.endswith(HANDS)]
    for at in dice.sample(within, min(len(within), hands)) + dice.sample(beyond, min(len(beyond), others)):
        is_kept, turn = dice.random() < 0.5, dice.choice([1, operations[at]])
        interrupt_and_repeat(session, name, at, turn, is_kept=is_kept, left=left)


@pytest.mark.parametrize("name", ["run", "save and wait", "load in place", "predictor"])
def test_an_interrupted_call_can_be_repeated(session: Session, name: str) -> None:
    interrupt_some(session, name, seed=7, hands=6, others=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_a_call_interrupted_at_many_operations_can_be_repeated(session: Session, name: str) -> None:
    interrupt_some(session, name, seed=8, hands=20, others=8)
