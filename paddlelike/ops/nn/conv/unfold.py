"""unfold: all windows of an image as columns (im2col)."""

from __future__ import annotations

import math

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Attrs, Gradient, Ints, OpDef, Spec, register
from paddlelike.ops.kernels.nn.image.windows import Windows, check_image, has_windows, make_windows
from paddlelike.ops.later import register_kernel


class UnfoldAttrs(Attrs):
    """Attributes of unfold; ``paddings`` are (top, left, bottom, right)."""

    kernel_sizes: list[int] = Ints()
    strides: list[int] = Ints()
    paddings: list[int] = Ints()
    dilations: list[int] = Ints()

    def windows(self) -> Windows:
        """Return the windows; raise ShapeError when the attributes do not describe any."""
        if len(self.paddings) != 4:
            raise ShapeError(
                f"unfold: paddings is {self.paddings}; it needs 4 numbers: top, left, bottom, right"
            )
        top, left, bottom, right = self.paddings
        pads = (top, bottom, left, right)
        return make_windows("unfold", (-1, -1), self.kernel_sizes, self.strides, pads, self.dilations)


@register
class Unfold(OpDef):
    """``(N, C, H, W)`` to ``(N, C kh kw, L)``: column l holds window l. The gradient adds them back."""

    type = "unfold"
    outputs = ("Y",)
    attrs = UnfoldAttrs.table()
    gradient = Gradient("X", "Y@GRAD")

    @staticmethod
    def infer(x: Spec, *, attrs: UnfoldAttrs) -> Spec:
        check_image("unfold", x)
        windows = attrs.windows()
        counts = windows.counts(x.shape[2:])
        if not has_windows(x.shape[2:], counts):
            raise ShapeError(
                f"unfold: X of shape {x.shape} with paddings {windows.pads} is smaller than one window "
                f"of {windows.extent}"
            )
        columns = -1 if -1 in counts else math.prod(counts)
        return Spec((x.shape[0], x.shape[1] * math.prod(attrs.kernel_sizes), columns), x.dtype)

    @staticmethod
    def forward(x: Array, *, attrs: UnfoldAttrs) -> Array:
        windows = attrs.windows()
        unfolded = windows.unfold(windows.pad(x))
        columns = math.prod(windows.counts(x.shape[2:]))
        out = unfolded.reshape(len(x), x.shape[1] * math.prod(attrs.kernel_sizes), columns)
        return out.copy() if np.may_share_memory(out, x) else out

    @staticmethod
    def backward(x: Array, d_y: Array, *, attrs: UnfoldAttrs) -> Array:
        windows = attrs.windows()
        counts = windows.counts(x.shape[2:])
        dx = np.zeros((*x.shape[:2], *windows.padded(x.shape[2:])), d_y.dtype)
        windows.fold_into(dx, d_y.reshape(*x.shape[:2], *attrs.kernel_sizes, *counts))
        return np.ascontiguousarray(windows.crop(dx, x.shape[2:]))


class FoldAttrs(Attrs):
    """Attributes of fold."""

    output_sizes: list[int] = Ints([])
    kernel_sizes: list[int] = Ints([])
    strides: list[int] = Ints([1, 1])
    paddings: list[int] = Ints([0, 0, 0, 0])
    dilations: list[int] = Ints([1, 1])


@register_kernel("fold", "X -> Y", FoldAttrs.table(), traceable=False)  # it adds to views of its result
def _fold(x: Array, *, attrs: FoldAttrs) -> Array:
    """An image built from its windows, which are added where they overlap."""
    (height, width), (kh, kw) = attrs.output_sizes, attrs.kernel_sizes
    pads = attrs.paddings if len(attrs.paddings) == 4 else [*attrs.paddings, *attrs.paddings]
    top, left, bottom, right = pads
    (sh, sw), (dh, dw) = attrs.strides, attrs.dilations
    rows = (height + top + bottom - dh * (kh - 1) - 1) // sh + 1
    columns = (width + left + right - dw * (kw - 1) - 1) // sw + 1
    parts = x.reshape(len(x), -1, kh, kw, rows, columns)
    out = np.zeros((len(x), parts.shape[1], height + top + bottom, width + left + right), x.dtype)
    for i in range(kh):
        for j in range(kw):
            part = out[:, :, i * dh : i * dh + sh * rows : sh, j * dw : j * dw + sw * columns : sw]
            part += parts[:, :, i, j]
    return out[:, :, top : top + height, left : left + width].copy()
