"""Pools of images and signals."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from paddlelike.core import VarType, numpy_dtype
from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.families.elementwise.binary import compare
from paddlelike.interop.onnx.importer.families.nn.image import as_image, as_signal, check_rank, find_pads
from paddlelike.interop.onnx.importer.node import Node, reads


@reads("GlobalAveragePool", "GlobalMaxPool")
def _read_global_pool(node: Node) -> Expression:
    kind = "mean" if node.type == "GlobalAveragePool" else "max"
    return node.input().reduce(kind, *range(2, check_rank(node)))


@reads("GlobalLpPool")
def _read_global_lp_pool(node: Node) -> Expression:
    if node.attr("p", 2) != 2:
        node.refuse(f"p is {node.attr('p', 2)}")
    total = node.emit("square", node.input()).reduce("sum", *range(2, check_rank(node)))
    return node.emit("sqrt", total)


@reads("AveragePool", "MaxPool", "LpPool")
def _read_pool(node: Node) -> None:
    """Read a pool; with ceil_mode the last window may extend beyond the end."""
    rank = check_rank(node)
    kernel = list(node.attr("kernel_shape"))
    strides = list(node.attr("strides", [1] * len(kernel)))
    dilations = list(node.attr("dilations", [1] * len(kernel)))
    pads = find_pads(node, kernel, strides, dilations)
    average, x, ceil = node.type != "MaxPool", node.input(), bool(node.attr("ceil_mode", 0))
    counts_pads = average and bool(node.attr("count_include_pad", 0))
    powers = node.type == "LpPool" and (node.attr("p", 2) != 2 or any(pads) or ceil)
    if set(dilations) != {1} or node.wants(1) or powers or (ceil and counts_pads):
        _read_windows(node, _find_windows(node, kernel, strides, dilations, pads))
        return
    if node.type == "LpPool":
        x = node.emit("square", x)
    if ceil and -1 not in node.dims()[2:]:
        ceil = False
        for place, (n, k, stride) in enumerate(zip(node.dims()[2:], kernel, strides, strict=True)):
            pads[2 * place + 1] += _reach_over(n, k, stride, pads[2 * place : 2 * place + 2])
    if rank == 3:
        kernel, strides, pads = [1, *kernel], [1, *strides], [0, 0, *pads]
    whole = node.dtype().kind != "f"
    x = x.cast(VarType.FP32) if whole else x
    options = {
        "pooling_type": "avg" if average else "max",
        "ksize": kernel,
        "strides": strides,
        "paddings": pads,
        "ceil_mode": ceil,
        "exclusive": not node.attr("count_include_pad", 0),
    }
    out = node.emit("pool3d" if rank == 5 else "pool2d", as_image(x, rank), **options)
    if node.type == "LpPool":
        out = node.emit("sqrt", out.scale(float(np.prod(kernel))))
    node.give(as_signal(out, rank))


@reads("MaxUnpool")
def _read_unpool(node: Node) -> Expression:
    """Scatter each element to its index in the flattened batch, and fill the rest with zeros."""
    check_rank(node)
    kernel = list(node.attr("kernel_shape"))
    pads = find_pads(node, kernel, kernel, [1] * len(kernel))
    strides, dims = node.attr("strides", [1] * len(kernel)), node.dims()
    if min(dims) < 0:
        node.refuse(f"X has dims {dims}")
    sizes = [
        (n - 1) * stride + k - low - high
        for n, stride, k, low, high in zip(dims[2:], strides, kernel, pads[::2], pads[1::2], strict=True)
    ]
    whole = node.constant(np.zeros(math.prod([*dims[:2], *sizes])), node.dtype())
    flat = {"Index": node.input(1).reshape(-1), "Value": node.input().reshape(-1)}
    out = node.emit("put_along_axis", {"Input": whole} | flat, Axis=0, Reduce="assign")
    out = out.reshape(*dims[:2], *sizes)
    if node.has(2):
        wanted = node.numbers(2) or []
        more = [b - a for a, b in zip([*dims[:2], *sizes], wanted, strict=True)]
        out = node.emit("pad", out, paddings=[one for size in more for one in (0, size)], pad_value=0.0)
    return out


class _Side(NamedTuple):
    """The windows along one dim: the element indexes (windows, elements), and the index that stands for
    padding.
    """

    places: np.ndarray[Any, np.dtype[np.int64]]
    counted: np.ndarray[Any, np.dtype[np.bool_]]  # padding may count, elements beyond it do not


def _find_windows(
    node: Node, kernel: list[int], strides: list[int], dilations: list[int], pads: list[int]
) -> list[_Side]:
    sides = []
    for i, n in enumerate(node.dims()[2:]):
        if n < 0:
            node.refuse("its windows are dilated, or reach beyond the end of unknown dims")
        low, high = pads[2 * i : 2 * i + 2]
        spare = n + low + high - (kernel[i] - 1) * dilations[i] - 1
        count = (-(-spare // strides[i]) if node.attr("ceil_mode", 0) else spare // strides[i]) + 1
        count -= (count - 1) * strides[i] >= n + low  # none begins after the data
        places = np.arange(count)[:, None] * strides[i] + np.arange(kernel[i]) * dilations[i] - low
        inside = (places >= 0) & (places < n)
        counted = (places < n + high) if node.attr("count_include_pad", 0) else inside
        sides.append(_Side(np.where(inside, places, n), counted))
    return sides


def _read_windows(node: Node, sides: list[_Side]) -> None:
    """Compute a pool from an array of all windows, which has two dims for each dim of the image."""
    rank, power, average = node.rank(), float(node.attr("p", 2)), node.type != "MaxPool"
    x = node.input().cast(VarType.FP32) if node.dtype().kind != "f" else node.input()
    if node.type == "LpPool":
        x = node.emit("pow", abs(x), factor=power)
    fill = 0.0 if average else float(np.finfo(numpy_dtype(x.variable.dtype)).min)
    x = node.emit("pad", x, paddings=[0] * 4 + [0, 1] * (rank - 2), pad_value=fill)
    for axis, side in enumerate(sides, 2):
        x = node.emit(
            "index_select", {"X": x, "Index": node.constant(side.places.reshape(-1), np.int64)}, dim=axis
        )
    x = x.reshape(0, 0, *(size for side in sides for size in side.places.shape))
    inner = list(range(3, 2 * rank - 2, 2))
    out = x.reduce("sum" if average else "max", *inner, keep=False)
    if node.type == "AveragePool":
        counts = functools.reduce(np.multiply.outer, [side.counted.sum(1) for side in sides])
        out = out * node.constant(1 / counts, numpy_dtype(out.variable.dtype))
    elif node.type == "LpPool":
        out = node.emit("pow", out, factor=1 / power)
    node.give(out.cast(node.dtype()))
    if node.wants(1):
        _give_places(node, x, inner, sides)


def _give_places(node: Node, x: Expression, inner: list[int], sides: list[_Side]) -> None:
    """Set the output to the index of the maximum of each window in the flattened batch."""
    batch, channels, *sizes = node.dims()
    if min(batch, channels) < 0:
        node.refuse("the indices of the maxima are an output, and the batch size is unknown")
    counts, ways = ([side.places.shape[i] for side in sides] for i in (0, 1))
    rows = x.transpose([0, 1, *(axis - 1 for axis in inner), *inner])
    best = node.emit("arg_max", rows.reshape(0, 0, *counts, math.prod(ways)), axis=-1, keepdims=True, dtype=3)
    by_columns = bool(node.attr("storage_order", 0))
    strides = [math.prod(sizes[:i] if by_columns else sizes[i + 1 :]) for i in range(len(sizes))]
    table = functools.reduce(
        np.add.outer, [side.places * stride for side, stride in zip(sides, strides, strict=True)]
    )
    order = [*range(0, 2 * len(sides), 2), *range(1, 2 * len(sides), 2)]
    known = node.constant(table.transpose(order).reshape(*counts, -1), np.int64)
    chosen = compare(node, "equal", best, node.constant(np.arange(math.prod(ways)), np.int64)).cast(
        VarType.INT64
    )
    found = (chosen * known).reduce("sum", len(sides) + 2, keep=False)
    firsts = np.arange(batch * channels).reshape(batch, channels, *[1] * len(sizes)) * math.prod(sizes)
    node.give(found + node.constant(firsts, np.int64), 1)


def _reach_over(n: int, kernel: int, stride: int, pads: list[int]) -> int:
    """Return how far the last window extends beyond the padded end. No window begins in the padding there."""
    count = -(-(n + sum(pads) - kernel) // stride) + 1
    if (count - 1) * stride >= n + pads[0]:
        count -= 1
    return max((count - 1) * stride + kernel - n - sum(pads), 0)
