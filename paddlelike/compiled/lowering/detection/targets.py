"""Targets of anchors: matching true boxes, hard negatives, and the values to predict for both."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.lowering.sequence.sequence import require_sequences, to_steps
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError, find_bucket
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value
from paddlelike.ops.detection.targets.matching import MANY, NEAR


@lowers("target_assign", sequences=True)
def target_assign(
    x: Packed, match: Array | Packed, negative: Packed | None, *, mismatch_value: int
) -> tuple[Value, Value]:
    require_sequences(x)
    match = match.rows[: x.count] if isinstance(match, Packed) else match
    if x.count != match.shape[0]:
        raise LoweringError("X has no sequence for each row of MatchIndices")
    matched = match > -1
    rows = x.offsets[-1][:-1][:, None] + jnp.maximum(match, 0)
    found = x.rows[rows, jnp.arange(match.shape[1]) % x.rows.shape[1]]
    fill = jnp.asarray(mismatch_value, x.rows.dtype)
    out = jnp.where(matched[..., None], found, fill)
    weight = matched
    if negative is not None:
        require_sequences(negative)
        anchor = jnp.where(negative.used, negative.rows.reshape(-1), match.shape[1])  # out of bounds: dropped
        image = jnp.minimum(negative.index_rows(), negative.count - 1)
        out = out.at[image, anchor].set(fill, mode="drop")
        weight = weight.at[image, anchor].set(True, mode="drop")
    return out, weight[..., None].astype(jnp.float32)


@lowers("bipartite_match", sequences=True)
def bipartite_match(matrix: Array | Packed, *, match_type: str, dist_threshold: float) -> tuple[Value, Value]:
    if isinstance(matrix, Packed):
        require_sequences(matrix)
        steps, there = to_steps(matrix)
        images, lengths = jnp.moveaxis(steps, 1, 0), matrix.lengths
        images = jnp.where(there.T[..., None], images, -jnp.inf)
    else:
        images, lengths = matrix[None], jnp.full(1, matrix.shape[0])
    near = jnp.asarray(NEAR, images.dtype)
    is_near = jnp.where((lengths >= MANY)[:, None, None], images > 0, images >= near)
    index = jax.vmap(_match_greedily)(jnp.where(is_near, images, -jnp.inf))
    if match_type == "per_prediction":
        threshold = jnp.asarray(np.float32(dist_threshold), images.dtype)
        distances = jnp.where((images >= near) & (images >= threshold), images, -jnp.inf)
        rows = distances.argmax(1).astype(jnp.int32)
        index = jnp.where((index == -1) & (distances.max(1) > -jnp.inf), rows, index)
    found = jnp.take_along_axis(images, jnp.maximum(index, 0)[:, None], 1)[:, 0]
    return index, jnp.where(index >= 0, found, 0)


def _match_greedily(left: Array) -> Array:
    """Match columns to rows greedily, the greatest distance first, and return the row of each column."""
    height, width = left.shape

    def match(_: Array, state: Array) -> tuple[Array, Any]:
        left, index = state
        place = jnp.argmax(left.T)  # of equal distances the first column, then the first row
        column, row = place // height, place % height
        is_left = left[row, column] > -jnp.inf
        index = index.at[column].set(jnp.where(is_left, row, index[column]).astype(jnp.int32))
        taken = (jnp.arange(height) == row)[:, None] | (jnp.arange(width) == column)
        return jnp.where(taken, -jnp.inf, left), index

    start = (left, jnp.full(width, -1, jnp.int32))
    return jax.lax.fori_loop(0, min(height, width), match, start)[1]


@lowers("mine_hard_examples")
def mine_hard_examples(
    cls_loss: Array, loc_loss: Array | None, match: Array, distance: Array,
    *, neg_pos_ratio: float, neg_dist_threshold: float, sample_size: int, mining_type: str, ctx: OpContext,
) -> tuple[Packed, Array]:  # fmt: skip
    given = (cls_loss, loc_loss, distance)
    if any(one is not None and one.shape != match.shape for one in given):
        raise LoweringError("the losses and MatchIndices have different shapes")
    hard = mining_type == "hard_example"
    if hard:
        loss = cls_loss if loc_loss is None else cls_loss + loc_loss
        able = jnp.ones(match.shape, bool)
        wanted = jnp.full(match.shape[0], sample_size)
    else:
        loss = cls_loss
        able = (match == -1) & (distance < jnp.asarray(np.float32(neg_dist_threshold), distance.dtype))
        positive = (match != -1).sum(1).astype(jnp.float32)
        wanted = (positive * jnp.float32(neg_pos_ratio)).astype(jnp.int32)
    ranked = jnp.where(able, loss.astype(jnp.float32), -jnp.inf)  # as Paddle compares them
    falling = -jnp.sort(-ranked, 1)
    last = jnp.minimum(wanted, able.shape[1] - 1)[:, None]
    cut = jnp.take_along_axis(falling, last, 1)  # the greatest that is left out
    takes_all = (wanted >= able.sum(1))[:, None]
    taken = able & (takes_all | (ranked > cut))
    ctx.require(
        takes_all[:, 0] | (taken.sum(1) == wanted),
        "the order of equal losses depends on the unstable sort of C++",
    )
    negative = taken & (match <= -1)
    updated = jnp.where((match > -1) & ~taken, -1, match) if hard else match
    return _list_columns(negative), updated


def _list_columns(chosen: Array) -> Packed:
    """Return the chosen columns of each row, as one sequence per row."""
    counts = chosen.sum(1)
    size = find_bucket(chosen.size)
    (places,) = jnp.nonzero(chosen.reshape(-1), size=size)
    columns = jnp.where(
        jnp.arange(size) < counts.sum(), places % chosen.shape[1], places[0] % chosen.shape[1]
    )
    offsets = jnp.concatenate([jnp.zeros(1, counts.dtype), jnp.cumsum(counts)]).astype(jnp.int32)
    return Packed(columns.astype(jnp.int32)[:, None], (offsets,), find_bucket(chosen.shape[1]))
