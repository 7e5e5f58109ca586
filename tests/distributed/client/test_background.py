"""The background thread pushes every gradient once, several steps together; training gets its error."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from paddlelike.core import SelectedRows, VarType
from paddlelike.distributed.client.background import Background
from paddlelike.distributed.client.outbox import Outbox
from paddlelike.distributed.placement import Entry, Kind
from paddlelike.errors import FaultError

DENSE = Entry(0, "w@GRAD", Kind.GRADIENT, (2,), VarType.FP32)
SPARSE = Entry(1, "t@GRAD", Kind.GRADIENT, (9, 1), VarType.FP32)
COUNTER = Entry(2, "@COUNTER@", Kind.COUNTER, (1,), VarType.INT64)


class Pushes:
    """Records what is pushed; the first push waits until it is released."""

    def __init__(self) -> None:
        self.began, self.released = threading.Event(), threading.Event()
        self.outboxes: list[Sequence[Outbox]] = []

    def __call__(self, outboxes: Sequence[Outbox]) -> None:
        if any(outboxes):
            self.outboxes.append(outboxes)
            self.began.set()
            assert self.released.wait(30)


def pull_nothing() -> None:
    pass


def run(background: Background, pushes: Pushes) -> None:
    """Put one gradient, which is pushed alone, then four steps while that push is under way."""
    background.start(pushes, pull_nothing, 2)
    background.put(0, DENSE, np.zeros(2, "float32"))
    background.end_step()
    assert pushes.began.wait(30)
    for step in range(1, 5):
        background.put(0, DENSE, np.full(2, step, "float32"))
        background.put(1, SPARSE, SelectedRows([3, step], 9, np.ones((2, 1), "float32")))
        background.put(1, COUNTER, np.array([1]))
    pushes.released.set()
    background.stop()


@pytest.mark.parametrize("average", [False, True])
def test_steps_finished_during_a_push_are_sent_together(average: bool) -> None:
    pushes = Pushes()
    run(Background(average=average), pushes)
    assert len(pushes.outboxes) == 2
    first, second = pushes.outboxes[1]
    count = 4 if average else 1
    assert first[0].tolist() == [10 / count, 10 / count]
    sparse = second[1]
    assert isinstance(sparse, SelectedRows)
    assert sparse.array is not None
    rows = dict(zip(sparse.rows(), sparse.array[:, 0].tolist(), strict=True))
    assert rows == {3: 5 / count, 1: 1 / count, 2: 1 / count, 4: 1 / count}
    assert second[2].tolist() == [4]  # steps of a counter are counted, not averaged


def test_a_step_beyond_the_limit_of_pending_steps_waits() -> None:
    pushes, background = Pushes(), Background(most=2)
    background.start(pushes, pull_nothing, 1)
    background.put(0, DENSE, np.zeros(2, "float32"))
    background.end_step()
    assert pushes.began.wait(30)
    for _ in range(2):
        background.put(0, DENSE, np.ones(2, "float32"))
    third = threading.Thread(target=background.put, args=(0, DENSE, np.ones(2, "float32")))
    third.start()
    third.join(0.2)
    assert third.is_alive()
    pushes.released.set()
    third.join(30)
    background.stop()
    assert sum(outboxes[0][0][0] for outboxes in pushes.outboxes) == 3


def put_forever(background: Background) -> None:
    while True:
        background.put(0, DENSE, np.zeros(2, "float32"))


def test_an_error_of_the_thread_is_raised_in_training_and_at_the_stop() -> None:
    def fail(outboxes: Sequence[Outbox]) -> None:
        raise FaultError("the server at a:1 is gone")

    background = Background()
    background.start(fail, pull_nothing, 1)
    with pytest.raises(FaultError, match="a:1 is gone"):
        put_forever(background)
    with pytest.raises(FaultError, match="a:1 is gone"):
        background.stop()


def test_parameters_are_pulled_when_more_steps_were_pushed_than_the_setting() -> None:
    """As in Fluid, whose thread receives when the count of gradients is greater than its flag."""
    pulled = threading.Event()
    pushes, background = Pushes(), Background(most=1, unseen=2)
    pushes.released.set()
    background.start(pushes, pulled.set, 1)
    for step in range(3):
        assert not pulled.is_set()
        background.put(0, DENSE, np.full(2, step, "float32"))
        background.flush()
        assert [outboxes[0][0][0] for outboxes in pushes.outboxes] == list(range(step + 1))
    assert pulled.wait(30)
    background.stop()


def test_a_push_waits_for_further_steps_until_it_is_full() -> None:
    pushes, background = Pushes(), Background(most=3, waits=3000)
    pushes.released.set()
    background.start(pushes, pull_nothing, 1)
    for step in range(3):
        assert not pushes.outboxes
        background.put(0, DENSE, np.full(2, step, "float32"))
        background.end_step()
    assert pushes.began.wait(30)
    background.stop()
    assert [outboxes[0][0][0] for outboxes in pushes.outboxes] == [0 + 1 + 2]


def test_a_flush_and_the_end_do_not_wait_for_further_steps() -> None:
    pushes, background = Pushes(), Background(most=3, waits=100_000)
    pushes.released.set()
    background.start(pushes, pull_nothing, 1)
    for end in (background.flush, background.stop):
        background.put(0, DENSE, np.ones(2, "float32"))
        end()
    assert [outboxes[0][0][0] for outboxes in pushes.outboxes] == [1, 1]


def test_an_interrupted_flush_hurries_no_later_push(monkeypatch: pytest.MonkeyPatch) -> None:
    pushes, background = Pushes(), Background(most=2, waits=100_000)
    pushes.released.set()
    wait = background._changed.wait_for

    def interrupt(condition: Callable[[], bool], *rest: float) -> bool:
        condition()
        raise KeyboardInterrupt

    monkeypatch.setattr(background._changed, "wait_for", interrupt)
    with pytest.raises(KeyboardInterrupt):
        background.flush()
    monkeypatch.setattr(background._changed, "wait_for", wait)
    background.start(pushes, pull_nothing, 1)
    for _ in range(2):
        background.put(0, DENSE, np.ones(2, "float32"))
        background.end_step()
    background.stop()
    assert [outboxes[0][0][0] for outboxes in pushes.outboxes] == [2]
