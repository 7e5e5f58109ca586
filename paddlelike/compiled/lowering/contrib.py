"""Lowerings of matching and of trees."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.lowering.sequence.part import gather_sequences
from paddlelike.compiled.lowering.sequence.sequence import require_sequences, to_steps
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError, find_bucket
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value
from paddlelike.core import numpy_dtype
from paddlelike.framework import follows_fluid


def _require_one_level(*values: Value) -> None:
    require_sequences(*values)
    if any(len(value.offsets) > 1 or value.live is not None for value in values):
        raise LoweringError("it reads sequences of sequences")


@lowers("match_matrix_tensor", sequences=True)
def match_matrix_tensor(x: Packed, y: Packed, w: Value) -> tuple[Value, None]:
    _require_one_level(x, y)
    if x.count != y.count:
        raise LoweringError("X and Y have different numbers of sequences")
    (rows, here), (columns, there) = to_steps(x), to_steps(y)
    rows = jnp.where(here[..., None], rows, 0)
    columns = jnp.where(there[..., None], columns, 0)
    images = jnp.einsum("ind,dke,jne->nkij", rows, w, columns)
    return _flatten_images(images, x.lengths, y.lengths), None


def _flatten_images(images: Array, heights: Array, widths: Array) -> Packed:
    """Return the pixels inside each image of a padded batch (N, C, H, W), as sequences."""
    count, channels, height, width = images.shape
    size = channels * height * width

    def find(which: Array, step: Array) -> Array:
        wide, area = jnp.maximum(widths[which], 1), jnp.maximum(heights[which] * widths[which], 1)
        channel, rest = step // area, step % area
        return ((which * channels + channel) * height + rest // wide) * width + rest % wide

    lengths = channels * heights * widths
    return gather_sequences(
        images.reshape(-1, 1), find, lengths, find_bucket(count * size), find_bucket(size)
    )


@lowers("var_conv_2d", sequences=True)
def var_conv_2d(
    x: Packed, row: Packed, column: Packed, w: Array,
    *, InputChannel: int, OutputChannel: int, StrideH: int, StrideW: int, KernelH: int, KernelW: int,  # noqa: N803
) -> tuple[Value, None]:  # fmt: skip
    _require_one_level(x, row, column)
    heights, widths = row.lengths, column.lengths
    height, width = row.longest, column.longest
    index = np.indices((InputChannel, height, width))
    channel, i, j = (part[None] for part in index)
    tall, wide = heights[:, None, None, None], widths[:, None, None, None]
    places = x.offsets[0][:-1][:, None, None, None] + (channel * tall + i) * wide + j
    inside = (i < tall) & (j < wide)
    numbers = jnp.take(x.rows.reshape(-1), jnp.where(inside, places, 0), mode="clip")
    images = jnp.where(inside, numbers, 0).astype(x.rows.dtype)
    out = jax.lax.conv_general_dilated(
        images,
        w.reshape(OutputChannel, InputChannel, KernelH, KernelW),
        (StrideH, StrideW),
        [(k // 2, max(k - 1 - k // 2, 0)) for k in (KernelH, KernelW)],
    )
    high, across = (
        jnp.where(size > 0, (size - 1) // stride + 1, 0)
        for size, stride in ((heights, StrideH), (widths, StrideW))
    )
    return _flatten_images(out, high, across), None


@lowers("sequence_topk_avg_pooling", sequences=True)
def sequence_topk_avg_pooling(
    x: Packed, row: Packed, column: Packed, *, topks: list[int], channel_num: int
) -> tuple[Packed, Packed]:
    _require_one_level(x, row, column)
    if not x.count == row.count == column.count:
        raise LoweringError("X, ROW and COLUMN have different numbers of sequences")
    image = jnp.minimum(row.index_rows(), row.count - 1)
    step = jnp.where(row.used, jnp.arange(row.rows.shape[0]) - row.offsets[0][:-1][image], 0)
    height, width = row.lengths[image], column.lengths[image]
    most = topks[-1]
    across = jnp.arange(max(column.longest, most))
    channel = jnp.arange(channel_num)[:, None]
    here = (slice(None), None, None)
    places = (x.offsets[0][:-1][image][here] + (channel * height[here] + step[here]) * width[here]) + across
    inside = jnp.broadcast_to(across < width[here], places.shape)
    numbers = jnp.take(x.rows.reshape(-1), jnp.where(inside, places, 0), mode="clip")
    _, order = jax.lax.top_k(jnp.where(inside, numbers, -jnp.inf), most)
    there = jnp.take_along_axis(inside, order, 2)
    ranked = jnp.where(there, jnp.take_along_axis(numbers, order, 2), 0)
    sums = jnp.cumsum(ranked, 2)[:, :, np.array(topks) - 1] / jnp.asarray(topks, x.rows.dtype)
    taken = jnp.where(there, order, -1).astype(jnp.int32).reshape(-1)
    count = row.total * (channel_num * most)
    live = Packed(taken, (), taken.shape[0], shown=False, live=count.astype(jnp.int32))
    return row.replace(sums.reshape(sums.shape[0], -1), shown=True), live


@lowers("tdm_child", sequences=True)
def tdm_child(
    x: Array | Packed, tree: Array, *, child_nums: int, dtype: int, ctx: OpContext
) -> tuple[Value, Value]:
    if isinstance(x, Packed):
        found = tdm_child(x.rows, tree, child_nums=child_nums, dtype=dtype, ctx=ctx)
        return x.replace(found[0]), x.replace(found[1])
    ctx.check_below(x, tree.shape[0], "a node is")
    children = jnp.take(tree[:, 3 : 3 + child_nums], x, axis=0, mode="clip")
    nothing = (x == 0) | (jnp.take(tree[:, 3], x, mode="clip") == 0)
    children = jnp.where(nothing[..., None], 0, children)
    ctx.check((children >= 0) & (children < tree.shape[0]), "a child is not a node")
    leaf = (jnp.take(tree[:, 0], children, mode="clip") != 0) & (children != 0)
    return children.astype(numpy_dtype(dtype)), leaf.astype(numpy_dtype(dtype))


@lowers("tree_conv")
def tree_conv(nodes: Array, edges: Array, w: Array, *, max_depth: int, ctx: OpContext) -> Array:
    weights = _weigh_places(edges, nodes.shape[1], max_depth, nodes.dtype, ctx)
    patches = _fill_padding(jnp.einsum("bknm,bmd->bndk", weights, nodes), edges)
    return jnp.einsum("bndk,dkof->bnof", patches, w)


@lowers("tree_conv_grad")
def tree_conv_grad(
    nodes: Array, edges: Array, w: Array, d_out: Array, *, max_depth: int
) -> tuple[Array, Array]:
    weights = _weigh_places(edges, nodes.shape[1], max_depth, nodes.dtype, None)
    patches = jnp.einsum("bknm,bmd->bndk", weights, nodes)
    dw = jnp.einsum("bndk,bnof->dkof", patches, d_out)
    if not follows_fluid("tree_conv_gradient"):
        return jnp.einsum("bknm,bnof,dkof->bmd", weights, d_out, w), dw
    # Patches (O, F, 3), but the filter is read as (D, 3, O, F): as Fluid does.
    above = d_out.reshape(*d_out.shape[:2], -1)
    mixed = jnp.einsum("bkrn,bro->bnok", weights, above).reshape(*nodes.shape[:2], -1)
    return _fill_padding(mixed @ w.reshape(w.shape[0], -1).T, edges), dw


def _fill_padding(rows: jax.Array, edges: jax.Array) -> jax.Array:
    """Return the rows as (B, N, ...). Rows after a tree repeat the tree before it: see
    ``tree_conv_padding``.
    """
    if not follows_fluid("tree_conv_padding"):
        return rows
    total = (edges != 0).all(-1).sum(1) + 1
    exists = (jnp.arange(rows.shape[1]) < total[:, None]).reshape(*rows.shape[:2], *(1,) * (rows.ndim - 2))

    def follow(before: jax.Array, given: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        now = jnp.where(given[1], given[0], before)
        return now, now

    return jax.lax.scan(follow, jnp.zeros_like(rows[0]), (rows, exists))[1]


def _weigh_places(
    edges: Array, count: int, max_depth: int, dtype: np.dtype[Any], ctx: OpContext | None
) -> Array:
    """Return the weight of node j for node i, from the left, right and top: shape (B, 3, count, count)."""
    parent, child = edges[..., 0], edges[..., 1]
    used = jnp.cumprod((parent != 0) & (child != 0), axis=1).astype(bool)
    total = ((parent != 0) & (child != 0)).sum(1) + 1
    if ctx is not None:
        inside = (jnp.minimum(parent, child) > 0) & (jnp.maximum(parent, child) <= total[:, None])
        ctx.check((inside | ~used) & (total <= count)[:, None], "the edges do not form a tree of the nodes")
    same = (parent[:, :, None] == parent[:, None]) & used[:, None] & used[:, :, None]
    siblings = same.sum(-1)
    index = jnp.tril(same).sum(-1)  # from 1 on, in the order of the edges
    batch = jnp.arange(edges.shape[0])[:, None]
    at = jnp.where(used, child - 1, count)  # out of bounds: dropped

    def by_node(values: Array) -> Array:
        return jnp.ones((edges.shape[0], count), jnp.float64).at[batch, at].set(values, mode="drop")

    places = jnp.where(siblings == 1, 0.5, (index - 1) / jnp.maximum(siblings - 1, 1))
    place = by_node(places)
    below = (
        jnp.zeros((edges.shape[0], count, count))
        .at[batch, parent - 1, at]
        .set(jnp.where(used, 1.0, 0.0), mode="drop")
    )  # from a node to its children
    exists = (jnp.arange(count) < total[:, None])[:, :, None]
    reach = jnp.where(exists, jnp.eye(count), 0.0)
    result = jnp.zeros((edges.shape[0], 3, count, count))
    for depth in range(max_depth):
        top = (max_depth - depth) / max_depth
        side = jnp.full_like(place, 0.5) if depth == 0 else place
        left = (1 - top) * side
        parts = jnp.stack([left, (1 - top) * (1 - left), jnp.full_like(left, top)], 1)
        result = result + reach[:, None] * parts[:, :, None]
        reach = reach @ below
    return result.astype(dtype)
