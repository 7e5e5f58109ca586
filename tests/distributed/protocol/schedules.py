"""The faults of a seed, and the run of a seed to its end."""

from __future__ import annotations

import random
from typing import Any

from tests.distributed.protocol.world import Faults, World


def faults_of(seed: int) -> Faults:
    """Calm ones, rough ones and everything between."""
    pick = random.Random(f"faults {seed}").choice
    return Faults(
        lose=pick([0.0, 0.05, 0.2]),
        repeat=pick([0.0, 0.1, 0.5]),
        late=pick([0.0, 0.05, 0.3]),
        delay=pick([0.01, 0.04]),
        down=pick([0.001, 0.05, 0.5]),
        server_kills=pick([0, 1, 3, 10]),
        trainer_kills=pick([0, 1, 3]),
        twins=pick([0, 0, 1, 3]),
        pauses=pick([0, 1, 3]),
        quiet=pick([0.7, 1.5, 3.0]),
    )


def run_sync(seed: int, **options: Any) -> World:
    pick = random.Random(f"job {seed}").choice
    size: dict[str, Any] = {
        "servers": pick([1, 2, 2, 3]),
        "rounds": [pick([5, 8])] * pick([1, 2, 2, 3]),
        "every": pick([0, 1, 2, 3]),
        "keep_all": pick([True, False]),
        "faults": faults_of(seed),
    }
    world = World(seed, **size | options)
    world.run()
    return world


def run_async(seed: int, **options: Any) -> World:
    pick = random.Random(f"job {seed}").choice
    size: dict[str, Any] = {
        "servers": pick([1, 2]),
        "rounds": [8] * pick([1, 2, 3]),
        "every": pick([0, 1, 2]),
        "mode": "async",
        "faults": faults_of(seed),
    }
    world = World(seed, **size | options)
    world.run()
    return world
