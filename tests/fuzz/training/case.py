"""A random training program of a seed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import paddlelike as fluid
from tests.fuzz.training.control import CONTROL
from tests.fuzz.training.dense import DENSE
from tests.fuzz.training.image import IMAGES
from tests.fuzz.training.loss import add_loss, minimize
from tests.fuzz.training.network import Fed, Layer, Network
from tests.fuzz.training.sequence import SEQUENCES

__all__ = ["Case", "make_case", "make_feed"]


@dataclass
class Case:
    """Programs, what they are fed, and what may be fetched of them."""

    main: Any
    startup: Any
    test: Any
    fed: list[Fed]
    losses: list[str]
    fetchable: list[str]  # of the test program, too
    gradients: list[str]


def make_case(seed: int) -> Case:
    """Return the program of a seed; the same one at every call."""
    rng = Random(seed)
    net = Network(rng)
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = seed + 1
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        for _ in range(rng.randrange(3, 14)):
            rng.choice(choose_layers(rng))(net)
        losses = [add_loss(net) for _ in range(rng.choice([1, 1, 2, 3]))]
        test = main.clone(for_test=True)
        rows = [value.variable for value in net.values if value.kind == "row"]
        minimize(net, losses, rng.sample(rows, min(len(rows), 2)))
    block = main.global_block()
    gradients = sorted(
        name
        for name, variable in block.vars.items()
        if name.endswith("@GRAD")
        and not name.startswith("_generated_var")
        and variable.type == fluid.core.VarDesc.VarType.LOD_TENSOR
    )
    fetchable = [value.variable.name for value in net.values] + [one.name for one in net.extra]
    return Case(main, startup, test, net.fed, [one.name for one in losses], fetchable, gradients)


def choose_layers(rng: Random) -> tuple[Layer, ...]:
    """Return the layers of one kind."""
    return rng.choices((DENSE, IMAGES, SEQUENCES, CONTROL), (5, 2, 2, 2))[0]


def make_feed(fed: list[Fed], seed: int, rows: int) -> dict[str, Any]:
    """Return a batch: arrays in several orders of memory, LoDTensors for sequences."""
    rng = np.random.default_rng(seed)
    lengths = [int(n) for n in rng.integers(1, 4, rows)]
    inner = [int(n) for n in rng.integers(1, 4, sum(lengths))]
    feed = {}
    for one in fed:
        count = (rows, sum(lengths), sum(inner))[one.levels]
        if one.ids:
            array = rng.integers(0, one.ids, (count, *one.dims))
        else:
            array = rng.standard_normal((count, *one.dims)).astype("float32")
        if one.levels:
            feed[one.name] = fluid.create_lod_tensor(array, [lengths, inner][: one.levels], fluid.CPUPlace())
        else:
            feed[one.name] = _arrange(array, int(rng.integers(0, 5)))
    return feed


def _arrange(array: Any, form: int) -> Any:
    """Return an array with the same elements, and perhaps another order in memory."""
    if form == 0:
        return np.asfortranarray(array)
    if form == 1:
        return np.repeat(array, 2, axis=0)[::2]
    if form == 2:
        return array[::-1].copy()[::-1]
    if form == 3:
        read_only = array.copy()
        read_only.flags.writeable = False
        return read_only
    return array
