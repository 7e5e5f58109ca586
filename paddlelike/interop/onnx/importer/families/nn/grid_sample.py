"""GridSample: interpolate an image at given points.

Source: ``at::grid_sampler`` of PyTorch, whose rules ONNX has taken over.
"""

from __future__ import annotations

from itertools import product

from paddlelike.core import VarType
from paddlelike.interop.onnx.importer.families.elementwise.binary import compare
from paddlelike.interop.onnx.importer.families.nn.quantization import round_even
from paddlelike.interop.onnx.importer.node import Node, reads

_A = -0.75  # of the cubic taps, as PyTorch's

Tap = tuple[str, str | None]  # places along a dim as real numbers, and their weights


@reads("GridSample")
def _read_grid_sample(node: Node) -> str:
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(kind := node.attr("mode", "bilinear"), kind)
    padding, sizes = node.attr("padding_mode", "zeros"), node.dims()[2:]
    same = len(sizes) == 2 and node.dims(1)[1:3] == sizes  # the order of Fluid's operator
    if mode == "linear" and padding == "zeros" and node.attr("align_corners", 0) and same:
        given = {"X": node.input(), "Grid": node.cast(node.input(1), VarType.FP32)}
        return node.emit("grid_sampler", given, slot="Output")
    if -1 in sizes or mode not in ("nearest", "linear", "cubic") or padding not in _PADDINGS:
        node.refuse(f"X has dims {node.dims()}, or mode is {mode!r}, padding_mode {padding!r}")
    grid, rank = node.cast(node.input(1), VarType.FP32), node.rank()
    taps = []
    for dim, size in enumerate(sizes):
        place = node.slice(grid, rank - 1, len(sizes) - 1 - dim, len(sizes) - dim)  # the last dim comes first
        taps.append(_find_taps(node, place, size, mode, padding))
    return _sum_taps(node, taps, sizes, padding)


def _sum_taps(node: Node, taps: list[list[Tap]], sizes: tuple[int, ...], padding: str) -> str:
    rank = node.rank()
    x = node.transpose(node.input(), [0, *range(2, rank), 1])
    image = node.cast(node.emit("fill_zeros_like", taps[0][0][0]), VarType.INT64)
    ones = node.scale(node.slice(node.reshape(image, 0, -1), 1, 0, 1), 1.0, 1.0)
    first = node.reshape(node.scale(node.emit("cumsum", ones, axis=0), 1.0, -1.0), -1, *[1] * (rank - 1))
    image = node.emit("elementwise_add", image, first)
    total = None
    for choice in product(*taps):
        places, weight = [image], None
        for (place, share), size in zip(choice, sizes, strict=True):
            kept = node.emit("clip", place, min=0.0, max=float(size - 1))
            places.append(node.cast(kept, VarType.INT64))
            shares = [] if share is None else [share]
            if padding == "zeros":
                shares.append(node.cast(compare(node, "equal", place, kept), VarType.FP32))
            for one in shares:
                weight = one if weight is None else node.emit("elementwise_mul", weight, one)
        found = node.emit("gather_nd", {"X": x, "Index": node.emit("concat", places, axis=rank - 1)})
        if weight is not None:
            found = node.emit("elementwise_mul", found, node.cast(weight, node.dtype()))
        total = found if total is None else node.emit("elementwise_add", total, found)
    assert total is not None
    return node.transpose(total, [0, rank - 1, *range(1, rank - 1)])


def _find_taps(node: Node, place: str, size: int, mode: str, padding: str) -> list[Tap]:
    """Return the elements along a dim that interpolate a position from -1 to 1."""
    corners = bool(node.attr("align_corners", 0))
    x = node.scale(place, (size - 1) / 2 if corners else size / 2, (size - 1) / 2)
    keep = _PADDINGS[padding]
    if mode == "nearest":
        return [(round_even(node, keep(node, x, size, corners)), None)]
    if mode == "linear":
        x = keep(node, x, size, corners)
        low = node.emit("floor", x)
        far = node.emit("elementwise_sub", x, low)
        return [(low, node.scale(far, -1.0, 1.0)), (node.scale(low, 1.0, 1.0), far)]
    low = node.emit("floor", x)
    far = node.emit("elementwise_sub", x, low)
    taps: list[Tap] = []
    for offset in (-1, 0, 1, 2):
        distance = node.emit("abs", node.scale(far, 1.0, -float(offset)))
        moved = keep(node, node.scale(low, 1.0, float(offset)), size, corners)
        near = (_A + 2, -_A - 3, 0.0, 1.0) if offset in (0, 1) else (_A, -5 * _A, 8 * _A, -4 * _A)
        weight = node.scale(distance, near[0], near[1])
        for term in near[2:]:
            weight = node.scale(node.emit("elementwise_mul", weight, distance), 1.0, term)
        taps.append((moved, weight))
    return taps


def _keep(node: Node, x: str, size: int, corners: bool) -> str:
    return x


def _clip(node: Node, x: str, size: int, corners: bool) -> str:
    return node.emit("clip", x, min=0.0, max=float(size - 1))


def _reflect(node: Node, x: str, size: int, corners: bool) -> str:
    """Reflect positions beyond the ends, at the outermost elements or at their outer edges."""
    low, span = (0.0, size - 1.0) if corners else (-0.5, float(size))
    if span <= 0:
        return node.emit("fill_zeros_like", x)
    distance = node.emit("abs", node.scale(x, 1.0, -low))
    turns = node.emit("floor", node.scale(distance, 1 / (2 * span)))
    within = node.emit("elementwise_sub", distance, node.scale(turns, 2 * span))  # in 0 to 2 span
    back = node.scale(node.emit("abs", node.scale(within, 1.0, -span)), -1.0, span)
    return _clip(node, node.scale(back, 1.0, low), size, corners)


_PADDINGS = {"zeros": _keep, "border": _clip, "reflection": _reflect}
