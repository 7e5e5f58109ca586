"""Matching of two texts: word-by-word similarities, the highest of them, and convolutions over them.

The images of a batch differ in size: ROW and COLUMN are the texts, whose LoDs say how many rows and columns
each image has. Wan et al., Match-SRNN, 2016.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    NO_LOD,
    OWN,
    Array,
    Attrs,
    Context,
    Gradient,
    Int,
    Ints,
    OpDef,
    Spec,
    register,
)
from paddlelike.ops.kernels.lod import check_equal_counts, read_last_level, read_levels
from paddlelike.ops.kernels.nn.image.windows import Windows
from paddlelike.ops.operands import can_be_equal


@register
class MatchMatrixTensor(OpDef):
    """``Out``: the images ``X[i] W[:, t] Y[i]^T`` of all pairs of texts i and all t, as one column.

    X ``(Tx, D)`` and Y ``(Ty, D)`` have one sequence per text; W is ``(D, dim_t, D)``. Tmp ``(Tx * dim_t * D,
    1)`` is ``X W``. Out has one sequence of ``dim_t * rows * columns`` numbers per pair.
    """

    type = "match_matrix_tensor"
    inputs = ("X", "Y", "W")
    outputs = ("Out", "Tmp")
    attrs = {"dim_t": Int(1)}
    lod = {"Out": "X"}
    gradient = Gradient("X", "Y", "W", "Tmp", "Out@GRAD", outputs=("X@GRAD", "Y@GRAD", "W@GRAD"), lod=OWN)

    @staticmethod
    def infer(x: Spec, y: Spec, w: Spec, *, dim_t: int) -> tuple[Spec, Spec]:
        width = x.shape[-1]
        fits = len(x.shape) == len(y.shape) == 2 and can_be_equal(y.shape[1], width)
        if not fits or w.shape != (width, dim_t, width):
            raise ShapeError(
                f"match_matrix_tensor: X has shape {x.shape}, Y {y.shape}, W {w.shape} and dim_t is {dim_t}; "
                "expected (T, D), (T', D) and (D, dim_t, D)"
            )
        return Spec((-1, 1), x.dtype), Spec((-1, 1), x.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, y: Array, w: Array, *, dim_t: int) -> tuple[Array, Array]:
        projected = np.tensordot(x, w, 1)
        parts, offsets = [], [0]
        for rows, columns in _pair(ctx, len(x), len(y)):
            image = projected[rows].swapaxes(0, 1) @ y[columns].T
            parts.append(image.reshape(-1))
            offsets.append(offsets[-1] + image.size)
        ctx.set_lod("Out", [offsets])
        out = np.concatenate(parts) if parts else np.empty(0, x.dtype)
        return out.reshape(-1, 1), projected.reshape(-1, 1)

    @staticmethod
    def backward(
        ctx: Context, x: Array, y: Array, w: Array, tmp: Array, d_out: Array, *, dim_t: int
    ) -> tuple[Array, Array, Array]:
        projected = tmp.reshape(len(x), dim_t, w.shape[2])
        d_projected, dy = np.zeros_like(projected), np.zeros_like(y)
        start = 0
        for rows, columns in _pair(ctx, len(x), len(y)):
            shape = (dim_t, rows.stop - rows.start, columns.stop - columns.start)
            end = start + int(np.prod(shape))
            above = d_out[start:end].reshape(shape)
            d_projected[rows] = (above @ y[columns]).swapaxes(0, 1)
            dy[columns] += np.tensordot(above, projected[rows], ((0, 1), (1, 0)))
            start = end
        return (
            np.tensordot(d_projected, w, ((1, 2), (1, 2))),
            dy,
            np.tensordot(x, d_projected, ((0,), (0,))),
        )


def _pair(ctx: Context, rows: int, columns: int) -> Iterator[tuple[slice, slice]]:
    """Yield the rows of X and of Y of each pair of texts."""
    offsets = [read_last_level(ctx, slot, n) for slot, n in (("X", rows), ("Y", columns))]
    check_equal_counts(ctx.op.type, ["X", "Y"], [len(each) - 1 for each in offsets])
    cuts = [[slice(a, b) for a, b in itertools.pairwise(each.tolist())] for each in offsets]
    yield from zip(*cuts, strict=True)


class _Image(NamedTuple):
    """One image of a batch: its elements in X, and its size."""

    part: slice
    height: int
    width: int


def _cut_images(ctx: Context, count: int, channels: int) -> list[_Image]:
    """Return the images in X by the LoDs of ROW and COLUMN; raise EnforceNotMet when these do not fit."""
    offsets = read_last_level(ctx, "X", count)
    heights, widths = (np.diff(read_levels(ctx, slot)[0]) for slot in ("ROW", "COLUMN"))
    check_equal_counts(ctx.op.type, ["X", "ROW", "COLUMN"], [len(offsets) - 1, len(heights), len(widths)])
    images = []
    for (start, end), height, width in zip(
        itertools.pairwise(offsets.tolist()), heights, widths, strict=True
    ):
        if end - start != channels * height * width:
            raise EnforceNotMet(
                f"{ctx.op.type}: an image has {end - start} numbers, expected {channels} x {height} x {width}"
            )
        images.append(_Image(slice(start, end), int(height), int(width)))
    return images


@register
class SequenceTopkAvgPooling(OpDef):
    """``Out``: for each row of an image and each k of ``topks``, the sum of its k largest elements divided by
    k.

    X ``(T, 1)`` holds images of ``channel_num`` channels; Out is ``(rows, channel_num * topks)`` with one
    sequence per image. A row of fewer than k numbers is filled up with zeros. ``pos`` holds the columns of
    the largest elements for the last of ``topks``, -1 where a row has too few.
    """

    type = "sequence_topk_avg_pooling"
    until = "1"
    inputs = ("X", "ROW", "COLUMN")
    outputs = ("Out", "pos")
    attrs = {"topks": Ints(), "channel_num": Int()}
    lod = {"Out": "ROW"}
    gradient = Gradient("X", "ROW", "COLUMN", "pos", "Out@GRAD", outputs=("X@GRAD",), lod=OWN)

    @staticmethod
    def infer(x: Spec, row: Spec, column: Spec, *, topks: list[int], channel_num: int) -> tuple[Spec, None]:
        if not topks or min(topks) < 1 or sorted(topks) != list(topks):
            raise ShapeError(
                f"sequence_topk_avg_pooling: topks is {list(topks)}, expected rising numbers from 1 on"
            )
        return Spec((-1, channel_num * len(topks)), x.dtype), None

    @staticmethod
    def forward(
        ctx: Context, x: Array, row: Array, column: Array, *, topks: list[int], channel_num: int
    ) -> tuple[Array, Array]:
        flat, most = x.reshape(-1), topks[-1]
        outs, places = [], []
        for image in _cut_images(ctx, len(x), channel_num):
            numbers = flat[image.part].reshape(channel_num, image.height, image.width)
            order = np.argsort(-numbers, axis=2, kind="stable")[:, :, :most]
            taken = np.full((channel_num, image.height, most), -1, np.int32)
            taken[:, :, : order.shape[2]] = order
            ranked = np.zeros((channel_num, image.height, most), x.dtype)
            ranked[:, :, : order.shape[2]] = np.take_along_axis(numbers, order, 2)
            sums = ranked.cumsum(2, dtype=x.dtype)[:, :, np.array(topks) - 1] / np.array(topks, x.dtype)
            outs.append(sums.swapaxes(0, 1).reshape(image.height, -1))
            places.append(taken.swapaxes(0, 1).reshape(-1))
        ctx.set_lod("Out", [list(read_levels(ctx, "ROW")[0])])
        return np.concatenate(outs), np.concatenate(places)

    @staticmethod
    def backward(
        ctx: Context,
        x: Array,
        row: Array,
        column: Array,
        places: Array,
        d_out: Array,
        *,
        topks: list[int],
        channel_num: int,
    ) -> Array:
        dx, most = np.zeros(len(x), x.dtype), topks[-1]
        # The gradient of the i-th greatest number: 1 / k from each k above i.
        share = (np.arange(most) < np.array(topks)[:, None]) / np.array(topks, x.dtype)[:, None]
        first = 0
        for image in _cut_images(ctx, len(x), channel_num):
            end = first + image.height
            above = d_out[first:end].reshape(image.height, channel_num, len(topks)) @ share.astype(x.dtype)
            taken = places.reshape(-1, channel_num, most)[first:end]
            each = np.zeros((image.height, channel_num, image.width + 1), x.dtype)
            np.put_along_axis(each, taken.astype(np.int64), above, 2)  # -1: the last column, dropped
            dx[image.part] = each[:, :, :-1].swapaxes(0, 1).reshape(-1)
            first = end
        return dx.reshape(x.shape)


class _ConvAttrs(Attrs):
    InputChannel: int = Int(1)
    OutputChannel: int = Int(1)
    StrideH: int = Int(1)
    StrideW: int = Int(1)
    KernelH: int = Int(1)
    KernelW: int = Int(1)

    def windows(self, image: _Image) -> Windows:
        """Return the windows over an image, one around every ``stride``-th element, with zeros outside."""
        pads = []
        for size, kernel, stride in (
            (image.height, self.KernelH, self.StrideH),
            (image.width, self.KernelW, self.StrideW),
        ):
            count = (size - 1) // stride + 1
            pads.append((kernel // 2, max((count - 1) * stride + kernel - size - kernel // 2, 0)))
        return Windows((self.KernelH, self.KernelW), (self.StrideH, self.StrideW), tuple(pads), (1, 1))


@register
class VarConv2d(OpDef):
    """``Out``: a convolution over images of different sizes, padded so that a stride of 1 keeps the size.

    X ``(T, 1)`` holds images of InputChannel channels; W is ``(OutputChannel, InputChannel * KernelH *
    KernelW)``. Out ``(T', 1)`` has one sequence per image; Col holds the windows.
    """

    type = "var_conv_2d"
    inputs = ("X", "ROW", "COLUMN", "W")
    outputs = ("Out", "Col")
    attrs = _ConvAttrs.table()
    lod = {"Out": "X"}
    gradient = Gradient(
        "X", "ROW", "COLUMN", "W", "Out", "Col", "Out@GRAD", outputs=("X@GRAD", "W@GRAD"), lod=OWN
    )

    @staticmethod
    def infer(x: Spec, row: Spec, column: Spec, w: Spec, *, attrs: _ConvAttrs) -> tuple[Spec, Spec]:
        wanted = (attrs.OutputChannel, attrs.InputChannel * attrs.KernelH * attrs.KernelW)
        if tuple(w.shape) != wanted:
            raise ShapeError(f"var_conv_2d: W has shape {w.shape}; its attributes need {wanted}")
        return Spec((-1, 1), x.dtype, NO_LOD), Spec((-1, 1), x.dtype, NO_LOD)

    @staticmethod
    def forward(
        ctx: Context, x: Array, row: Array, column: Array, w: Array, *, attrs: _ConvAttrs
    ) -> tuple[Array, Array]:
        outs, windows = [], []
        for image in _cut_images(ctx, len(x), attrs.InputChannel):
            columns = _unfold(x, image, attrs)
            windows.append(columns.reshape(-1))
            outs.append((w @ columns).reshape(-1))
        for slot, parts in (("Out", outs), ("Col", windows)):
            ctx.set_lod(slot, [np.cumsum([0, *map(len, parts)]).tolist()])
        return np.concatenate(outs)[:, None], np.concatenate(windows)[:, None]

    @staticmethod
    def backward(
        ctx: Context,
        x: Array,
        row: Array,
        column: Array,
        w: Array,
        out: Array,
        columns: Array,
        d_out: Array,
        *,
        attrs: _ConvAttrs,
    ) -> tuple[Array, Array]:
        dx, dw = np.zeros(len(x), x.dtype), np.zeros_like(w)
        start = 0
        for image in _cut_images(ctx, len(x), attrs.InputChannel):
            unfolded = _unfold(x, image, attrs)
            end = start + len(w) * unfolded.shape[1]
            above = d_out[start:end].reshape(len(w), -1)
            start = end
            if not above.size:
                continue
            dw += above @ unfolded.T
            windows = attrs.windows(image)
            size = (image.height, image.width)
            total = np.zeros((1, attrs.InputChannel, *windows.padded(size)), x.dtype)
            counts = windows.counts(size)
            windows.fold_into(total, (w.T @ above).reshape(1, attrs.InputChannel, *windows.kernel, *counts))
            dx[image.part] = windows.crop(total, size).reshape(-1)
        return dx.reshape(x.shape), dw


def _unfold(x: Array, image: _Image, attrs: _ConvAttrs) -> Array:
    """Return the windows over an image: (channels * kernel, count)."""
    rows = attrs.InputChannel * attrs.KernelH * attrs.KernelW
    if not image.height * image.width:
        return np.zeros((rows, 0), x.dtype)
    numbers = x.reshape(-1)[image.part].reshape(1, attrs.InputChannel, image.height, image.width)
    windows = attrs.windows(image)
    return windows.unfold(windows.pad(numbers)).reshape(rows, -1)
