"""Products of matrices."""

from __future__ import annotations

import functools

import numpy as np

from paddlelike.interop.onnx.exporter.graph import Step, Value, converts


def _multiply_flat(step: Step, slots: tuple[str, str], cut_x: int, cut_y: int) -> Value:
    """Return the product of two tensors as matrices, with the row dims of X and the column dims of Y."""
    (x, y), (rank_x, rank_y) = map(step.input, slots), map(step.rank, slots)
    if rank_y == 2 and cut_x == rank_x - 1:
        return x @ y
    a = x if rank_x == 2 else step.add("Flatten", x, axis=cut_x)
    b = y if rank_y == 2 else step.add("Flatten", y, axis=cut_y)
    out = a @ b
    if cut_x == 1 and cut_y == rank_y - 1:
        return out
    dims = step.concat(x.dims(0, cut_x), y.dims(cut_y, rank_y))
    return out.reshape(dims)


@converts("mul")
def _convert_mul(step: Step) -> Value:
    return _multiply_flat(step, ("X", "Y"), step.attr("x_num_col_dims"), step.attr("y_num_col_dims"))


@converts("fc")
def _convert_fc(step: Step) -> Value:
    if step.attr("padding_weights"):
        step.refuse("the weights are padded")
    out = _multiply_flat(step, ("Input", "W"), step.attr("in_num_col_dims"), 1)
    if step.has("Bias"):
        out = out + step.input("Bias").reshape(-1)
    return step.add("Relu", out) if step.attr("activation_type") == "relu" else out


def _turn(value: Value, rank: int, turn: bool) -> Value:
    """Return matrices, on request with their last two dims exchanged."""
    order = list(range(rank))
    return value.transpose([*order[:-2], rank - 1, rank - 2]) if turn and rank > 1 else value


@converts("matmul")
def _convert_matmul(step: Step) -> Value:
    """Multiply. A vector counts as a row or a column; the result drops that dim unless it has no other."""
    if step.attr("fused_reshape_Out") or step.attr("head_number") > 1:
        step.refuse("it has several heads, or a reshape is fused into it")
    x, y, rank_x, rank_y = step.input(), step.input("Y"), step.rank(), step.rank("Y")
    turn_x, turn_y = step.attr("transpose_X"), step.attr("transpose_Y")
    a = x.unsqueeze(0) if rank_x == 1 else x
    b = y.unsqueeze(1) if rank_y == 1 else y
    wide_x, wide_y = max(rank_x, 2), max(rank_y, 2)
    if wide_x > 2 and wide_y > 2 and wide_x != wide_y:  # the same matrices in other dims
        dims = step.concat(a.dims(0, wide_x - 2), b.dims(wide_y - 2, wide_y))
        b, wide_y = b.reshape(dims), wide_x
    out = _turn(a, wide_x, turn_x) @ _turn(b, wide_y, turn_y)
    if step.attr("alpha") != 1:
        out = out * step.like(step.attr("alpha"))
    rank = max(wide_x, wide_y)
    lost = [rank - 2] * (rank_x == 1 and (not turn_x or step.shape()[0] == 1))
    lost += [rank - 1] * (rank_y == 1 and (not turn_y or step.shape("Y")[0] == 1))
    return out.reshape(1) if len(lost) == rank else out.squeeze(*lost)


@converts("matmul_v2")
def _convert_matmul_v2(step: Step) -> Value:
    x = _turn(step.input(), step.rank(), step.attr("trans_x", False))
    y = _turn(step.input("Y"), step.rank("Y"), step.attr("trans_y", False))
    return x @ y


@converts("bmm")
def _convert_bmm(step: Step) -> Value:
    return step.input() @ step.input("Y")


@converts("mv")
def _convert_mv(step: Step) -> Value:
    return step.input() @ step.input("Vec")


@converts("einsum")
def _convert_einsum(step: Step) -> Value:
    return step.add("Einsum", *step.inputs("Operands"), equation=step.attr("equation"))


@converts("cos_sim")
def _convert_cos_sim(step: Step) -> Value:
    """Compare each row of X with the same row of Y, or with the only row of Y."""
    x, y = (step.input(slot).reshape(0, -1) for slot in ("X", "Y"))
    norms = [each.reduce("ReduceL2", 1, keep=True) for each in (x, y)]
    product = (x * y).reduce("ReduceSum", 1, keep=True)
    return product / step.add("Mul", *norms)


@converts("addmm")
def _convert_addmm(step: Step) -> Value:
    factors = {"alpha": float(step.attr("Alpha")), "beta": float(step.attr("Beta"))}
    return step.add("Gemm", step.input(), step.input("Y"), step.input("Input"), **factors)


@converts("dot")
def _convert_dot(step: Step) -> Value:
    products = step.input() * step.input("Y")
    return products.reduce("ReduceSum", -1, keep=not step.graph.later)


@converts("p_norm")
def _convert_p_norm(step: Step) -> Value:
    order = step.attr("porder")
    kind = {1.0: "ReduceL1", 2.0: "ReduceL2", np.inf: "ReduceMax", -np.inf: "ReduceMin"}.get(order)
    if kind is None:
        step.refuse(f"porder is {order}")
    if not step.graph.later and np.isfinite(order):
        step.refuse("it adds epsilon as Fluid 1.8 does")
    x = step.input() if np.isfinite(order) else abs(step.input())
    axes = range(step.rank()) if step.attr("asvector") else [step.attr("axis")]
    return x.reduce(kind, *axes, keep=bool(step.attr("keepdim")))


@converts("tril_triu")
def _convert_tril_triu(step: Step) -> Value:
    diagonal = step.scalar(step.attr("diagonal"))
    return step.add("Trilu", step.input(), diagonal, upper=int(not step.attr("lower")))


@converts("multi_dot")
def _convert_multi_dot(step: Step) -> Value:
    return functools.reduce(lambda left, right: left @ right, step.inputs("X"))


@converts("matrix_power")
def _convert_matrix_power(step: Step) -> Value:
    if step.attr("n") < 1:
        step.refuse(f"n is {step.attr('n')}, which needs an inverse or a unit matrix")
    x = out = step.input()
    for _ in range(step.attr("n") - 1):
        out = out @ x
    return out


@converts("determinant", "slogdeterminant")
def _convert_determinant(step: Step) -> Value:
    out = step.add("Det", step.input("Input"))
    if step.op.type == "slogdeterminant":
        parts = (step.add("Sign", out), step.add("Log", abs(out)))
        out = step.concat(*(one.unsqueeze(0) for one in parts))
    return out


@converts("frame")
def _convert_frame(step: Step) -> Value:
    """Cut windows along the last axis, (..., length, frames), or the first, (frames, length, ...)."""
    length, axis = step.attr("frame_length"), 0 if step.attr("axis") == 0 else step.rank() - 1
    size = step.input().dims(axis, axis + 1)
    end = (size + (1 - length)).reshape()
    starts = step.add("Range", step.scalar(0), end, step.scalar(step.attr("hop_length")))
    within = step.constant(np.arange(length), "int64")
    sides = (starts, within) if axis == 0 else (within, starts)
    places = sides[0].unsqueeze(1) + sides[1].unsqueeze(0)
    return step.input().take(places, axis)


@converts("overlap_add")
def _convert_overlap_add(step: Step) -> Value:
    """Add frames up, by a transposed convolution with a unit matrix."""
    rank, first = step.rank(), step.attr("axis") == 0
    x = step.input().transpose([*range(2, rank), 1, 0]) if first else step.input()
    length = step.shape()[1 if first else rank - 2]
    if length < 0:
        step.refuse("the length of a frame is not known")
    rows = x.reshape(step.concat(step.ints(-1, length), x.dims(rank - 1, rank)))
    unit = step.constant(np.eye(length).reshape(length, 1, length), step.dtype())
    whole = step.add("ConvTranspose", rows, unit, strides=[step.attr("hop_length")])
    outer = x.dims(0, rank - 2)
    out = whole.reshape(step.concat(outer, step.ints(-1)))
    return out.transpose([rank - 2, *range(rank - 2)]) if first else out
