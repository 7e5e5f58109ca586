"""dropout."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value
from paddlelike.core import Array, Generator


@lowers("dropout", draws=True, sequences=True)
def dropout(
    x: jax.Array | Packed, seed_tensor: Value | None,
    *, dropout_prob: float, is_test: bool, fix_seed: bool, seed: int, dropout_implementation: str,
    ctx: OpContext,
) -> tuple[Value, Value | None]:  # fmt: skip
    if isinstance(x, Packed):
        out, mask = dropout(
            x.rows, seed_tensor, dropout_prob=dropout_prob, is_test=is_test, fix_seed=fix_seed, seed=seed,
            dropout_implementation=dropout_implementation, ctx=ctx.with_rows_of(x),
        )  # fmt: skip
        return x.replace(out), None if mask is None else x.replace(mask, shown=False)
    upscale = dropout_implementation == "upscale_in_train"
    share = float(x.dtype.type(np.float32(1) - np.float32(dropout_prob)))
    if is_test:
        return (x if upscale else x * jnp.asarray(share, x.dtype)), None

    def draw_mask(random: Generator, count: int) -> Array:
        is_fixed = fix_seed and seed_tensor is None
        kept = (Generator(seed) if is_fixed else random).draw(count) >= np.float32(dropout_prob)
        return kept.view(np.uint8)

    if seed_tensor is None:
        mask = ctx.draw(0, x.shape, np.uint8, draw_mask)
    else:
        mask = ctx.draw_by(1, x.shape, np.uint8, draw_mask)
    if upscale and dropout_prob == 1:
        return jnp.zeros_like(x), jnp.zeros_like(mask)
    out = jnp.where(mask != 0, x, jnp.zeros((), x.dtype))
    return (out / jnp.asarray(share, x.dtype) if upscale else out), mask


@lowers("dropout_grad")
def dropout_grad(
    d_out: jax.Array, mask: jax.Array, *, dropout_prob: float, dropout_implementation: str
) -> jax.Array:
    d_x = d_out * mask.astype(d_out.dtype)
    if dropout_implementation == "upscale_in_train" and dropout_prob < 1:
        share = d_out.dtype.type(np.float32(1) - np.float32(dropout_prob))
        d_x = d_x / jnp.asarray(share, d_out.dtype)
    return d_x
