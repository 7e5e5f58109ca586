"""GridSample: interpolate an image at given points.

Source: ``at::grid_sampler`` of PyTorch, whose rules ONNX follows.
"""

from __future__ import annotations

from itertools import product

from paddlelike.core import VarType
from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.families.elementwise.binary import compare
from paddlelike.interop.onnx.importer.families.nn.quantization import round_even
from paddlelike.interop.onnx.importer.node import Node, reads

_A = -0.75  # of the cubic taps, as PyTorch's

Tap = tuple[Expression, Expression | None]  # places along a dim as real numbers, and their weights


@reads("GridSample")
def _read_grid_sample(node: Node) -> Expression:
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(kind := node.attr("mode", "bilinear"), kind)
    padding, sizes = node.attr("padding_mode", "zeros"), node.dims()[2:]
    same = len(sizes) == 2 and node.dims(1)[1:3] == sizes  # the order of Fluid's operator
    if mode == "linear" and padding == "zeros" and node.attr("align_corners", 0) and same:
        given = {"X": node.input(), "Grid": node.input(1).cast(VarType.FP32)}
        return node.emit("grid_sampler", given, slot="Output")
    if -1 in sizes or mode not in ("nearest", "linear", "cubic") or padding not in _PADDINGS:
        node.refuse(f"X has dims {node.dims()}, or mode is {mode!r}, padding_mode {padding!r}")
    grid, rank = node.input(1).cast(VarType.FP32), node.rank()
    taps = []
    for dim, size in enumerate(sizes):
        place = grid.slice(rank - 1, len(sizes) - 1 - dim, len(sizes) - dim)  # the last dim comes first
        taps.append(_find_taps(node, place, size, mode, padding))
    return _sum_taps(node, taps, sizes, padding)


def _sum_taps(node: Node, taps: list[list[Tap]], sizes: tuple[int, ...], padding: str) -> Expression:
    rank = node.rank()
    x = node.input().transpose([0, *range(2, rank), 1])
    image = taps[0][0][0].zeros().cast(VarType.INT64)
    ones = image.reshape(0, -1).slice(1, 0, 1).scale(1.0, 1.0)
    first = node.emit("cumsum", ones, axis=0).scale(1.0, -1.0).reshape(-1, *[1] * (rank - 1))
    image = image + first
    total = None
    for choice in product(*taps):
        places, weight = [image], None
        for (place, share), size in zip(choice, sizes, strict=True):
            kept = node.emit("clip", place, min=0.0, max=float(size - 1))
            places.append(kept.cast(VarType.INT64))
            shares = [] if share is None else [share]
            if padding == "zeros":
                shares.append(compare(node, "equal", place, kept).cast(VarType.FP32))
            for one in shares:
                weight = one if weight is None else weight * one
        found = node.emit("gather_nd", {"X": x, "Index": node.emit("concat", places, axis=rank - 1)})
        if weight is not None:
            found = found * weight.cast(node.dtype())
        total = found if total is None else total + found
    assert total is not None
    return total.transpose([0, rank - 1, *range(1, rank - 1)])


def _find_taps(node: Node, place: Expression, size: int, mode: str, padding: str) -> list[Tap]:
    """Return the elements along a dim that interpolate a position from -1 to 1."""
    corners = bool(node.attr("align_corners", 0))
    x = place.scale((size - 1) / 2 if corners else size / 2, (size - 1) / 2)
    keep = _PADDINGS[padding]
    if mode == "nearest":
        return [(round_even(node, keep(node, x, size, corners)), None)]
    if mode == "linear":
        x = keep(node, x, size, corners)
        low = node.emit("floor", x)
        far = x - low
        return [(low, far.scale(-1.0, 1.0)), (low.scale(1.0, 1.0), far)]
    low = node.emit("floor", x)
    far = x - low
    taps: list[Tap] = []
    for offset in (-1, 0, 1, 2):
        distance = abs(far.scale(1.0, -float(offset)))
        moved = keep(node, low.scale(1.0, float(offset)), size, corners)
        near = (_A + 2, -_A - 3, 0.0, 1.0) if offset in (0, 1) else (_A, -5 * _A, 8 * _A, -4 * _A)
        weight = distance.scale(near[0], near[1])
        for term in near[2:]:
            weight = (weight * distance).scale(1.0, term)
        taps.append((moved, weight))
    return taps


def _keep(node: Node, x: Expression, size: int, corners: bool) -> Expression:
    return x


def _clip(node: Node, x: Expression, size: int, corners: bool) -> Expression:
    return node.emit("clip", x, min=0.0, max=float(size - 1))


def _reflect(node: Node, x: Expression, size: int, corners: bool) -> Expression:
    """Reflect positions beyond the ends, at the outermost elements or at their outer edges."""
    low, span = (0.0, size - 1.0) if corners else (-0.5, float(size))
    if span <= 0:
        return x.zeros()
    distance = abs(x.scale(1.0, -low))
    turns = node.emit("floor", distance.scale(1 / (2 * span)))
    within = distance - turns.scale(2 * span)  # in 0 to 2 span
    back = abs(within.scale(1.0, -span)).scale(-1.0, span)
    return _clip(node, back.scale(1.0, low), size, corners)


_PADDINGS = {"zeros": _keep, "border": _clip, "reflection": _reflect}
