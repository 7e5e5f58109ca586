"""Quantized operators, computed in floating point with the same results."""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.core import VarType
from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.families.elementwise.binary import compare
from paddlelike.interop.onnx.importer.families.nn.image import convolve
from paddlelike.interop.onnx.importer.node import Node, reads

#: The least and the greatest number of a type.
_LIMITS: Final = {"uint8": (0, 255), "int8": (-128, 127), "int16": (-32768, 32767)}


def round_even(node: Node, x: Expression) -> Expression:
    """Return the nearest integers; halves are rounded to the even one."""
    half = node.emit("floor", x.scale(0.5, 0.25)).scale(2.0)  # of two neighbours the even one
    near = node.emit("floor", x.scale(1.0, 0.5))
    tie = compare(node, "equal", x.scale(1.0, 0.5), near)
    return tie.where(half, near)


def _along(node: Node, index: int, rank: int, axis: int) -> Expression | None:
    """Return a scale or zero point as floats that broadcast along an axis, or None if it is not given."""
    if not node.has(index):
        return None
    if len(node.dims(index)) > 1:
        node.refuse("it has one scale per block")
    x = node.input(index).cast(VarType.FP32)
    return x.reshape(*[-1 if dim == axis else 1 for dim in range(rank or 1)])


def _restore(node: Node, index: int, scale: int, zero: int, axis: int | None = None) -> Expression:
    """Dequantize an input: ``(value - zero) * scale``, or ``value - zero`` without a scale.

    Several scales and zero points belong to the slices along ``axis``, by default the last axis.
    """
    rank = node.rank(index)
    along = rank - 1 if axis is None else axis
    x, shift = node.input(index).cast(VarType.FP32), _along(node, zero, rank, along)
    if shift is not None:
        x = x - shift
    by = _along(node, scale, rank, along) if scale >= 0 else None
    return x if by is None else x * by


def _quantize(node: Node, x: Expression, scale: int, zero: int, axis: int) -> Expression:
    rank = len(x.shape)
    by, shift = _along(node, scale, rank, axis), _along(node, zero, rank, axis)
    assert by is not None
    kind = node.dtype(zero).name if node.has(zero) else "uint8"
    if kind not in _LIMITS:
        node.refuse(f"it makes elements of type {kind}")
    out = round_even(node, x / by)
    if shift is not None:
        out = out + shift
    low, high = _LIMITS[kind]
    return node.emit("clip", out, min=float(low), max=float(high)).cast(np.dtype(kind))


@reads("DequantizeLinear")
def _read_dequantize(node: Node) -> Expression:
    return _restore(node, 0, 1, 2, _find_axis(node))


@reads("QuantizeLinear")
def _read_quantize(node: Node) -> Expression:
    return _quantize(node, node.input().cast(VarType.FP32), 1, 2, _find_axis(node))


def _find_axis(node: Node) -> int:
    if node.attr("block_size", 0):
        node.refuse("it has one scale per block")
    return node.axis(1) if node.rank() > 1 or "axis" in {one.name for one in node.proto.attribute} else 0


@reads("MatMulInteger")
def _read_matmul_integer(node: Node) -> Expression:
    """Multiply in float32, which is exact up to 2**24, enough for some 500 products of bytes."""
    if node.has(2) and node.dims(2) not in ((), (1,)):
        node.refuse("it has one zero point per row")
    product = node.emit("matmul_v2", _restore(node, 0, -1, 2), _restore(node, 1, -1, 3))
    return product.cast(VarType.INT32)


@reads("ConvInteger")
def _read_conv_integer(node: Node) -> Expression:
    """Compute sums in float32, as for MatMulInteger."""
    return convolve(node, _restore(node, 0, -1, 2), _restore(node, 1, -1, 3, 0)).cast(VarType.INT32)


@reads("QLinearConv")
def _read_conv(node: Node) -> Expression:
    """Read a quantized convolution; the bias is scaled by the product of both scales."""
    rank = node.rank()
    out = convolve(node, _restore(node, 0, 1, 2), _restore(node, 3, 4, 5, 0))
    if node.has(8):
        by = node.input(4) * node.input(1)
        bias = node.input(8).cast(VarType.FP32) * by
        out = out + bias.reshape(-1, *(1,) * (rank - 2))
    return _quantize(node, out, 6, 7, 1)


@reads("QLinearMatMul")
def _read_matmul(node: Node) -> Expression:
    if any(node.dims(index) not in ((), (1,)) for index in (1, 2, 6, 7)):
        node.refuse("it has one scale per row")
    product = node.emit("matmul_v2", _restore(node, 0, 1, 2), _restore(node, 3, 4, 5))
    return _quantize(node, product, 6, 7, 0)
