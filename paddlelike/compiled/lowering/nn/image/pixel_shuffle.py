"""temporal_shift: channels moved between frames."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers


@lowers("temporal_shift", without={"X": "Out@GRAD"})
def temporal_shift(x: jax.Array, *, seg_num: int, shift_ratio: float) -> jax.Array:
    frames = x.reshape(-1, seg_num, *x.shape[1:])
    first, second = int(x.shape[1] * shift_ratio), int(x.shape[1] * 2 * shift_ratio)
    zero = jnp.zeros_like(frames[:, :1])
    before = jnp.concatenate([zero, frames[:, :-1]], 1)[:, :, :first]
    after = jnp.concatenate([frames[:, 1:], zero], 1)[:, :, first:second]
    return jnp.concatenate([before, after, frames[:, :, second:]], 2).reshape(x.shape)
