"""Random values that the host draws before a piece runs, in the order in which numpy's kernels draw them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from paddlelike.core import Array, Generator, memory

Given = Mapping[int, Any]  # the inputs of a piece, by position


class Draw(NamedTuple):
    """The random values of one operator.

    ``rows`` computes the number of rows that numpy draws values for, from the piece's inputs and the step
    numbers of enclosing loops; None means all rows. ``seed_from`` is the index of another draw in the same
    piece, whose result is the seed.
    """

    seed: int  # 0: from the scope's generator
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    sample: Callable[[Generator, int], Array]  # of a number of values
    rows: Callable[[Given, Sequence[int]], int] | None = None
    seed_from: int | None = None


class DrawLoop(NamedTuple):
    """The random values of a loop: of all operators of its block, step by step.

    ``count`` returns the number of steps, at most ``most``, from the piece's inputs.
    """

    most: int
    count: Callable[[Given], int]
    draws: list[Any]


def find_shapes(draw: Draw | DrawLoop) -> object:
    """Return shape and dtype of the random values; for a loop a list of them, with a first dim for the steps.

    >>> find_shapes(Draw(0, (2,), np.dtype("float32"), lambda generator, count: generator.draw(count)))
    ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    if isinstance(draw, Draw):
        return jax.ShapeDtypeStruct(draw.shape, draw.dtype)
    return jax.tree_util.tree_map(
        lambda one: jax.ShapeDtypeStruct((draw.most, *one.shape), one.dtype),
        [find_shapes(inner) for inner in draw.draws],
    )


def draw_all(draws: Sequence[Draw | DrawLoop], generator: Generator, given: Given) -> list[Any]:
    """Return the random values of a piece, in the order of its operators."""
    found: list[Any] = []
    for draw in draws:
        if isinstance(draw, Draw) and draw.seed_from is not None:
            draw = draw._replace(seed=int(found[draw.seed_from].reshape(-1)[0]))
        found.append(draw_values(draw, generator, given))
    return found


def draw_values(
    draw: Draw | DrawLoop, generator: Generator, given: Given, steps: tuple[int, ...] = ()
) -> object:
    """Return random values in the shapes of :func:`find_shapes`; zeros where numpy draws none."""
    if isinstance(draw, DrawLoop):
        stacked = jax.tree_util.tree_map(lambda one: np.zeros(one.shape, one.dtype), find_shapes(draw))
        for step in range(draw.count(given)):
            for into, inner in zip(stacked, draw.draws, strict=True):
                found = draw_values(inner, generator, given, (*steps, step))
                for whole, part in zip(*map(jax.tree_util.tree_leaves, (into, found)), strict=True):
                    whole[step] = part
        return stacked
    own = Generator(draw.seed) if draw.seed else generator
    whole = memory.empty(draw.shape, np.dtype(draw.dtype))  # aligned, see align_feed
    whole.fill(0)
    used = whole if draw.rows is None else whole[: draw.rows(given, steps)]
    count = math.prod(used.shape)
    used[...] = np.asarray(draw.sample(own, count)).reshape(used.shape)
    return whole
