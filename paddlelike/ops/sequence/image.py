"""im2sequence: an image as the sequence of its windows, row by row."""

from __future__ import annotations

import math

import numpy as np

from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Array, Attrs, Context, Gradient, Ints, OpDef, Spec, register
from paddlelike.ops.kernels.lod import expand_ranges, make_lod
from paddlelike.ops.kernels.nn.image.windows import Windows, has_windows, make_windows


class Im2SequenceAttrs(Attrs):
    """Attributes of im2sequence."""

    kernels: list[int] = Ints()
    strides: list[int] = Ints([1, 1])
    paddings: list[int] = Ints([0, 0, 0, 0])
    out_stride: list[int] = Ints([1, 1])


@register
class Im2Sequence(OpDef):
    """``Out``: one sequence per image of X (N, C, H, W), a row (C kh kw) per window of ``kernels``.

    ``paddings`` are (top, left, bottom, right). Y (N, 2) holds the true height and width of each image,
    before it was made ``out_stride`` times smaller. Windows outside of the true size are left out.
    """

    type = "im2sequence"
    inputs = ("X", "Y?")
    attrs = Im2SequenceAttrs.table()
    gradient = Gradient("Out@GRAD", "X", outputs=("X@GRAD",))

    @staticmethod
    def infer(x: Spec, y: Spec | None, *, attrs: Im2SequenceAttrs) -> Spec:
        if len(x.shape) != 4:
            raise ShapeError(f"im2sequence: X is {list(x.shape)}, expected (N, C, H, W)")
        counts = _windows(attrs.kernels, attrs.strides, attrs.paddings).counts(x.shape[2:])
        if not has_windows(x.shape[2:], counts):
            raise ShapeError(
                f"im2sequence: X of shape {list(x.shape)} is smaller than a window of {attrs.kernels}"
            )
        # the rows are not N, but Paddle declares them so
        return Spec((x.shape[0], x.shape[1] * math.prod(attrs.kernels)), x.dtype, 1)

    @staticmethod
    def forward(ctx: Context, x: Array, y: Array | None, *, attrs: Im2SequenceAttrs) -> Array:
        windows = _windows(attrs.kernels, attrs.strides, attrs.paddings)
        view = windows.unfold(windows.pad(x)).transpose(0, 4, 5, 1, 2, 3)
        n, high, wide = view.shape[:3]
        if y is None:
            ctx.set_lod("Out", [make_lod(np.full(n, high * wide))])
            return view.reshape(n * high * wide, -1)
        small = -(-y.astype(np.int64) // np.array(attrs.out_stride))
        counts = np.array([windows.counts(size) for size in small.tolist()])
        if (counts > (high, wide)).any():
            raise EnforceNotMet(
                f"im2sequence: Y holds {y.tolist()} with out_stride {attrs.out_stride}, "
                f"but X is {list(x.shape)}",
                hint="Y is the size of the original images",
            )
        ctx.set_lod("Out", [make_lod(counts.prod(1))])
        return view.reshape(n * high * wide, -1)[_select_inside(counts, high, wide)]

    @staticmethod
    def backward(ctx: Context, d_out: Array, x: Array, *, attrs: Im2SequenceAttrs) -> Array:
        windows = _windows(attrs.kernels, attrs.strides, attrs.paddings)
        high, wide = windows.counts(x.shape[2:])
        if len(d_out) != len(x) * high * wide:
            raise EnforceNotMet("im2sequence: it has no gradient when Y gives the sizes of the images")
        d_windows = d_out.reshape(len(x), high, wide, x.shape[1], *attrs.kernels).transpose(0, 3, 4, 5, 1, 2)
        d_x = np.zeros((*x.shape[:2], *windows.padded(x.shape[2:])), d_out.dtype)
        windows.fold_into(d_x, d_windows)
        return np.ascontiguousarray(windows.crop(d_x, x.shape[2:]))


def _select_inside(counts: Array, high: int, wide: int) -> Array:
    """Return the windows in the upper left corner of each image, ``counts[i]`` of ``high`` times ``wide``."""
    heights, widths = counts.T
    image = np.repeat(np.arange(len(counts)), heights)
    row = expand_ranges(np.zeros_like(heights), heights)
    return expand_ranges((image * high + row) * wide, np.repeat(widths, heights))


def _windows(kernels: list[int], strides: list[int], paddings: list[int]) -> Windows:
    if len(paddings) != 4:
        raise ShapeError(f"im2sequence: paddings is {paddings}, expected top, left, bottom, right")
    top, left, bottom, right = paddings
    return make_windows("im2sequence", (-1, -1), kernels, strides, (top, bottom, left, right))
