"""Signs of life of trainers: who is silent, and for how long nobody was heard of."""

from __future__ import annotations

from paddlelike.distributed.server.presence import Presence


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_trainer_is_silent_when_its_lease_is_over() -> None:
    clock = Clock()
    presence = Presence(3, lease=30.0, clock=clock)
    clock.now += 20
    presence.hear(2)
    clock.now += 15
    assert presence.silent([0, 1, 2]) == [0, 1]
    assert presence.silent([2]) == []
    clock.now += 20
    assert presence.silent([0, 1, 2]) == [0, 1, 2]


def test_nobody_is_gone_before_anybody_came() -> None:
    clock = Clock()
    presence = Presence(2, lease=1.0, clock=clock)
    clock.now += 1000
    assert presence.seconds_alone([0, 1]) == 0
    presence.hear(0)
    clock.now += 7
    presence.hear(1)
    clock.now += 5
    assert presence.seconds_alone([0, 1]) == 5
    assert presence.seconds_alone([0]) == 12
    assert presence.seconds_alone([]) == 0
