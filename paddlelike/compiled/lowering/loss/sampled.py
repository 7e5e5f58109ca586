"""Losses of sampled classes: nce, sample_logits."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import SparseRows
from paddlelike.core import Generator
from paddlelike.ops.kernels.class_sampling import LOG_UNIFORM, UNIFORM, ClassDistribution
from paddlelike.ops.loss.sample_logits import draw_shared_classes


def _weigh(labels: Array, sampler: int, total: int, dtype: np.dtype[Any]) -> Array:
    """Return the probability of each class to be sampled."""
    if sampler == UNIFORM:
        return jnp.full(labels.shape, 1.0 / total, dtype)
    return (jnp.log1p(1.0 / (labels.astype(jnp.float64) + 1.0)) / math.log(total)).astype(dtype)


@lowers("nce", draws=True)
def nce(
    x: Array, label: Array, weight: Array | SparseRows, bias: Array | None,
    sample_weight: Array | None, probs: Array, alias: Array, alias_probs: Array,
    *, num_total_classes: int, num_neg_samples: int, sampler: int, seed: int, custom_neg_classes: list[int],
    ctx: OpContext,
) -> Results:  # fmt: skip
    if sampler not in (UNIFORM, LOG_UNIFORM):
        raise LoweringError("the distribution of classes is a variable")
    if isinstance(weight, SparseRows):
        raise LoweringError("the weight holds only some rows")
    true = label.reshape(x.shape[0], -1)
    ctx.check_below(true, num_total_classes, "Label holds a value")
    if custom_neg_classes:
        drawn = jnp.tile(jnp.asarray(np.array(custom_neg_classes, np.int64)), (x.shape[0], 1))
    else:
        classes = ClassDistribution(sampler, num_total_classes)

        def draw(generator: Generator, count: int) -> np.ndarray[Any, Any]:
            shape = (count // num_neg_samples, num_neg_samples)
            return classes.draw(generator, shape, seed).reshape(-1)

        drawn = ctx.draw(seed, (x.shape[0], num_neg_samples), np.int64, draw)
    labels = jnp.concatenate([true, drawn], 1)
    scores = jnp.einsum("nd,nkd->nk", x, jnp.take(weight, labels, axis=0, mode="clip"))
    scores = scores if bias is None else scores + jnp.take(bias.reshape(-1), labels, mode="clip")
    o = 1 / (1 + jnp.exp(-scores))
    b = _weigh(labels, sampler, num_total_classes, x.dtype) * num_neg_samples
    is_true = jnp.arange(labels.shape[1]) < true.shape[1]
    cost = (jnp.log(o + b) - jnp.log(jnp.where(is_true, o, b))).sum(1, keepdims=True)
    return cost if sample_weight is None else cost * sample_weight.reshape(-1, 1), o, labels


@lowers("nce_grad")
def nce_grad(
    x: Array, label: Array, weight: Array, bias: Array | None,
    sample_weight: Array | None, probs: Array, alias: Array, alias_probs: Array,
    o: Array, labels: Array, d_cost: Array,
    *, num_total_classes: int, num_neg_samples: int, sampler: int, is_sparse: bool,
) -> Results:  # fmt: skip
    is_true = jnp.arange(labels.shape[1]) < label.size // x.shape[0]
    b = _weigh(labels, sampler, num_total_classes, x.dtype) * num_neg_samples
    d_scores = jnp.where(is_true, b * (o - 1) / (o + b), o * (1 - o) / (o + b)) * d_cost
    d_scores = d_scores if sample_weight is None else d_scores * sample_weight.reshape(-1, 1)
    rows = labels.reshape(-1)
    d_x = jnp.einsum("nk,nkd->nd", d_scores, jnp.take(weight, labels, axis=0, mode="clip"))
    values = (d_scores[..., None] * x[:, None]).reshape(rows.shape[0], -1)
    d_weight = SparseRows(rows, values, weight.shape[0])
    d_weight = d_weight if is_sparse else d_weight.to_dense()
    if bias is None:
        return d_x, d_weight, None
    d_bias = SparseRows(rows, d_scores.reshape(-1, 1), bias.shape[0])
    return d_x, d_weight, d_bias if is_sparse else d_bias.to_dense().reshape(bias.shape)


@lowers("sample_logits", draws=True)
def sample_logits(
    logits: Array, labels: Array, samples: Array, chances: Array,
    *, num_samples: int, use_customized_samples: bool, remove_accidental_hits: bool, seed: int,
    ctx: OpContext,
) -> Results:  # fmt: skip
    rows, true = labels.shape
    classes = logits.shape[1]
    if num_samples > classes:
        raise LoweringError("it draws more samples than there are classes")
    if not use_customized_samples:

        def draw(generator: Generator, _: int) -> Array | np.ndarray[Any, Any]:
            drawn, tries = draw_shared_classes(generator, classes, num_samples, seed)
            return np.append(drawn, tries)

        drawn = ctx.draw(seed, (num_samples + 1,), np.int64, draw)
        shared = jnp.broadcast_to(drawn[:-1], (rows, num_samples))
        samples = jnp.concatenate([labels.astype(jnp.int64), shared], 1)
        chance = jnp.log1p(1.0 / (samples.astype(jnp.float64) + 1.0)) / math.log(classes + 1)
        expected = -jnp.expm1(drawn[-1] * jnp.log1p(-chance))
        chances = jnp.where(drawn[-1] == num_samples, chance * num_samples, expected).astype(logits.dtype)
    ctx.check_below(samples, classes, "a class is")
    picked = jnp.take_along_axis(logits, samples, 1, mode="clip")
    if remove_accidental_hits:
        hits = (samples[:, true:, None] == labels[:, None, :]).any(2)
        picked = picked.at[:, true:].add(jnp.where(hits, -1e20, 0).astype(picked.dtype))
    picked = jnp.clip(picked - jnp.log(chances).astype(logits.dtype), -1e20, 1e20)
    places = jnp.broadcast_to(jnp.arange(true, dtype=jnp.int64), (rows, true))
    empty = (jnp.zeros((*logits.shape, 0), logits.dtype), jnp.zeros((*labels.shape, 0), labels.dtype))
    return samples, chances, *empty, picked, places


@lowers("sample_logits_grad")
def sample_logits_grad(logits_dim: Array, labels_dim: Array, samples: Array, d_picked: Array) -> Array:
    d_logits = jnp.zeros(logits_dim.shape[:2], d_picked.dtype)
    return d_logits.at[jnp.arange(samples.shape[0])[:, None], samples].add(d_picked)
