"""Convolutions whose windows read elements at computed positions.

Dai et al., Deformable convolutional networks, 2017; Zhu et al., Deformable ConvNets v2 (a mask), 2018.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import Array, Attrs, Gradient, Int, Ints, OpDef, Spec, register
from paddlelike.ops.kernels.detection.regions import Points, from_rows, surround, to_rows
from paddlelike.ops.kernels.nn.image.windows import Windows, make_windows
from paddlelike.ops.operands import can_be_equal


class DeformableAttrs(Attrs):
    """Attributes of deformed convolutions."""

    strides: list[int] = Ints([1, 1])
    paddings: list[int] = Ints([0, 0])
    dilations: list[int] = Ints([1, 1])
    groups: int = Int(1)
    deformable_groups: int = Int(1)
    im2col_step: int = Int(64)

    def mixed_images(self, count: int) -> int:
        """Return the number of images whose results Fluid mixes: see ``deformable_steps``."""
        step = self.im2col_step
        return step if step > 1 and count % step == 0 and follows_fluid("deformable_steps") else 1

    def windows(self, op: str, spatial: tuple[int, ...], kernel: tuple[int, ...]) -> Windows:
        """Return the windows of a filter, before their elements are moved."""
        return make_windows(op, spatial, kernel, self.strides, self.paddings, self.dilations)


@register
class DeformableConvV1(OpDef):
    """``conv2d`` where Offset moves element (i, j) of the window at (h, w); pixels are interpolated linearly.

    Input ``(N, C, H, W)``, Filter ``(O, C / groups, kh, kw)``, Output ``(N, O, H', W')``, Offset ``(N, 2 *
    deformable_groups * kh * kw, H', W')``: for each group of channels and each element, the shift down and to
    the right. Pixels outside of the image are 0. Where ``im2col_step`` divides N, Fluid exchanges the results
    of that many images: see ``fluid.quirks()``.
    """

    type = "deformable_conv_v1"
    inputs = ("Input", "Offset", "Filter")
    outputs = ("Output",)
    attrs = DeformableAttrs.table()
    gradient = Gradient("Input", "Offset", "Filter", "Output@GRAD")

    @classmethod
    def infer(cls, x: Spec, offset: Spec, w: Spec, *, attrs: DeformableAttrs) -> Spec:
        return _infer(cls.type, x, offset, None, w, attrs)

    @classmethod
    def forward(cls, x: Array, offset: Array, w: Array, *, attrs: DeformableAttrs) -> Array:
        return _convolve(cls.type, x, offset, None, w, attrs)

    @classmethod
    def backward(
        cls, x: Array, offset: Array, w: Array, d_out: Array, *, attrs: DeformableAttrs
    ) -> tuple[Array, Array, Array]:
        dx, d_offset, _, dw = _differentiate(cls.type, (x, offset, None, w), d_out, attrs)
        return dx, d_offset, dw


@register
class DeformableConv(OpDef):
    """``deformable_conv_v1`` with elements multiplied by Mask.

    Mask ``(N, deformable_groups * kh * kw, H', W')``: one factor for each element of each window.
    """

    type = "deformable_conv"
    inputs = ("Input", "Offset", "Mask", "Filter")
    outputs = ("Output",)
    attrs = DeformableAttrs.table()
    gradient = Gradient("Input", "Offset", "Mask", "Filter", "Output@GRAD")

    @classmethod
    def infer(cls, x: Spec, offset: Spec, mask: Spec, w: Spec, *, attrs: DeformableAttrs) -> Spec:
        return _infer(cls.type, x, offset, mask, w, attrs)

    @classmethod
    def forward(cls, x: Array, offset: Array, mask: Array, w: Array, *, attrs: DeformableAttrs) -> Array:
        return _convolve(cls.type, x, offset, mask, w, attrs)

    @classmethod
    def backward(
        cls, x: Array, offset: Array, mask: Array, w: Array, d_out: Array, *, attrs: DeformableAttrs
    ) -> tuple[Array, Array, Array | None, Array]:
        return _differentiate(cls.type, (x, offset, mask, w), d_out, attrs)


def _infer(op: str, x: Spec, offset: Spec, mask: Spec | None, w: Spec, attrs: DeformableAttrs) -> Spec:
    if len(x.shape) != 4 or len(w.shape) != 4:
        raise ShapeError(f"{op}: Input has shape {x.shape} and Filter {w.shape}; both need 4 dims")
    channels, groups, deformable = x.shape[1], attrs.groups, attrs.deformable_groups
    fits = can_be_equal(channels, w.shape[1] * groups) and w.shape[0] % groups == 0
    if not fits or channels % deformable:
        raise ShapeError(
            f"{op}: Input has {channels} channels; Filter of shape {w.shape} in {groups} groups takes "
            f"{w.shape[1] * groups}, and deformable_groups is {deformable}",
            hint="groups and deformable_groups must divide the channels",
        )
    counts = attrs.windows(op, x.shape[2:], w.shape[2:]).counts(x.shape[2:])
    if any(n == 0 or n < -1 for n in counts):
        raise ShapeError(f"{op}: Input of shape {x.shape} is smaller than one window of Filter {w.shape}")
    elements = deformable * math.prod(w.shape[2:])
    for name, one, wanted in (("Offset", offset, 2 * elements), ("Mask", mask, elements)):
        if one is None:
            continue
        if len(one.shape) != 4 or not all(map(can_be_equal, one.shape[1:], (wanted, *counts))):
            raise ShapeError(
                f"{op}: {name} has shape {one.shape}; it needs (N, {wanted}, {counts[0]}, {counts[1]})",
                hint="the layer that computes it needs the stride, padding and dilation of this one",
            )
    return Spec((x.shape[0], w.shape[0], *counts), x.dtype)


class _Image(NamedTuple):
    """One image of the batch: its pixels as rows for each deformable group, and the points where it is
    read.
    """

    rows: list[Array]  # (H * W, C / deformable_groups) each
    points: list[Points]  # kh * kw * H' * W' of them
    values: list[Array]  # (P, C / deformable_groups), without the mask
    masks: list[Array] | None  # (P, 1)

    def unfold(self) -> Array:
        """Return the windows: (C, kh * kw * H' * W')."""
        values = self.values
        if self.masks is not None:
            values = [value * mask for value, mask in zip(values, self.masks, strict=True)]
        return np.concatenate([value.T for value in values])


def _read_image(x: Array, offset: Array, mask: Array | None, windows: Windows, deformable: int) -> _Image:
    height, width = x.shape[1:]
    counts = windows.counts((height, width))
    at = [
        (np.arange(kernel)[:, None] * dilation + np.arange(count) * stride - pad[0]).astype(x.dtype)
        for kernel, dilation, count, stride, pad in zip(
            windows.kernel, windows.dilations, counts, windows.strides, windows.pads, strict=True
        )
    ]
    moves = offset.reshape(deformable, *windows.kernel, 2, *counts)
    ys = (at[0][:, None, :, None] + moves[:, :, :, 0]).reshape(deformable, -1)
    xs = (at[1][None, :, None, :] + moves[:, :, :, 1]).reshape(deformable, -1)
    inside = (ys > -1) & (xs > -1) & (ys < height) & (xs < width)
    rows = [to_rows(part) for part in np.split(x, deformable)]
    points = [surround(y, x_, height, width, near) for y, x_, near in zip(ys, xs, inside, strict=True)]
    values = [each.read(row) for each, row in zip(points, rows, strict=True)]
    masks = None if mask is None else list(mask.reshape(deformable, -1, 1))
    return _Image(rows, points, values, masks)


def _convolve(
    op: str, x: Array, offset: Array, mask: Array | None, w: Array, attrs: DeformableAttrs
) -> Array:
    windows = attrs.windows(op, x.shape[2:], w.shape[2:])
    counts = windows.counts(x.shape[2:])
    filters = w.reshape(attrs.groups, len(w) // attrs.groups, math.prod(w.shape[1:]))
    out = np.empty((len(x), attrs.groups, filters.shape[1], math.prod(counts)), x.dtype)
    for n in range(len(x)):
        image = _read_image(
            x[n], offset[n], None if mask is None else mask[n], windows, attrs.deformable_groups
        )
        np.matmul(filters, image.unfold().reshape(attrs.groups, filters.shape[2], -1), out=out[n])
    return _exchange(out.reshape(len(x), len(w), *counts), attrs.mixed_images(len(x)), len(w))


def _exchange(x: Array, first: int, second: int) -> Array:
    """Return planes ordered ``first`` by ``second`` in the order ``second`` by ``first``."""
    if first == 1 or second == 1:
        return x
    return x.reshape(-1, first, second, math.prod(x.shape[2:])).swapaxes(1, 2).reshape(x.shape)


def _differentiate(
    op: str, given: tuple[Array, Array, Array | None, Array], d_out: Array, attrs: DeformableAttrs
) -> tuple[Array, Array, Array | None, Array]:
    """Return the gradients of Input, Offset, Mask and Filter."""
    x, offset, mask, w = given
    windows = attrs.windows(op, x.shape[2:], w.shape[2:])
    d_out = _exchange(d_out, len(w), attrs.mixed_images(len(x)))
    filters = w.reshape(attrs.groups, len(w) // attrs.groups, math.prod(w.shape[1:]))
    dx, d_offset, dw = np.empty_like(x), np.empty_like(offset), np.zeros_like(filters)
    d_mask = None if mask is None else np.empty_like(mask)
    for n in range(len(x)):
        image = _read_image(
            x[n], offset[n], None if mask is None else mask[n], windows, attrs.deformable_groups
        )
        above = d_out[n].reshape(attrs.groups, filters.shape[1], math.prod(d_out.shape[2:]))
        dw += above @ image.unfold().reshape(attrs.groups, filters.shape[2], -1).swapaxes(1, 2)
        d_windows = filters.swapaxes(1, 2) @ above
        parts = d_windows.reshape(attrs.deformable_groups, len(x[n]) // attrs.deformable_groups, -1)
        dx[n], d_offset[n], found = _spread(image, parts, x[n].shape, offset[n].shape, windows)
        if d_mask is not None:
            d_mask[n] = found.reshape(d_mask[n].shape)
    return dx, d_offset, d_mask, dw.reshape(w.shape)


def _spread(
    image: _Image, d_values: Array, shape: tuple[int, ...], offsets: tuple[int, ...], windows: Windows
) -> tuple[Array, Array, Array]:
    """Return the gradients of one image, its offsets and its mask, from (groups, C / groups, P)."""
    dx, d_moves, d_mask = [], [], []
    for g, (rows, points, values) in enumerate(zip(image.rows, image.points, image.values, strict=True)):
        above = np.ascontiguousarray(d_values[g].T)
        seen = (points.pixel < len(rows)).any(0)  # else 0, also of an infinite gradient
        d_mask.append(np.where(seen, np.einsum("pc,pc->p", above, values), 0))
        if image.masks is not None:
            above *= image.masks[g]
        total = np.zeros_like(rows)
        points.add_to(total, above)
        dx.append(from_rows(total, (rows.shape[1], *shape[1:])))
        down, right = points.read_slopes(rows, above)
        both = np.stack([part.reshape(math.prod(windows.kernel), -1) for part in (down, right)], 1)
        d_moves.append(both)
    return np.concatenate(dx), np.stack(d_moves).reshape(offsets), np.stack(d_mask)
