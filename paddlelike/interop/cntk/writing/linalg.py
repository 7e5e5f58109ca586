"""Products of matrices."""

from __future__ import annotations

import math

from paddlelike.interop.cntk.writing.elementwise import align
from paddlelike.interop.cntk.writing.graph import Ref, Step, writes


def multiply_flat(step: Step, x: Ref, w: Ref, columns: int) -> Ref:
    """Return the product of a matrix with ``x``, whose dims from ``columns`` on count as one."""
    start = columns - x.dynamic
    if start < 0 or w.dynamic or w.rank != 2:
        step.refuse(f"X has static shape {list(x.shape)}, Y {list(w.shape)}, with {columns} dims of rows")
    flat = x.reshape([*x.shape[:start], math.prod(x.shape[start:])])
    if flat.rank > 2:  # CNTK multiplies the last dim of a matrix
        flat = flat.reshape([math.prod(flat.shape[:-1]), flat.shape[-1]])
    out = flat @ w
    return out.reshape([*x.shape[:start], w.shape[1]])


@writes("mul")
def _write_mul(step: Step) -> Ref:
    x, w = step.ref(), step.ref("Y")
    inner = step.attr("y_num_col_dims")
    if w.dynamic:
        step.refuse("Y has samples")
    tail = w.shape[inner:]
    flat = w.reshape([math.prod(w.shape[:inner]), math.prod(tail)])
    out = multiply_flat(step, x, flat, step.attr("x_num_col_dims"))
    return out.reshape([*out.shape[:-1], *tail])


@writes("fc")
def _write_fc(step: Step) -> Ref:
    if step.attr("padding_weights", False):
        step.refuse("the weights are padded")
    out = multiply_flat(step, step.ref("Input"), step.ref("W"), step.attr("in_num_col_dims"))
    if step.has("Bias"):
        out = out + step.ref("Bias").reshape([out.shape[-1]])
    return out.unary("ReLU") if step.attr("activation_type", "") == "relu" else out


@writes("matmul", "matmul_v2")
def _write_matmul(step: Step) -> Ref:
    """Multiply matrices with or without samples; CNTK does not support several heads."""
    if step.attr("fused_reshape_Out", []) or step.attr("head_number", 1) > 1:
        step.refuse("it has several heads, or a reshape is fused into it")
    names = ("transpose_X", "transpose_Y") if step.op.type == "matmul" else ("trans_x", "trans_y")
    x, y = step.ref(), step.ref("Y")
    turn = [bool(step.attr(name, False)) for name in names]
    if y.dynamic and (y.rank, x.rank) != (2, 2):
        step.refuse(f"it multiplies samples of {x.rank} with samples of {y.rank} dims")
    if turn[0] and x.rank != 2:
        step.refuse("it transposes X, which is not a matrix without the samples")
    if not y.dynamic and y.rank != 2:
        step.refuse(f"Y has {y.rank} dims")
    x = x.transpose([1, 0]) if turn[0] else x
    y = y.transpose([1, 0]) if turn[1] else y
    out = x @ y if y.dynamic else multiply_flat(step, x, y, x.rank - 1 + x.dynamic)
    return out.scale(float(step.attr("alpha", 1.0)))


@writes("cos_sim")
def _write_cos_sim(step: Step) -> Ref:
    x, y = align(step)
    if x.rank != 1 or y.rank != 1:
        step.refuse("its inputs are not vectors")
    if x.dynamic != y.dynamic:
        step.refuse("one of its inputs has samples, and the other not")
    out = step.graph.add("CosDistance", [x, y], shape=[])
    return out.reshape([1])


@writes("norm")
def _write_norm(step: Step) -> None:
    x = step.ref()
    dim = step.static_dim(step.attr("axis"), x)
    total = (x * x).reduce("Sum", [dim])
    length = total.scale(1, float(step.attr("epsilon"))).unary("Sqrt")
    step.give("Norm", length)
    step.give("Out", x / length)
