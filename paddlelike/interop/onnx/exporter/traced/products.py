"""Primitives that multiply and add: products of matrices, convolutions, windows."""

from __future__ import annotations

import string
from typing import Any, Final

import numpy as np

from paddlelike.interop.onnx.exporter.graph import Value
from paddlelike.interop.onnx.exporter.traced.shapes import cut, spread
from paddlelike.interop.onnx.exporter.traced.translation import Equation, translates

_WINDOWS: Final = {"reduce_window_max": "MaxPool", "reduce_window_sum": "AveragePool"}


@translates("dot_general")
def _translate_product(e: Equation) -> Value:
    (left, right), (left_batch, right_batch) = e.params["dimension_numbers"]
    letters = iter(string.ascii_letters)
    x, y = ([next(letters) for _ in shape] for shape in e.shapes)
    for mine, other in zip((*left, *left_batch), (*right, *right_batch), strict=True):
        y[other] = x[mine]
    batch = [x[axis] for axis in left_batch]
    free = [letter for axis, letter in enumerate(x) if axis not in (*left, *left_batch)]
    free += [letter for axis, letter in enumerate(y) if axis not in (*right, *right_batch)]
    text = f"{''.join(x)},{''.join(y)}->{''.join(batch + free)}"
    if text == "ab,bd->ad":
        return e.add("MatMul", *e.inputs)
    operands = [
        one if dtype == e.dtype else e.cast(one, e.dtype)
        for one, dtype in zip(e.inputs, e.dtypes, strict=True)
    ]
    return e.add("Einsum", *operands, equation=text)


@translates("conv_general_dilated")
def _translate_convolution(e: Equation) -> Value:
    numbers, params = e.params["dimension_numbers"], e.params
    if params["batch_group_count"] != 1:
        e.step.refuse("its convolution has groups of the batch")
    x = e.x.transpose(numbers.lhs_spec)
    shape: list[Any] = [e.shapes[0][axis] for axis in numbers.lhs_spec]
    for axis, dilation in enumerate(params["lhs_dilation"], 2):
        if dilation > 1:
            x = spread(e, x, shape, axis, dilation - 1, e.like(0))
            shape[axis] = shape[axis] + (shape[axis] - 1) * (dilation - 1)
    pads = params["padding"]
    if any(n < 0 for pair in pads for n in pair):
        axes = range(2, len(shape))
        ends = [dim - max(-high, 0) for dim, (_, high) in zip(shape[2:], pads, strict=True)]
        x = cut(e, x, [max(-low, 0) for low, _ in pads], ends, axes, [1] * len(pads))
    filters = e.inputs[1].transpose(numbers.rhs_spec)
    out = e.add(
        "Conv", x, filters,
        strides=list(params["window_strides"]), dilations=list(params["rhs_dilation"]),
        pads=[max(low, 0) for low, _ in pads] + [max(high, 0) for _, high in pads],
        group=params["feature_group_count"],
    )  # fmt: skip
    return out.transpose(np.argsort(numbers.out_spec).tolist())


@translates(*_WINDOWS)
def _translate_windows(e: Equation) -> Value:
    params, rank = e.params, len(e.shape)
    sizes, strides = params["window_dimensions"], params["window_strides"]
    dilations, pads = params["window_dilation"], params["padding"]
    moved = [axis for axis in range(rank) if sizes[axis] > 1 or strides[axis] > 1 or pads[axis] != (0, 0)]
    if any(dilation > 1 for dilation in params["base_dilation"]) or not moved or e.dtype.kind != "f":
        e.step.refuse("its windows are over dilated data or integers")
    kept = [axis for axis in range(rank) if axis not in moved]
    order = [*kept, *moved]
    x = e.x.transpose(order)
    inner = [e.shapes[0][axis] for axis in moved]
    x = e.reshape(x, [-1, 1, *inner])
    attrs: dict[str, Any] = {
        "kernel_shape": [sizes[axis] for axis in moved],
        "strides": [strides[axis] for axis in moved],
    }
    attrs["pads"] = [pads[axis][0] for axis in moved] + [pads[axis][1] for axis in moved]
    attrs["dilations"] = [dilations[axis] for axis in moved]
    if e.name == "reduce_window_sum":
        if any(n > 1 for n in attrs.pop("dilations")):
            e.step.refuse("its windows are dilated")
        area = int(np.prod(attrs["kernel_shape"]))
        out = e.add("AveragePool", x, count_include_pad=1, **attrs) * e.like(area)
    else:
        out = e.add("MaxPool", x, **attrs)
    out = e.reshape(out, [e.shape[axis] for axis in order])
    return out.transpose(np.argsort(order).tolist())
