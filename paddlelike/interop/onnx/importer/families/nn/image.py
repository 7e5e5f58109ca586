"""Convolutions, padding and resizing of images; a signal of one dim is an image of height 1."""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.interop.onnx.importer.expressions import (
    MOST,
    Expression,
    count,
    spread,
)
from paddlelike.interop.onnx.importer.node import Node, reads


def find_pads(
    node: Node, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[int]:
    """Return the pads before and after each dim: low, high, low, high ..."""
    count, auto = len(kernel), node.attr("auto_pad", "NOTSET")
    if auto in ("NOTSET", ""):
        pads = list(node.attr("pads", [0] * 2 * count))
        return [pad for pair in zip(pads[:count], pads[count:], strict=True) for pad in pair]
    if auto == "VALID":
        return [0] * 2 * count
    found = []
    for n, k, stride, dilation in zip(node.dims()[2:], kernel, strides, dilations, strict=True):
        if n < 0 and stride != 1:
            node.refuse(f"auto_pad is {auto}, and the size of the image is not known")
        extent = dilation * (k - 1) + 1
        missing = extent - 1 if stride == 1 else max((-(-n // stride) - 1) * stride + extent - n, 0)
        less = missing // 2
        found += [less, missing - less] if auto == "SAME_UPPER" else [missing - less, less]
    return found


def as_image(x: Expression, rank: int) -> Expression:
    """Return a signal ``(N, C, L)`` as an image of height 1."""
    return x.unsqueeze(2) if rank == 3 else x


def as_signal(x: Expression, rank: int) -> Expression:
    """Return an image of height 1 as the original signal."""
    return x.squeeze(2) if rank == 3 else x


def check_rank(node: Node) -> int:
    """Return the number of dims. Raises InexpressibleError unless 1, 2 or 3 of them are spatial."""
    rank = node.rank()
    if rank not in (3, 4, 5):
        node.refuse(f"X has {rank} dims")
    return rank


def _find_windows(node: Node, kernel: Sequence[int]) -> dict[str, list[int]]:
    count = len(kernel)
    strides = list(node.attr("strides", [1] * count))
    dilations = list(node.attr("dilations", [1] * count))
    return {
        "strides": strides,
        "dilations": dilations,
        "paddings": find_pads(node, kernel, strides, dilations),
    }


def _add_height(found: dict[str, list[int]], rank: int) -> dict[str, list[int]]:
    """Return the windows of a signal as windows of an image."""
    if rank != 3:
        return found
    return {name: ([0, 0] if name == "paddings" else [1]) + values for name, values in found.items()}


def _add_bias(node: Node, out: Expression, rank: int) -> Expression:
    if not node.has(2):
        return out
    bias = node.input(2).reshape(-1, *(1,) * (rank - 2))
    return out + bias


@reads("Conv")
def _read_conv(node: Node) -> Expression:
    out = convolve(node, node.input(), node.input(1))
    return _add_bias(node, out, node.rank())


def convolve(node: Node, x: Expression, weights: Expression) -> Expression:
    """Return the convolution of images or signals, without a bias."""
    rank, kernel = check_rank(node), weights.shape[2:]
    windows = _add_height(_find_windows(node, kernel), rank)
    given = {"Input": as_image(x, rank), "Filter": as_image(weights, rank)}
    kind = "conv3d" if rank == 5 else "conv2d"
    out = node.emit(kind, given, slot="Output", groups=node.attr("group", 1), **windows)
    return as_signal(out, rank)


@reads("ConvTranspose")
def _read_conv_transpose(node: Node) -> Expression:
    """Read a transposed convolution. ``output_padding`` reduces the padding at the end, or adds zeros
    there.
    """
    rank, kernel = check_rank(node), node.dims(1)[2:]
    windows = _find_windows(node, kernel)
    windows["paddings"], beyond = _find_crops(node, kernel, windows)
    windows = _add_height(windows, rank)
    given = {"Input": as_image(node.input(), rank), "Filter": as_image(node.input(1), rank)}
    kind = "conv3d_transpose" if rank == 5 else "conv2d_transpose"
    out = node.emit(kind, given, slot="Output", groups=node.attr("group", 1), output_size=[], **windows)
    if any(beyond):
        sizes = [0] * (max(rank, 4) - len(beyond)) + beyond
        out = node.emit("pad", out, paddings=[size for extra in sizes for size in (0, extra)], pad_value=0.0)
    return _add_bias(node, as_signal(out, rank), rank)


def _find_crops(
    node: Node, kernel: Sequence[int], windows: dict[str, list[int]]
) -> tuple[list[int], list[int]]:
    """Return the crops of a transposed convolution at both ends of each dim, and the zeros added after it."""
    crops, beyond = list(windows["paddings"]), []
    more = list(node.attr("output_padding", [0] * len(kernel)))
    sizes, auto = node.attr("output_shape"), node.attr("auto_pad", "NOTSET")
    for axis, extra in enumerate(more):
        n, stride = node.dims()[2 + axis], windows["strides"][axis]
        if auto.startswith("SAME") or sizes is not None:
            if n < 0:
                node.refuse("its output_shape or auto_pad is given, and the size of the image is not known")
            size = n * stride if sizes is None else sizes[-len(kernel) :][axis]
            whole = (n - 1) * stride + (kernel[axis] - 1) * windows["dilations"][axis] + 1
            total = max(whole + extra - size, 0)
            low = total // 2 if auto == "SAME_UPPER" else total - total // 2
            crops[2 * axis : 2 * axis + 2] = low, total - low
            if sizes is not None:
                extra = max(extra, size - whole)
        high = crops[2 * axis + 1]
        crops[2 * axis + 1] = max(high - extra, 0)
        beyond.append(max(extra - high, 0))
    return crops, beyond


@reads("Pad")
def _read_pad(node: Node) -> Expression:
    """Pad a value, or crop it by negative pads; pads are an input since version 11."""
    if node.opset >= 11 and any(node.has(index) and node.find_known(index) is None for index in (1, 2, 3)):
        return _pad_by_places(node)
    given, rank, mode = node.numbers(1, "pads"), node.rank(), node.attr("mode", "constant")
    axes = node.numbers(3) if node.has(3) else None
    assert given is not None
    pairs = [(0, 0)] * rank
    chosen = list(range(rank)) if axes is None else [node.normalize(axis, rank) for axis in axes]
    for place, axis in enumerate(chosen):
        pairs[axis] = (given[place], given[place + len(chosen)])
    x = node.input()
    for axis, (low, high) in enumerate(pairs):
        if min(low, high) < 0:
            x = x.slice(axis, max(-low, 0), high if high < 0 else MOST)
    pairs = [(max(low, 0), max(high, 0)) for low, high in pairs]
    if mode == "constant":
        value = node.known(2).reshape(-1)[0].item() if node.has(2) else node.attr("value", 0.0)
        flat = [size for pair in pairs for size in pair]
        return node.emit("pad", x, paddings=flat, pad_value=float(value))
    plane = rank in (3, 4) and pairs[:2] == [(0, 0)] * 2
    if mode in ("reflect", "edge") and plane:
        sizes = [size for pair in ([(0, 0)] * (4 - rank) + pairs[2:]) for size in pair]
        out = node.emit("pad2d", as_image(x, rank), paddings=sizes, mode=mode)
        return as_signal(out, rank)
    for axis, (low, high) in enumerate(pairs):
        x = _surround(node, x, axis, low, high, mode)
    return x


def _pad_by_places(node: Node) -> Expression:
    """Return a value with computed pads: each dim is indexed, and the last index is the fill value."""
    x, rank, mode = node.input(), node.rank(), node.attr("mode", "constant")
    pads = node.row(1)
    half = len(pads) // 2 if len(pads) > 0 else rank
    axes = node.find_axes(3, half)
    lows, highs = (spread(each, axes, rank, 0) for each in (pads[:half], pads[half:]))
    for axis, (low, high) in enumerate(zip(lows, highs, strict=True)):
        size = node.size(axis)
        at = count(-low, size + high)
        if mode == "constant":
            filling = x.slice(axis, 0, 1).zeros()
            if node.has(2):
                filling = filling + node.input(2).cast(x.dtype)
            x = node.emit("concat", [x, filling], axis=axis)
            inside = (at >= 0) * (at < size)
            at = at * inside + size * (1 - inside)
        elif mode == "edge":
            at = at.clip(0, size - 1)
        elif mode == "wrap":
            at = at % size
        elif mode == "reflect":
            last = size - 1
            at = last - abs(at % (last * 2).clip(1, MOST) - last)
        else:
            node.refuse(f"mode is {mode!r}")
        x = x.take(at, axis)
    return x


def _surround(node: Node, x: Expression, axis: int, low: int, high: int, mode: str) -> Expression:
    """Return a value with parts of itself before and after it, along one dim."""
    if 0 <= x.shape[axis] - (mode == "reflect") < max(low, high) and mode != "edge":
        node.refuse("it wraps around a dim more than once")
    if mode == "wrap":
        before = [x.slice(axis, -low, MOST)] if low else []
        after = [x.slice(axis, 0, high)] if high else []
    elif mode == "edge":
        before, after = [x.slice(axis, 0, 1)] * low, [x.slice(axis, -1, MOST)] * high
    elif mode == "reflect":
        before = [node.emit("flip", x.slice(axis, 1, low + 1), dims=[axis])] if low else []
        after = [node.emit("flip", x.slice(axis, -high - 1, -1), dims=[axis])] if high else []
    else:
        node.refuse(f"mode is {mode!r}")
    return node.emit("concat", [*before, x, *after], axis=axis) if before or after else x


@reads("Col2Im")
def _read_col2im(node: Node) -> Expression:
    image, block = node.numbers(1), node.numbers(2)
    if image is None or block is None or len(image) != 2:
        node.refuse("it is not an image of two dims")
    pads = list(node.attr("pads", [0] * 4))
    options = {"strides": node.attr("strides", [1, 1]), "dilations": node.attr("dilations", [1, 1])}
    channels = node.dims()[1] // (block[0] * block[1])
    sizes = {"output_sizes": image, "kernel_sizes": block, "paddings": pads}
    return node.emit("fold", node.input(), shaped=(node.dims()[0], channels, *image), **sizes, **options)


@reads("DeformConv")
def _read_deformable(node: Node) -> Expression:
    pads = list(node.attr("pads", [0] * 4))
    if node.rank() != 4 or pads[:2] != pads[2:] or -1 in node.dims(2)[1:]:
        node.refuse("it is not an image of two dims, or pads its ends unevenly")
    offset = node.input(2)
    if node.has(4):
        mask = node.input(4)
    else:
        half = node.dims(2)[1] // 2
        mask = offset.slice(1, 0, half).zeros().scale(1.0, 1.0)
    options = {"strides": node.attr("strides", [1, 1]), "dilations": node.attr("dilations", [1, 1])}
    options |= {"paddings": pads[:2], "groups": node.attr("group", 1), "im2col_step": 1}
    options["deformable_groups"] = node.attr("offset_group", 1)
    given = {"Input": node.input(), "Offset": offset, "Mask": mask, "Filter": node.input(1)}
    out = node.emit("deformable_conv", given, slot="Output", **options)
    if node.has(3):
        out = out + node.input(3).reshape(1, -1, 1, 1)
    return out
