"""Random numbers, which the host draws in the order of numpy's kernels."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value, get_rows
from paddlelike.core import Array, Generator
from paddlelike.framework.opdef import registry
from paddlelike.ops.random.sampling import Seed


@lowers("seed", draws=True)
def draw_seed(*, seed: int, ctx: OpContext) -> jax.Array:
    return ctx.draw_seed(lambda random, count: Seed.forward(_Source(random), seed=seed))  # type: ignore[arg-type]


@lowers("sampling_id", draws=True, sequences=True)
def sampling_id(x: jax.Array | Packed, *, min: float, max: float, seed: int, ctx: OpContext) -> Value:  # noqa: A002
    if isinstance(x, Packed):
        ctx = ctx.with_rows_of(x)
    rows = get_rows(x)

    def draw(random: Generator, count: int) -> Array:
        return random.uniform((count, 1), min, max, rows.dtype)

    first = ctx.draw(seed, (rows.shape[0], 1), rows.dtype, draw)[:, 0]

    def subtract(
        left: jax.Array, column: jax.Array
    ) -> tuple[jax.Array, jax.Array]:  # one by one, each difference rounded, as Paddle does
        left = left - column
        return left, left < 0

    _, below = jax.lax.scan(subtract, first, rows.T[:-1])
    last = jnp.ones((1, rows.shape[0]), bool)
    found = jnp.argmax(jnp.concatenate([below, last]), 0)
    return x.replace(found) if isinstance(x, Packed) else found


class _Source:
    """The part of a run's context that random kernels use."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    def random(self, seed: int) -> Generator:
        """Return a generator with ``seed``, or for 0 the generator of the run."""
        return Generator(seed) if seed else self._generator


def _draw_tensor(args: list[Array | list[Array] | None], ctx: OpContext) -> jax.Array:
    """Return the random values that an operator's kernel draws on the host; their shape must be known."""
    cls = registry.find_for_version(ctx.op.type, ctx.plan.program.paddle_version)
    assert cls is not None
    keywords = cls.make_forward_keywords(ctx.op.attrs, ctx.op.outputs)

    def draw(generator: Generator, count: int) -> Array:
        return cls.forward(_Source(generator), *args, **keywords).reshape(-1)

    like = cls.forward(_Source(Generator(1)), *args, **keywords)
    return ctx.draw(0, like.shape, like.dtype, draw)


@lowers("gaussian_random", "uniform_random", "randint", draws=True, constants=True)
def draw_shape(tensor: Array | None, tensors: list[Array], *, ctx: OpContext) -> jax.Array:
    given = [] if tensor is None else [tensor]
    if not all(isinstance(one, np.ndarray) for one in [*given, *(tensors or [])]):
        raise LoweringError("its shape is a variable")
    return _draw_tensor([tensor, tensors], ctx)


@lowers("truncated_gaussian_random", "randperm", draws=True)
def draw_numbers(*, ctx: OpContext) -> jax.Array:
    return _draw_tensor([], ctx)


@lowers("gaussian_random_batch_size_like", "uniform_random_batch_size_like", draws=True)
def draw_like(like: jax.Array, *, ctx: OpContext) -> jax.Array:
    return _draw_tensor([np.broadcast_to(np.zeros((), like.dtype), like.shape)], ctx)
