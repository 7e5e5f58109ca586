"""sample_logits: the logits of a sample of the classes, drawn by the host in the order of numpy's kernels."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.core.random import Generator
from paddlelike.ops.loss.sample_logits import draw_shared_classes


@lowers("sample_logits", draws=True)
def sample_logits(
    logits: jax.Array, labels: jax.Array, samples: jax.Array, chances: jax.Array,
    *, num_samples: int, use_customized_samples: bool, remove_accidental_hits: bool, seed: int,
    ctx: OpContext,
) -> Results:  # fmt: skip
    rows, true = labels.shape
    classes = logits.shape[1]
    if num_samples > classes:
        raise LoweringError("more samples are asked for than there are classes")
    if not use_customized_samples:

        def draw(generator: Generator, _: int) -> jax.Array | np.ndarray[Any, Any]:
            drawn, tries = draw_shared_classes(generator, classes, num_samples, seed)
            return np.append(drawn, tries)

        drawn = ctx.draw(seed, (num_samples + 1,), np.int64, draw)
        shared = jnp.broadcast_to(drawn[:-1], (rows, num_samples))
        samples = jnp.concatenate([labels.astype(jnp.int64), shared], 1)
        chance = jnp.log1p(1.0 / (samples.astype(jnp.float64) + 1.0)) / math.log(classes + 1)
        expected = -jnp.expm1(drawn[-1] * jnp.log1p(-chance))
        chances = jnp.where(drawn[-1] == num_samples, chance * num_samples, expected).astype(logits.dtype)
    ctx.check((samples >= 0) & (samples < classes), f"a class is outside of 0 to {classes - 1}")
    picked = jnp.take_along_axis(logits, samples, 1, mode="clip")
    if remove_accidental_hits:
        hits = (samples[:, true:, None] == labels[:, None, :]).any(2)
        picked = picked.at[:, true:].add(jnp.where(hits, -1e20, 0).astype(picked.dtype))
    picked = jnp.clip(picked - jnp.log(chances).astype(logits.dtype), -1e20, 1e20)
    places = jnp.broadcast_to(jnp.arange(true, dtype=jnp.int64), (rows, true))
    empty = (jnp.zeros((*logits.shape, 0), logits.dtype), jnp.zeros((*labels.shape, 0), labels.dtype))
    return samples, chances, *empty, picked, places


@lowers("sample_logits_grad")
def sample_logits_grad(
    logits_dim: jax.Array, labels_dim: jax.Array, samples: jax.Array, d_picked: jax.Array
) -> jax.Array:
    d_logits = jnp.zeros(logits_dim.shape[:2], d_picked.dtype)
    return d_logits.at[jnp.arange(samples.shape[0])[:, None], samples].add(d_picked)
