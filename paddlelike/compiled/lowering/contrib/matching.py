"""Matrices of pairs of sequences, as images of their own sizes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.lowering.sequence.part import gather_sequences
from paddlelike.compiled.lowering.sequence.sequence import require_sequences, to_steps
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError, find_bucket
from paddlelike.compiled.values import Packed, Value


def _require_one_level(*values: Value) -> None:
    require_sequences(*values)
    if any(len(value.offsets) > 1 or value.live is not None for value in values):
        raise LoweringError("sequences of sequences")


@lowers("match_matrix_tensor", sequences=True)
def match_matrix_tensor(x: Packed, y: Packed, w: Value) -> tuple[Value, None]:
    _require_one_level(x, y)
    if x.count != y.count:
        raise LoweringError("X and Y have different counts of sequences")
    (rows, here), (columns, there) = to_steps(x), to_steps(y)
    rows = jnp.where(here[..., None], rows, 0)
    columns = jnp.where(there[..., None], columns, 0)
    images = jnp.einsum("ind,dke,jne->nkij", rows, w, columns)
    return _flatten_images(images, x.lengths, y.lengths), None


def _flatten_images(images: jax.Array, heights: jax.Array, widths: jax.Array) -> Packed:
    """Return the pixels inside each image of a padded batch (N, C, H, W), as sequences."""
    count, channels, height, width = images.shape
    size = channels * height * width

    def find(which: jax.Array, step: jax.Array) -> jax.Array:
        wide, area = jnp.maximum(widths[which], 1), jnp.maximum(heights[which] * widths[which], 1)
        channel, rest = step // area, step % area
        return ((which * channels + channel) * height + rest // wide) * width + rest % wide

    lengths = channels * heights * widths
    return gather_sequences(
        images.reshape(-1, 1), find, lengths, find_bucket(count * size), find_bucket(size)
    )


@lowers("var_conv_2d", sequences=True)
def var_conv_2d(
    x: Packed, row: Packed, column: Packed, w: jax.Array,
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
        raise LoweringError("X, ROW and COLUMN have different counts of sequences")
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
