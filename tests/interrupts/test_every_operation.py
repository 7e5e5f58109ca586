"""KeyboardInterrupt at any operation of a public call that takes a lock: afterwards the same call works.

At some of its operations, with a seed; the slow ones take more of those at which locks, threads and files
change hands.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import inference
from paddlelike.io import asynchronous
from tests.interrupts.interrupting import (
    Left,
    count_left,
    interrupt,
    list_operations,
    no_longer_than,
    wait_until_left,
)

pytestmark = [
    # A thread that was interrupted as it left its turn is waited for, for seconds.
    pytest.mark.filterwarnings("ignore:waiting for another thread"),
    # Python ignores what is raised in what a __del__ calls.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

W = "fc_0.w_0"
FEED = {"x": np.ones((4, 3), "float32")}
#: Modules in which locks, threads, turns and files change hands.
HANDS = (
    "foundation/locks.py",
    "foundation/threads.py",
    "executor/threads.py",
    "io/asynchronous.py",
    "io/save/chosen.py",
    "storage/threads.py",
    "storage/local/syncing.py",
    "filesystem/lock.py",
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
        self.step = 0
        self.fill(1.0)
        fluid.io.save_persistables(self.exe, self.path("m"), self.main)
        fluid.io.save_inference_model(
            self.path("served"), ["x"], [self.loss], self.exe, main_program=self.test
        )
        self.predictor = inference.create_predictor(inference.Config(self.path("served")))
        self.checkpoints = fluid.io.Checkpoints(home / "checkpoints", keep_last=1)

    def path(self, name: str) -> str:
        return str(self.home / name)

    def fill(self, value: float) -> None:
        fluid.global_scope().var(W).get_tensor().set(np.full((3, 1), value, "float32"))

    def read(self, name: str, filename: str | None = None) -> float:
        scope = fluid.Scope()
        with fluid.scope_guard(scope):
            fluid.io.load_persistables(self.exe, self.path(name), self.main, filename)
            return float(np.asarray(scope.var(W).get_tensor())[0, 0])

    def run(self) -> None:
        self.exe.run(self.main, feed=FEED, fetch_list=[self.loss])

    def save(self, **options: Any) -> Any:
        return fluid.io.save_persistables(self.exe, self.path("m"), self.main, **options)

    def save_one_file(self) -> None:
        fluid.io.save_persistables(self.exe, self.path("one"), self.main, filename="all")

    def save_prefix(self) -> None:
        fluid.save(self.main, self.path("prefix/m"))

    def save_model(self) -> None:
        fluid.io.save_inference_model(
            self.path("model"), ["x"], [self.loss], self.exe, main_program=self.test
        )

    def load(self) -> None:
        fluid.io.load_persistables(self.exe, self.path("m"), self.main)

    def checkpoint(self) -> None:
        self.step += 1
        self.checkpoints.save(self.exe, self.main, self.step)

    def restore(self) -> None:
        self.checkpoints.restore(self.exe, self.main)

    def predict(self) -> None:
        self.predictor.run([FEED["x"]])

    def read_ahead(self) -> None:
        assert list(fluid.io.buffered(lambda: iter(range(3)), 2)()) == [0, 1, 2]


CALLS: dict[str, Callable[[Session], object]] = {
    "run": Session.run,
    "save": Session.save,
    "save beside": lambda session: session.save(blocking=False),
    "save and wait": lambda session: session.save(blocking=False).wait(),
    "save what changed": lambda session: session.save(delta=True),
    "save one file": Session.save_one_file,
    "fluid.save": Session.save_prefix,
    "save_inference_model": Session.save_model,
    "load": Session.load,
    "checkpoint": Session.checkpoint,
    "predictor": Session.predict,
    "reader": Session.read_ahead,
}
IN_M = ("save", "save beside", "save and wait", "save what changed")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with fluid.scope_guard(fluid.Scope()):
        yield Session(tmp_path)
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
        asynchronous.wait_for_pending()
        if name in IN_M:
            assert session.read("m") in (before, during)
        session.fill(after)
        begin = time.monotonic()
        call(session)
        asynchronous.wait_for_pending()
        assert time.monotonic() - begin < _LONGEST / 2
        if name in IN_M:
            assert session.read("m") == after
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
    return operations, found._replace(threads=found.threads + 1)


def interrupt_some(session: Session, name: str, seed: int, hands: int, others: int) -> None:
    """Interrupt a call at some of its operations: where things change hands, and elsewhere."""
    operations, left = find_left(session, name)
    dice = random.Random(seed)
    within = [at for at in operations if at[0].co_filename.endswith(HANDS)]
    beyond = [at for at in operations if not at[0].co_filename.endswith(HANDS)]
    for at in dice.sample(within, min(len(within), hands)) + dice.sample(beyond, min(len(beyond), others)):
        is_kept, turn = dice.random() < 0.5, dice.choice([1, operations[at]])
        interrupt_and_repeat(session, name, at, turn, is_kept=is_kept, left=left)


@pytest.mark.parametrize("name", CALLS)
def test_an_interrupted_call_can_be_repeated(session: Session, name: str) -> None:
    interrupt_some(session, name, seed=7, hands=6, others=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_a_call_interrupted_at_many_operations_can_be_repeated(session: Session, name: str) -> None:
    interrupt_some(session, name, seed=8, hands=20, others=8)
