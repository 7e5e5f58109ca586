"""Convolutions, pools and interpolation of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from paddlelike.framework import follows_fluid
from paddlelike.framework.environment import PADDLE2_VERSION
from paddlelike.interop.onnx.exporter.graph import Step, Value, converts
from paddlelike.ops.kernels.nn.image.windows import Windows, is_channels_last, make_windows
from paddlelike.ops.nn.image.interpolate import TAPS, scale_sizes
from paddlelike.ops.nn.image.pool import PoolAttrs, find_factor

_FUSED: Final = ("fuse_relu", "fuse_activation", "fuse_brelu", "fuse_relu_before_depthwise_conv")


def to_channels_first(value: Value, data_format: str, rank: int) -> Value:
    """Return an image with its channels as dim 1."""
    last = is_channels_last(data_format)
    return value.transpose([0, rank - 1, *range(1, rank - 1)]) if last else value


def to_format(value: Value, data_format: str, rank: int) -> Value:
    """Return an image ``(N, C, ...)`` in its data format."""
    return value.transpose([0, *range(2, rank), 1]) if is_channels_last(data_format) else value


def _find_spatial(step: Step, slot: str) -> tuple[int, ...]:
    shape = step.shape(slot)
    return shape[1:-1] if is_channels_last(step.attr("data_format")) else shape[2:]


def _describe_windows(windows: Windows, spatial: Sequence[int], counts: Sequence[int]) -> list[int]:
    """Return the ``pads`` with which ONNX has Paddle's windows; some extend beyond the padded end."""
    lows, highs = [], []
    for n, count, extent, stride, (low, high) in zip(
        spatial, counts, windows.extent, windows.strides, windows.pads, strict=True
    ):
        missing = 0 if n < 0 else (count - 1) * stride + extent - (n + low + high)
        lows.append(low)
        highs.append(high + max(missing, 0))
    return [*lows, *highs]


def _make_windows(step: Step, spatial: Sequence[int], kernel: Sequence[int]) -> Windows:
    windows = make_windows(
        step.op.type,
        spatial,
        kernel,
        step.attr("strides"),
        step.attr("paddings"),
        step.attr("dilations"),
        step.attr("padding_algorithm", "EXPLICIT"),
    )
    if windows.without_cuts():
        step.refuse(f"paddings are {windows.pads}")
    return windows


@converts("conv2d", "conv3d", "depthwise_conv2d")
def _convert_conv(step: Step) -> Value:
    if any(step.attr(name) for name in _FUSED):
        step.refuse("an activation is fused into it")
    rank, layout, kernel = step.rank("Input"), step.attr("data_format"), step.shape("Filter")[2:]
    spatial = _find_spatial(step, "Input")
    options: dict[str, Any] = {"group": step.attr("groups"), "kernel_shape": kernel}
    windows = _make_windows(step, spatial, kernel)
    if step.attr("padding_algorithm") == "SAME" and -1 in spatial:
        options["auto_pad"] = "SAME_UPPER"
    else:
        options["pads"] = _describe_windows(windows, spatial, windows.counts(spatial))
    options |= {"strides": windows.strides, "dilations": windows.dilations}
    x = to_channels_first(step.input("Input"), layout, rank)
    bias = [step.input("Bias").reshape(-1)] if step.has("Bias") else []
    out = to_format(step.add("Conv", x, step.input("Filter"), *bias, **options), layout, rank)
    if step.attr("fuse_residual_connection") and step.has("ResidualData"):
        out = out + step.input("ResidualData")
    return out


@converts("conv2d_transpose", "conv3d_transpose", "depthwise_conv2d_transpose")
def _convert_conv_transpose(step: Step) -> Value:
    if any(step.attr(name) for name in _FUSED):
        step.refuse("an activation is fused into it")
    rank, layout, spatial = step.rank("Input"), step.attr("data_format"), _find_spatial(step, "Input")
    kernel, groups, channels = step.shape("Filter")[2:], step.attr("groups"), step.shape("Filter")[0]
    size = step.attr("output_size") or []
    if channels % groups or (-1 in spatial and (size or step.attr("padding_algorithm") == "SAME")):
        step.refuse(f"groups are {groups} of {channels} channels, or the output's size is not known")
    windows = _make_windows(step, spatial, kernel)
    lows, highs = zip(*windows.pads, strict=True)
    more = list(step.attr("output_padding") or []) or [0] * len(kernel)
    if size:
        steps = zip(spatial, windows.strides, windows.extent, windows.pads, size, strict=True)
        more = [wanted - ((n - 1) * stride + extent - sum(pad)) for n, stride, extent, pad, wanted in steps]
    options = {
        "group": groups,
        "kernel_shape": kernel,
        "strides": windows.strides,
        "dilations": windows.dilations,
        "pads": [*lows, *highs],
        "output_padding": more,
    }
    x = to_channels_first(step.input("Input"), layout, rank)
    bias = [step.input("Bias").reshape(-1)] if step.has("Bias") else []
    out = step.add("ConvTranspose", x, step.input("Filter"), *bias, **options)
    return to_format(out, layout, rank)


@converts("pool2d", "pool3d")
def _convert_pool(step: Step) -> Value:
    rank, layout, kernel = step.rank(), step.attr("data_format"), step.attr("ksize")
    average = step.attr("pooling_type") == "avg"
    of_fluid = not average and not step.attr("global_pooling") and follows_fluid("adaptive_maxima")
    if step.attr("adaptive") and of_fluid:
        step.refuse("it is an adaptive max pool with the windows of Fluid, which may end beyond X")
    x = to_channels_first(step.input(), layout, rank)
    if step.attr("global_pooling") or (step.attr("adaptive") and set(kernel) == {1}):
        out = step.add("GlobalAveragePool" if average else "GlobalMaxPool", x)
    elif step.attr("adaptive"):
        out = _pool_uneven(step, x, _find_spatial(step, "X"), kernel, average=average)
    else:
        out = _pool(step, x, _find_spatial(step, "X"), average=average)
    return to_format(out, layout, rank)


def _pool(step: Step, x: Value, spatial: Sequence[int], *, average: bool) -> Value:
    kernel, ceil = step.attr("ksize"), bool(step.attr("ceil_mode"))
    strides, padding = step.attr("strides"), step.attr("padding_algorithm")
    windows = make_windows(
        step.op.type, spatial, kernel, strides, step.attr("paddings"), algorithm=padding or "EXPLICIT"
    )
    if min(map(min, windows.pads)) < 0:
        step.refuse(f"paddings are {windows.pads}")
    options: dict[str, Any] = {"kernel_shape": kernel, "strides": strides}
    if -1 in spatial and padding == "SAME":
        options["auto_pad"] = "SAME_UPPER"
    else:
        options["pads"] = _describe_windows(windows, spatial, windows.counts(spatial, ceil=ceil))
    if ceil and -1 in spatial:
        beyond = any(s + high > k for s, k, (_, high) in zip(strides, kernel, windows.pads, strict=True))
        if beyond or (average and not step.attr("exclusive")):
            step.refuse(f"ceil_mode for X of shape {step.shape()}, whose windows are not known")
        options["ceil_mode"] = 1
    if average:
        out = step.add("AveragePool", x, count_include_pad=int(not step.attr("exclusive")), **options)
        return out if (factor := _find_later_factor(step, spatial)) is None else out * factor
    return step.add("MaxPool", x, **options)


def _find_later_factor(step: Step, spatial: Sequence[int]) -> Value | None:
    """Return the factor by which means of Paddle 2 are larger, because its windows end with the padding."""
    if step.op.block.program.paddle_version < PADDLE2_VERSION or -1 in spatial:
        return None
    given = {name: step.attr(name) for name in PoolAttrs.table()}
    sample = np.broadcast_to(np.zeros(1, step.dtype()), (1, 1, *spatial))
    factor = find_factor(step.op.type, sample, PoolAttrs(**given | {"data_format": "NCHW"}))
    return None if factor is None else step.constant(factor, step.dtype())


def _pool_uneven(
    step: Step, x: Value, spatial: Sequence[int], counts: Sequence[int], *, average: bool
) -> Value:
    """Return an adaptive pool, computed dim by dim and window by window."""
    if -1 in spatial:
        step.refuse(f"it is adaptive, for X of shape {step.shape()}")
    for axis, (n, count) in enumerate(zip(spatial, counts, strict=True), 2):
        parts = []
        for i in range(count):
            bounds = (step.ints(i * n // count), step.ints(-(-(i + 1) * n // count)), step.ints(axis))
            part = step.add("Slice", x, *bounds)
            parts.append(part.reduce("ReduceMean" if average else "ReduceMax", axis, keep=True))
        x = step.concat(*parts, axis=axis) if len(parts) > 1 else parts[0]
    return x


@converts("max_pool2d_with_index")
def _convert_pool_with_index(step: Step) -> None:
    """Convert a pool with ``Mask``, the index of each maximum in its flattened image."""
    kernel, spatial = step.attr("ksize"), step.shape()[2:]
    if step.attr("global_pooling"):
        kernel = list(spatial)
    if step.attr("adaptive"):
        if step.is_read("Mask") and set(kernel) != {1}:
            step.refuse("it is adaptive, and Mask is read")
        step.give("Out", _pool_uneven(step, step.input(), spatial, kernel, average=False))
        return
    if -1 in spatial:
        step.refuse(f"X has shape {step.shape()}: its height and width are not known")
    whole = bool(step.attr("global_pooling"))
    pads = [0, 0] if whole else step.attr("paddings")
    options = {
        "kernel_shape": kernel,
        "strides": kernel if whole else step.attr("strides"),
        "pads": [*pads, *pads],
    }
    out, places = step.add_several("MaxPool", step.input(), count=2, **options)
    step.give("Out", out)
    inside = step.add("Mod", places, step.ints(spatial[0] * spatial[1]))
    step.give("Mask", inside.cast("int32"))


@converts("maxout")
def _convert_maxout(step: Step) -> Value:
    groups, axis, shape = step.attr("groups"), step.attr("axis") % step.rank(), step.shape()
    if shape[axis] < 0:
        step.refuse(f"X has shape {shape}")
    if axis == step.rank() - 1:
        parts = step.input().reshape(*(0,) * axis, shape[axis] // groups, groups)
        return parts.reduce("ReduceMax", axis + 1)
    if axis != 1:
        step.refuse(f"axis is {axis}")
    parts = step.input().reshape(0, shape[axis] // groups, groups, -1)
    most = parts.reduce("ReduceMax", 2)
    rest = step.input().dims(2, step.rank())
    dims = step.concat(step.ints(0, shape[axis] // groups), rest)
    return most.reshape(dims)


@converts("shuffle_channel", "channel_shuffle")
def _convert_channel_shuffle(step: Step) -> Value:
    groups = step.attr("groups" if step.op.type == "channel_shuffle" else "group")
    channels = step.shape()[1]
    if is_channels_last(step.attr("data_format", "NCHW")) or channels < 0:
        step.refuse(f"X has shape {step.shape()}, or its channels are last")
    parts = step.input().reshape(0, groups, channels // groups, -1).transpose([0, 2, 1, 3])
    return parts.reshape(step.input().dims())


@converts("grid_sampler")
def _convert_grid_sampler(step: Step) -> Value:
    mode, corners = step.attr("mode", "bilinear"), bool(step.attr("align_corners", True))
    padding = {"zeros": "zeros", "border": "border", "reflection": "reflection"}[
        step.attr("padding_mode", "zeros")
    ]
    mode = "linear" if mode == "bilinear" and step.graph.opset >= 20 else mode
    options = {"mode": mode, "padding_mode": padding, "align_corners": int(corners)}
    return step.add("GridSample", step.input(), step.input("Grid"), **options)


_INTERPOLATIONS: Final = ("nearest", "bilinear", "trilinear", "bicubic")


@converts(
    *(f"{name}_interp" for name in _INTERPOLATIONS),
    *(f"{name}_interp_v2" for name in (*_INTERPOLATIONS, "linear")),
)
def _convert_interpolation(step: Step) -> Value:
    """Multiply each dim by a matrix of weights, since Resize lacks some of Paddle's rules.

    Where the sizes are not known, Resize is used.
    """
    layout, rank, shape = step.attr("data_layout"), step.rank(), step.shape()
    spatial = shape[1:-1] if is_channels_last(layout) else shape[2:]
    size = [step.attr(name) for name in ("out_d", "out_h", "out_w")][-len(spatial) :]
    given = step.attr("scale", 0.0)
    scales = list(given) if isinstance(given, list | tuple) else [given] * len(spatial)
    if -1 in spatial or any(step.has(slot) for slot in ("OutSize", "SizeTensor", "Scale")):
        return to_format(_resize(step, size, scales), layout, rank)
    if scales and min(scales) > 0:
        size = scale_sizes(spatial, scales)
    later = step.op.type.endswith("_v2") and bool(scales) and min(scales) > 0
    out = to_channels_first(step.input(), layout, rank)
    for axis, (n, count) in enumerate(zip(spatial, size, strict=True), 2):
        by = scales[axis - 2] if later else 0.0
        taps = TAPS[step.attr("interp_method")](
            n, count, step.attr("align_corners"), step.attr("align_mode"), by, step.dtype()
        )
        matrix = np.zeros((n, count), step.dtype())
        for index, weight in taps:
            matrix[index, np.arange(count)] += weight
        out = _multiply_dim(out, rank, axis, step.constant(matrix, step.dtype()))
    return to_format(out, layout, rank)


def _resize(step: Step, size: Sequence[int], scales: Sequence[float]) -> Value:
    """Return X, with channels first, in a computed size or by a computed scale."""
    x = to_channels_first(step.input(), step.attr("data_layout"), step.rank())
    kind, corners = step.attr("interp_method"), step.attr("align_corners")
    options: dict[str, Any] = {"mode": {"nearest": "nearest", "bicubic": "cubic"}.get(kind, "linear")}
    asymmetric = kind == "nearest" or (kind != "bicubic" and step.attr("align_mode") == 1)
    places = "align_corners" if corners else "asymmetric" if asymmetric else "half_pixel"
    options["coordinate_transformation_mode"] = places
    if kind == "nearest":
        options["nearest_mode"] = "round_prefer_ceil" if corners else "floor"
    else:
        options["cubic_coeff_a"] = -0.75
    if step.has("OutSize") or step.has("SizeTensor"):
        asked = step.numbers("", "OutSize", "SizeTensor")
    elif step.has("Scale"):
        first = step.input("Scale").reshape(-1)[:1]
        factors = first.cast("float32")  # like Fluid, read only the first number
        lengths = x.dims(2, step.rank()).cast("float32")
        asked = step.add("Floor", lengths * factors).cast("int64")
    elif scales and min(scales) > 0:
        return step.add("Resize", x, "", step.constant([1, 1, *scales], np.float32), **options)
    else:
        asked = step.ints(*size)
    dims = step.concat(x.dims(0, 2), asked)
    return step.add("Resize", x, "", "", dims, **options)


def _multiply_dim(x: Value, rank: int, axis: int, matrix: Value) -> Value:
    """Return the product of one dim with a matrix."""
    order = [*(i for i in range(rank) if i != axis), axis]
    out = x.transpose(order) @ matrix
    return out.transpose([order.index(i) for i in range(rank)])


@converts("pixel_shuffle")
def _convert_pixel_shuffle(step: Step) -> Value:
    layout, rank = step.attr("data_format"), step.rank()
    x = to_channels_first(step.input(), layout, rank)
    out = step.add("DepthToSpace", x, blocksize=step.attr("upscale_factor"), mode="CRD")
    return to_format(out, layout, rank)


@converts("unpool", "unpool3d")
def _convert_unpool(step: Step) -> Value:
    """Put the elements of X at the indices from which a pool took them, and zeros elsewhere."""
    sizes = step.shape("Out")[2:]
    if min(sizes) < 0:
        step.refuse("the size of the image is not known")
    channels = step.input().dims(0, 2)
    blank = step.concat(channels, step.ints(int(np.prod(sizes))))
    zeros = step.like(0).expand(blank)
    places = step.input("Indices").reshape(0, 0, -1).cast("int64")
    out = step.add("ScatterElements", zeros, places, step.input().reshape(0, 0, -1), axis=2)
    return out.reshape(0, 0, *sizes)


@converts("fold")
def _convert_fold(step: Step) -> Value:
    pads = step.attr("paddings")
    attrs = {"strides": step.attr("strides"), "dilations": step.attr("dilations")}
    attrs["pads"] = pads if len(pads) == 4 else [*pads, *pads]
    sizes = (step.ints(*step.attr(name)) for name in ("output_sizes", "kernel_sizes"))
    return step.add("Col2Im", step.input(), *sizes, **attrs)
