"""Pools of images and signals."""

from __future__ import annotations

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.interop.onnx.importer.families.nn.image import as_image, as_signal, check_rank, find_pads
from paddlelike.interop.onnx.importer.node import Node
from paddlelike.interop.onnx.importer.readers import reads


@reads("GlobalAveragePool", "GlobalMaxPool")
def _read_global_pool(node: Node) -> None:
    kind = "reduce_mean" if node.type == "GlobalAveragePool" else "reduce_max"
    axes = list(range(2, check_rank(node)))
    node.give(node.emit(kind, node.input(), dim=axes, keep_dim=True))


@reads("GlobalLpPool")
def _read_global_lp_pool(node: Node) -> None:
    if node.attr("p", 2) != 2:
        node.refuse(f"p is {node.attr('p', 2)}")
    axes = list(range(2, check_rank(node)))
    total = node.emit("reduce_sum", node.emit("square", node.input()), dim=axes, keep_dim=True)
    node.give(node.emit("sqrt", total))


@reads("AveragePool", "MaxPool", "LpPool")
def _read_pool(node: Node) -> None:
    """With ceil_mode a last window may reach over the end."""
    rank = check_rank(node)
    kernel = list(node.attr("kernel_shape"))
    strides = list(node.attr("strides", [1] * len(kernel)))
    dilations = list(node.attr("dilations", [1] * len(kernel)))
    if set(dilations) != {1} or node.wants(1):
        node.refuse("its windows have holes, or the places of the largest are an output")
    pads = find_pads(node, kernel, strides, dilations)
    average, x = node.type != "MaxPool", node.input()
    if node.type == "LpPool":
        if node.attr("p", 2) != 2 or any(pads):
            node.refuse(f"p is {node.attr('p', 2)}, or it pads")
        x = node.emit("square", x)
    ceil = bool(node.attr("ceil_mode", 0))
    if ceil and -1 not in node.dims()[2:] and not (average and node.attr("count_include_pad", 0)):
        ceil = False
        for place, (n, k, stride) in enumerate(zip(node.dims()[2:], kernel, strides, strict=True)):
            pads[2 * place + 1] += _reach_over(n, k, stride, pads[2 * place : 2 * place + 2])
    if rank == 3:
        kernel, strides, pads = [1, *kernel], [1, *strides], [0, 0, *pads]
    whole = node.dtype().kind != "f"
    x = node.cast(x, VarType.FP32) if whole else x
    options = {
        "pooling_type": "avg" if average else "max",
        "ksize": kernel,
        "strides": strides,
        "paddings": pads,
        "ceil_mode": ceil,
        "exclusive": not node.attr("count_include_pad", 0),
    }
    out = node.emit("pool3d" if rank == 5 else "pool2d", as_image(node, x, rank), **options)
    if node.type == "LpPool":
        out = node.emit("sqrt", node.scale(out, float(np.prod(kernel))))
    node.give(as_signal(node, out, rank))


def _reach_over(n: int, kernel: int, stride: int, pads: list[int]) -> int:
    """Return by how much the last window reaches over the padded end; none begins in the pads there."""
    count = -(-(n + sum(pads) - kernel) // stride) + 1
    if (count - 1) * stride >= n + pads[0]:
        count -= 1
    return max((count - 1) * stride + kernel - n - sum(pads), 0)
