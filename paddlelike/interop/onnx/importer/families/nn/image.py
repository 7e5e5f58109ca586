"""Convolutions, padding and resizing of images; a signal of one dim is an image of height 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.interop.onnx.importer.graph import InexpressibleError
from paddlelike.interop.onnx.importer.node import MOST, Node
from paddlelike.interop.onnx.importer.readers import reads
from paddlelike.ops.nn.image.interpolate import scale_sizes


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


def as_image(node: Node, name: str, rank: int) -> str:
    """Return a signal ``(N, C, L)`` as an image of height 1."""
    return node.unsqueeze(name, 2) if rank == 3 else name


def as_signal(node: Node, name: str, rank: int) -> str:
    """Return an image of height 1 as the signal that it was."""
    return node.squeeze(name, 2) if rank == 3 else name


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
    """Return the windows of a signal as those of an image."""
    if rank != 3:
        return found
    return {name: ([0, 0] if name == "paddings" else [1]) + values for name, values in found.items()}


def _add_bias(node: Node, out: str, rank: int) -> str:
    if not node.has(2):
        return out
    bias = node.reshape(node.input(2), -1, *(1,) * (rank - 2))
    return node.emit("elementwise_add", out, bias)


@reads("Conv")
def _read_conv(node: Node) -> None:
    out = convolve(node, node.input(), node.input(1))
    node.give(_add_bias(node, out, node.rank()))


def convolve(node: Node, x: str, weights: str) -> str:
    """Return the convolution of images or signals, without a bias."""
    rank, kernel = check_rank(node), node.shape(weights)[2:]
    windows = _add_height(_find_windows(node, kernel), rank)
    given = {"Input": as_image(node, x, rank), "Filter": as_image(node, weights, rank)}
    kind = "conv3d" if rank == 5 else "conv2d"
    out = node.emit(kind, given, slot="Output", groups=node.attr("group", 1), **windows)
    return as_signal(node, out, rank)


@reads("ConvTranspose")
def _read_conv_transpose(node: Node) -> None:
    """Read a transposed convolution; ``output_padding`` means less padding at the end, or zeros there."""
    rank, kernel = check_rank(node), node.dims(1)[2:]
    windows = _find_windows(node, kernel)
    windows["paddings"], beyond = _find_crops(node, kernel, windows)
    windows = _add_height(windows, rank)
    given = {"Input": as_image(node, node.input(), rank), "Filter": as_image(node, node.input(1), rank)}
    kind = "conv3d_transpose" if rank == 5 else "conv2d_transpose"
    out = node.emit(kind, given, slot="Output", groups=node.attr("group", 1), output_size=[], **windows)
    if any(beyond):
        sizes = [0] * (max(rank, 4) - len(beyond)) + beyond
        out = node.emit("pad", out, paddings=[size for extra in sizes for size in (0, extra)], pad_value=0.0)
    node.give(_add_bias(node, as_signal(node, out, rank), rank))


def _find_crops(
    node: Node, kernel: Sequence[int], windows: dict[str, list[int]]
) -> tuple[list[int], list[int]]:
    """Return how much a transposed convolution crops at both ends of each dim, and the zeros behind it."""
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
def _read_pad(node: Node) -> None:
    """Pad, or crop by negative pads, which are an input since version 11."""
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
            x = node.slice(x, axis, max(-low, 0), high if high < 0 else MOST)
    pairs = [(max(low, 0), max(high, 0)) for low, high in pairs]
    if mode == "constant":
        value = node.known(2).reshape(-1)[0].item() if node.has(2) else node.attr("value", 0.0)
        flat = [size for pair in pairs for size in pair]
        node.give(node.emit("pad", x, paddings=flat, pad_value=float(value)))
        return
    plane = rank in (3, 4) and pairs[:2] == [(0, 0)] * 2
    if mode in ("reflect", "edge") and plane:
        sizes = [size for pair in ([(0, 0)] * (4 - rank) + pairs[2:]) for size in pair]
        out = node.emit("pad2d", as_image(node, x, rank), paddings=sizes, mode=mode)
        node.give(as_signal(node, out, rank))
        return
    for axis, (low, high) in enumerate(pairs):
        x = _surround(node, x, axis, low, high, mode)
    node.give(x)


def _surround(node: Node, x: str, axis: int, low: int, high: int, mode: str) -> str:
    """Return a value with parts of itself before and after it, along one dim."""
    if 0 <= node.shape(x)[axis] - (mode == "reflect") < max(low, high) and mode != "edge":
        node.refuse("it wraps around a dim more than once")
    if mode == "wrap":
        before = [node.slice(x, axis, -low, MOST)] if low else []
        after = [node.slice(x, axis, 0, high)] if high else []
    elif mode == "edge":
        before, after = [node.slice(x, axis, 0, 1)] * low, [node.slice(x, axis, -1, MOST)] * high
    elif mode == "reflect":
        before = [node.emit("flip", node.slice(x, axis, 1, low + 1), dims=[axis])] if low else []
        after = [node.emit("flip", node.slice(x, axis, -high - 1, -1), dims=[axis])] if high else []
    else:
        node.refuse(f"mode is {mode!r}")
    return node.emit("concat", [*before, x, *after], axis=axis) if before or after else x


# Resizing

_LARGEST: Final = 1 << 25  # elements of the matrix of a dim


@reads("Resize", "Upsample")
def _read_resize(node: Node) -> None:
    """Resize images: with known sizes by matrices of weights, otherwise by Fluid's operators."""
    dims, mode = node.dims(), node.attr("mode", "nearest")
    sides = [_Side(n, n, 1.0) for n in dims] if node.type == "Upsample" else _find_regions(node)
    known = _find_sizes(node, sides)
    touched = [i for i, side in enumerate(sides) if not side.is_whole() and not (side.size < 0 and i < 2)]
    if not all(dims[i] > 0 and sides[i].size > 0 for i in touched):
        factors = [side.factor for side in sides] if known else [0.0] * len(dims)
        node.give(_interpolate(node, mode, factors, touched))
        return
    x, outside = node.input(), np.zeros([1] * len(dims), bool)
    for axis in touched:
        matrix, beyond = make_matrix(node, mode, sides[axis])
        x = _multiply_dim(node, x, len(dims), axis, node.constant(matrix, node.dtype()))
        outside = outside | np.expand_dims(beyond, [i for i in range(len(dims)) if i != axis])
    if outside.any():
        fill = node.attr("extrapolation_value", 0.0)
        x = node.emit("elementwise_mul", x, node.constant(~outside, node.dtype()))
        x = node.emit("elementwise_add", x, node.constant(outside * fill, node.dtype()))
    if x == node.input():
        node.alias(node.value())
    else:
        node.give(x)


class _Side(NamedTuple):
    """One dim of a resized image: its old and new size, -1 if not known, and the region that is read."""

    n: int
    size: int
    factor: float
    start: float = 0.0
    end: float = 1.0

    def is_whole(self) -> bool:
        """Return whether the dim stays as it is."""
        return self.n == self.size and (self.factor, self.start, self.end) == (1, 0, 1)


def _find_regions(node: Node) -> list[_Side]:
    """Return the dims with the part of each that is cut out."""
    rank, sides = node.rank(), [_Side(n, n, 1.0) for n in node.dims()]
    if node.attr("coordinate_transformation_mode") == "tf_crop_and_resize":
        chosen = _find_chosen(node, rank)
        starts, ends = np.split(node.known(1).astype(float), 2)
        for axis, start, end in zip(chosen, starts, ends, strict=True):
            sides[axis] = sides[axis]._replace(start=float(start), end=float(end))
    return sides


def _find_chosen(node: Node, rank: int) -> list[int]:
    axes = node.attr("axes")
    return list(range(rank)) if axes is None else [node.normalize(axis, rank) for axis in axes]


def _find_sizes(node: Node, sides: list[_Side]) -> bool:
    """Put the factors and the new sizes into the dims; return whether factors are given."""
    chosen = _find_chosen(node, len(sides))
    if node.type == "Upsample" and node.opset < 9:
        given = list(node.attr("scales", []))
    else:
        place = 1 if node.type == "Upsample" or node.opset < 11 else 2
        given = node.known(place).reshape(-1).tolist() if node.has(place) else []
    if given:
        for axis, number in zip(chosen, given, strict=True):
            side, factor = sides[axis], float(np.float32(number))
            (size,) = scale_sizes([side.n], [(side.end - side.start) * factor]) if factor != 1 else [side.n]
            sides[axis] = side._replace(size=size if side.n >= 0 else -1, factor=factor)
        return True
    name = node.proto.input[3]
    known, partial = node.find_known(3), node.graph.partial.get(name)
    if known is None and partial is None:
        node.refuse("its sizes are computed at run time")
    values = np.nan_to_num(partial, nan=-1) if known is None and partial is not None else known
    assert values is not None
    sizes = [int(size) for size in values.reshape(-1)]
    policy, one = node.attr("keep_aspect_ratio_policy", "stretch"), None
    if policy != "stretch":
        if min(sides[axis].n for axis in chosen) < 0:
            node.refuse(f"keep_aspect_ratio_policy is {policy}, and the size of the image is not known")
        one = {"not_larger": min, "not_smaller": max}[policy](
            size / sides[axis].n for axis, size in zip(chosen, sizes, strict=True)
        )
        sizes = [int(np.floor(one * sides[axis].n + 0.5)) for axis in chosen]
    for axis, size in zip(chosen, sizes, strict=True):
        side = sides[axis]
        factor = one if one is not None else size / side.n if side.n > 0 and size > 0 else 0.0
        sides[axis] = side._replace(size=size, factor=factor)
    return False


def make_matrix(node: Node, mode: str, side: _Side) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the weights ``(n, count)`` of a dim's elements in each of its new ones; which lie outside."""
    rule = node.attr("coordinate_transformation_mode", "half_pixel" if node.opset >= 11 else "asymmetric")
    if node.type == "Upsample":
        rule = "asymmetric"
    n, count, factor, start, end = side
    if n * count > _LARGEST:
        node.refuse(f"it makes {count} of {n} elements, by a matrix that is too large")
    at, outside = np.arange(count, dtype=np.float64), np.zeros(count, bool)
    if rule == "align_corners":
        x = at * (n - 1) / (count - 1) if count > 1 else at * 0
    elif rule == "tf_crop_and_resize":
        steps = at / (count - 1) if count > 1 else at + 0.5
        x = (start + steps * (end - start)) * (n - 1)
        outside = (x < 0) | (x > n - 1)
    elif rule == "asymmetric":
        x = at / factor
    elif rule == "pytorch_half_pixel" and count == 1:
        x = at * 0
    elif rule in ("half_pixel", "pytorch_half_pixel"):
        x = (at + 0.5) / factor - 0.5
    elif rule == "tf_half_pixel_for_nn":
        x = (at + 0.5) / factor
    elif rule == "half_pixel_symmetric":
        wanted = n * factor
        x = n / 2 * (1 - count / wanted) + (at + 0.5) / factor - 0.5
    else:
        node.refuse(f"coordinate_transformation_mode is {rule!r}")
    matrix: np.ndarray[Any, Any] = np.zeros((n, count))
    shrunk = min(factor, 1.0) if node.attr("antialias", 0) else 1.0
    for places, weights in _find_taps(node, mode, x, shrunk):
        inside = (places >= 0) & (places < n) if node.attr("exclude_outside", 0) else True
        np.add.at(matrix, (np.clip(places, 0, n - 1), np.arange(count)), weights * inside)
    matrix /= matrix.sum(0)
    return matrix, outside


def _find_taps(node: Node, mode: str, x: np.ndarray[Any, Any], shrunk: float) -> list[tuple[Any, Any]]:
    """Return the elements that each place is computed from, with their weights.

    ``shrunk``: the factor by which the places of an antialiased image come closer, at most 1.
    """
    if mode == "nearest":
        rule = node.attr("nearest_mode", "round_prefer_floor" if node.opset >= 11 else "floor")
        rule = "floor" if node.type == "Upsample" else rule
        rounded = {
            "floor": np.floor(x),
            "ceil": np.ceil(x),
            "round_prefer_floor": np.ceil(x - 0.5),
            "round_prefer_ceil": np.floor(x + 0.5),
        }[rule]
        return [(rounded.astype(np.int64), np.ones(len(x)))]
    low = np.floor(x).astype(np.int64)
    if mode not in ("linear", "cubic"):
        node.refuse(f"mode is {mode!r}")
    a, taps = node.attr("cubic_coeff_a", -0.75), []
    reach = int(np.ceil((1 if mode == "linear" else 2) / shrunk))
    for offset in range(1 - reach, reach + 1):
        d = np.abs(x - low - offset) * shrunk
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        cubic = np.where(d <= 1, near, np.where(d < 2, far, 0))
        taps.append((low + offset, np.maximum(1 - d, 0) if mode == "linear" else cubic))
    return taps


def _multiply_dim(node: Node, x: str, rank: int, axis: int, matrix: str) -> str:
    """Return the product of one dim with a matrix."""
    order = [*(i for i in range(rank) if i != axis), axis]
    out = node.emit("mul", node.transpose(x, order), matrix, x_num_col_dims=rank - 1)
    return node.transpose(out, [order.index(i) for i in range(rank)])


def _interpolate(node: Node, mode: str, factors: Sequence[float], touched: Sequence[int]) -> str:
    """Return an image of any size, larger by one factor."""
    rule = node.attr("coordinate_transformation_mode", "half_pixel" if node.opset >= 11 else "asymmetric")
    rule = "asymmetric" if node.type == "Upsample" else rule
    nearest = node.attr("nearest_mode", "round_prefer_floor" if node.opset >= 11 else "floor")
    if (
        node.rank() != 4
        or set(touched) != {2, 3}
        or len({factors[i] for i in touched}) != 1
        or factors[2] <= 0
    ):
        node.refuse(
            f"X has dims {node.dims()}, and its output size is unknown or scaled by different factors"
        )
    factor = factors[2]
    if mode == "nearest" and factor == int(factor):  # then every rule gives each element that many times
        even = rule == "asymmetric" and (nearest == "floor" or node.type == "Upsample" or node.opset < 11)
        if even or rule in ("half_pixel", "pytorch_half_pixel"):
            return node.emit(
                "nearest_interp", node.input(), scale=factor, align_corners=False, interp_method="nearest"
            )
    if mode == "linear" and rule in ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"):
        options = {"align_corners": rule == "align_corners", "align_mode": int(rule == "asymmetric")}
        return node.emit("bilinear_interp", node.input(), scale=factor, interp_method="bilinear", **options)
    raise InexpressibleError(
        f"{mode} by {rule} for X of dims {node.dims()}, whose height and width are not known"
    )


@reads("Col2Im")
def _read_col2im(node: Node) -> None:
    image, block = node.numbers(1), node.numbers(2)
    if image is None or block is None or len(image) != 2:
        node.refuse("it is not an image of two dims")
    pads = list(node.attr("pads", [0] * 4))
    options = {"strides": node.attr("strides", [1, 1]), "dilations": node.attr("dilations", [1, 1])}
    channels = node.dims()[1] // (block[0] * block[1])
    sizes = {"output_sizes": image, "kernel_sizes": block, "paddings": pads}
    node.give(node.emit("fold", node.input(), shaped=(node.dims()[0], channels, *image), **sizes, **options))


@reads("DeformConv")
def _read_deformable(node: Node) -> None:
    pads = list(node.attr("pads", [0] * 4))
    if node.rank() != 4 or pads[:2] != pads[2:] or -1 in node.dims(2)[1:]:
        node.refuse("it is not an image of two dims, or pads its ends unevenly")
    offset = node.input(2)
    if node.has(4):
        mask = node.input(4)
    else:
        half = node.dims(2)[1] // 2
        mask = node.scale(node.emit("fill_zeros_like", node.slice(offset, 1, 0, half)), 1.0, 1.0)
    options = {"strides": node.attr("strides", [1, 1]), "dilations": node.attr("dilations", [1, 1])}
    options |= {"paddings": pads[:2], "groups": node.attr("group", 1), "im2col_step": 1}
    options["deformable_groups"] = node.attr("offset_group", 1)
    given = {"Input": node.input(), "Offset": offset, "Mask": mask, "Filter": node.input(1)}
    out = node.emit("deformable_conv", given, slot="Output", **options)
    if node.has(3):
        out = node.emit("elementwise_add", out, node.reshape(node.input(3), 1, -1, 1, 1))
    node.give(out)
