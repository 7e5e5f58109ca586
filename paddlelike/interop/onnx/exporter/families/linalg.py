"""Products of matrices."""

from __future__ import annotations

import functools

import numpy as np

from paddlelike.interop.onnx.exporter.graph import Step, converts


def _multiply_flat(step: Step, slots: tuple[str, str], cut_x: int, cut_y: int) -> str:
    """Return the product of two tensors as matrices, with the row dims of X and the column dims of Y."""
    (x, y), (rank_x, rank_y) = map(step.input, slots), map(step.rank, slots)
    if rank_y == 2 and cut_x == rank_x - 1:
        return step.add("MatMul", x, y)
    a = x if rank_x == 2 else step.add("Flatten", x, axis=cut_x)
    b = y if rank_y == 2 else step.add("Flatten", y, axis=cut_y)
    out = step.add("MatMul", a, b)
    if cut_x == 1 and cut_y == rank_y - 1:
        return out
    dims = step.add("Concat", step.dims(x, 0, cut_x), step.dims(y, cut_y, rank_y), axis=0)
    return step.add("Reshape", out, dims)


@converts("mul")
def _convert_mul(step: Step) -> str:
    return _multiply_flat(step, ("X", "Y"), step.attr("x_num_col_dims"), step.attr("y_num_col_dims"))


@converts("fc")
def _convert_fc(step: Step) -> str:
    if step.attr("padding_weights"):
        step.refuse("the weights are padded")
    out = _multiply_flat(step, ("Input", "W"), step.attr("in_num_col_dims"), 1)
    if step.has("Bias"):
        out = step.add("Add", out, step.reshape(step.input("Bias"), -1))
    return step.add("Relu", out) if step.attr("activation_type") == "relu" else out


def _turn(step: Step, value: str, rank: int, turn: bool) -> str:
    """Return matrices, on request with their last two dims exchanged."""
    order = list(range(rank))
    return step.transpose(value, [*order[:-2], rank - 1, rank - 2]) if turn and rank > 1 else value


@converts("matmul")
def _convert_matmul(step: Step) -> str:
    """Multiply. A vector counts as a row or a column; the result drops that dim unless it has no other."""
    if step.attr("fused_reshape_Out") or step.attr("head_number") > 1:
        step.refuse("it has several heads, or a reshape is fused into it")
    x, y, rank_x, rank_y = step.input(), step.input("Y"), step.rank(), step.rank("Y")
    turn_x, turn_y = step.attr("transpose_X"), step.attr("transpose_Y")
    a = step.unsqueeze(x, 0) if rank_x == 1 else x
    b = step.unsqueeze(y, 1) if rank_y == 1 else y
    wide_x, wide_y = max(rank_x, 2), max(rank_y, 2)
    if wide_x > 2 and wide_y > 2 and wide_x != wide_y:  # the same matrices in other dims
        dims = step.add("Concat", step.dims(a, 0, wide_x - 2), step.dims(b, wide_y - 2, wide_y), axis=0)
        b, wide_y = step.add("Reshape", b, dims), wide_x
    out = step.add("MatMul", _turn(step, a, wide_x, turn_x), _turn(step, b, wide_y, turn_y))
    if step.attr("alpha") != 1:
        out = step.add("Mul", out, step.like(step.attr("alpha")))
    rank = max(wide_x, wide_y)
    lost = [rank - 2] * (rank_x == 1 and (not turn_x or step.shape()[0] == 1))
    lost += [rank - 1] * (rank_y == 1 and (not turn_y or step.shape("Y")[0] == 1))
    return step.reshape(out, 1) if len(lost) == rank else step.squeeze(out, *lost)


@converts("matmul_v2")
def _convert_matmul_v2(step: Step) -> str:
    x = _turn(step, step.input(), step.rank(), step.attr("trans_x", False))
    y = _turn(step, step.input("Y"), step.rank("Y"), step.attr("trans_y", False))
    return step.add("MatMul", x, y)


@converts("bmm")
def _convert_bmm(step: Step) -> str:
    return step.add("MatMul", step.input(), step.input("Y"))


@converts("mv")
def _convert_mv(step: Step) -> str:
    return step.add("MatMul", step.input(), step.input("Vec"))


@converts("einsum")
def _convert_einsum(step: Step) -> str:
    return step.add("Einsum", *step.inputs("Operands"), equation=step.attr("equation"))


@converts("cos_sim")
def _convert_cos_sim(step: Step) -> str:
    """Compare each row of X with the same row of Y, or with the only row of Y."""
    x, y = (step.reshape(step.input(slot), 0, -1) for slot in ("X", "Y"))
    norms = [step.reduce("ReduceL2", each, [1], keep=True) for each in (x, y)]
    product = step.reduce("ReduceSum", step.add("Mul", x, y), [1], keep=True)
    return step.add("Div", product, step.add("Mul", *norms))


@converts("addmm")
def _convert_addmm(step: Step) -> str:
    factors = {"alpha": float(step.attr("Alpha")), "beta": float(step.attr("Beta"))}
    return step.add("Gemm", step.input(), step.input("Y"), step.input("Input"), **factors)


@converts("dot")
def _convert_dot(step: Step) -> str:
    products = step.add("Mul", step.input(), step.input("Y"))
    return step.reduce("ReduceSum", products, [-1], keep=not step.graph.later)


@converts("p_norm")
def _convert_p_norm(step: Step) -> str:
    order = step.attr("porder")
    kind = {1.0: "ReduceL1", 2.0: "ReduceL2", np.inf: "ReduceMax", -np.inf: "ReduceMin"}.get(order)
    if kind is None:
        step.refuse(f"porder is {order}")
    if not step.graph.later and np.isfinite(order):
        step.refuse("it adds epsilon as Fluid 1.8 does")
    x = step.input() if np.isfinite(order) else step.add("Abs", step.input())
    axes = range(step.rank()) if step.attr("asvector") else [step.attr("axis")]
    return step.reduce(kind, x, axes, keep=bool(step.attr("keepdim")))


@converts("tril_triu")
def _convert_tril_triu(step: Step) -> str:
    diagonal = step.constant(step.attr("diagonal"), np.int64)
    return step.add("Trilu", step.input(), diagonal, upper=int(not step.attr("lower")))


@converts("multi_dot")
def _convert_multi_dot(step: Step) -> str:
    return functools.reduce(lambda left, right: step.add("MatMul", left, right), step.inputs("X"))


@converts("matrix_power")
def _convert_matrix_power(step: Step) -> str:
    if step.attr("n") < 1:
        step.refuse(f"n is {step.attr('n')}, which needs an inverse or a unit matrix")
    x = out = step.input()
    for _ in range(step.attr("n") - 1):
        out = step.add("MatMul", out, x)
    return out


@converts("determinant", "slogdeterminant")
def _convert_determinant(step: Step) -> str:
    out = step.add("Det", step.input("Input"))
    if step.op.type == "slogdeterminant":
        parts = (step.add("Sign", out), step.add("Log", step.add("Abs", out)))
        out = step.add("Concat", *(step.unsqueeze(one, 0) for one in parts), axis=0)
    return out


@converts("frame")
def _convert_frame(step: Step) -> str:
    """Cut windows along the last axis, (..., length, frames), or the first, (frames, length, ...)."""
    length, axis = step.attr("frame_length"), 0 if step.attr("axis") == 0 else step.rank() - 1
    size = step.dims(step.input(), axis, axis + 1)
    end = step.reshape(step.add("Add", size, step.ints(1 - length)))
    starts = step.add(
        "Range", step.constant(0, "int64"), end, step.constant(step.attr("hop_length"), "int64")
    )
    within = step.constant(np.arange(length), "int64")
    sides = (starts, within) if axis == 0 else (within, starts)
    places = step.add("Add", step.unsqueeze(sides[0], 1), step.unsqueeze(sides[1], 0))
    return step.add("Gather", step.input(), places, axis=axis)


@converts("overlap_add")
def _convert_overlap_add(step: Step) -> str:
    """Add frames up, by a transposed convolution with a unit matrix."""
    rank, first = step.rank(), step.attr("axis") == 0
    x = step.transpose(step.input(), [*range(2, rank), 1, 0]) if first else step.input()
    length = step.shape()[1 if first else rank - 2]
    if length < 0:
        step.refuse("the length of a frame is not known")
    rows = step.add(
        "Reshape", x, step.add("Concat", step.ints(-1, length), step.dims(x, rank - 1, rank), axis=0)
    )
    unit = step.constant(np.eye(length).reshape(length, 1, length), step.dtype())
    whole = step.add("ConvTranspose", rows, unit, strides=[step.attr("hop_length")])
    outer = step.dims(x, 0, rank - 2)
    out = step.add("Reshape", whole, step.add("Concat", outer, step.ints(-1), axis=0))
    return step.transpose(out, [rank - 2, *range(rank - 2)]) if first else out
