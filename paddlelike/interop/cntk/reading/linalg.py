"""Products of matrices."""

from __future__ import annotations

import math

from paddlelike.core import VarType
from paddlelike.interop.cntk.reading.step import Step, Value, reads


@reads("Times")
def _read_times(step: Step) -> Value:
    """Compute ``x W``; the file lists the right factor first. Several dims may be contracted."""
    right, left = step.value(), step.value(1)
    out_rank = step.attr("outputRank", int)
    inner = right.rank - out_rank
    if right.dynamic and left.dynamic and (inner, out_rank, left.rank) != (1, 1, 2):
        return _multiply_samples(step, left, right, inner)
    if right.dynamic and not left.dynamic:
        return _multiply_by_matrix(step, left, right, inner)
    if not 0 < inner <= left.rank:
        step.refuse(f"it sums over {inner} dims, but its left factor has {left.rank}")
    if right.dynamic:
        out = step.emit("matmul", {"X": left.variable, "Y": right.variable})
        return step.give(out, left, 1 + out_rank)
    columns = left.rank - inner + (1 if left.dynamic else 0)
    x, out_dims = left.variable, [*left.shape[: left.rank - inner], *right.shape[inner:]]
    w = right.variable
    if columns == 0:  # a row without samples
        x, columns = step.reshape_all(x, [1, *left.shape]), 1
    if out_rank == 0:
        w = step.reshape_all(w, [*right.shape, 1])
    out = step.emit("mul", {"X": x, "Y": w}, {"x_num_col_dims": columns, "y_num_col_dims": inner})
    made = left._replace(variable=out, rank=out.shape.__len__() - (1 if left.dynamic else 0))
    return step.give(step.reshape(made, out_dims), left, len(out_dims))


def _multiply_by_matrix(step: Step, left: Value, right: Value, inner: int) -> Value:
    """Multiply a matrix with each sample, by transposing both."""
    if (left.rank, inner) != (2, 1) or right.rank > 2:
        step.refuse(f"its left factor, of {left.rank} dims, has no samples, but the right one has")
    turned = step.transpose(left.variable, [1, 0])
    if right.rank == 1:
        return step.give(step.emit("mul", {"X": right.variable, "Y": turned}), right)
    x = step.transpose(right.variable, [0, 2, 1])
    out = step.emit("mul", {"X": x, "Y": turned}, {"x_num_col_dims": 2, "y_num_col_dims": 1})
    return step.give(step.transpose(out, [0, 2, 1]), right)


def _multiply_samples(step: Step, left: Value, right: Value, inner: int) -> Value:
    """Multiply the matrices of corresponding samples."""
    rows, shared = left.shape[: left.rank - inner], left.shape[left.rank - inner :]
    columns = right.shape[inner:]
    if min(*rows, *shared, *columns, 1) < 0:
        step.refuse("a dim of its factors is not known")
    a = step.reshape(left, [math.prod(rows), math.prod(shared)])
    b = step.reshape(right, [math.prod(shared), math.prod(columns)])
    made = left._replace(variable=step.emit("matmul", {"X": a, "Y": b}), rank=2)
    return step.give(step.reshape(made, [*rows, *columns]), left, len(rows) + len(columns))


@reads("TransposeTimes")
def _read_transpose_times(step: Step) -> Value:
    """Multiply by the transposed right factor: its last dims become its rows."""
    right, left = step.value(), step.value(1)
    if step.attr("outputRank", int) != 1:
        step.refuse("its output has more than one dim")
    if right.dynamic and left.dynamic:
        if right.rank == left.rank == 2:
            inputs = {"X": left.variable, "Y": right.variable}
            return step.give(step.emit("matmul", inputs, {"transpose_Y": True}), left)
        if right.rank != 1 or left.rank != 1:
            step.refuse(f"its factors have {left.rank} and {right.rank} dims and samples")
        return _multiply_rows(step, left, right)
    if right.dynamic or right.rank > 2 or left.rank < 1:
        step.refuse(f"its factors have {left.rank} and {right.rank} dims")
    shape = [*right.shape] if right.rank == 2 else [right.shape[0], 1]
    w = step.reshape(right, shape)
    if right.rank == 1:  # one number for each sample
        w = step.reshape_all(right.variable, [1, right.shape[0]])
    out = step.emit("matmul", {"X": left.variable, "Y": w}, {"transpose_Y": True})
    return step.give(out, left)


def _multiply_rows(step: Step, left: Value, right: Value) -> Value:
    product = step.binary("elementwise_mul", left.variable, right.variable)
    return step.give(step.reduce("Sum", product, 1), left, 1)


@reads("EyeLike")
def _read_eye(step: Step) -> Value:
    """Return ones on the diagonal; the rows may be the samples."""
    value, dtype = step.value(), step.value().variable.dtype
    if value.sequence or value.rank != (1 if value.dynamic else 2):
        step.refuse("its input does not have two dims")
    columns = value.shape[-1]
    if not value.dynamic:
        attrs = {"num_rows": value.shape[0], "num_columns": columns, "dtype": int(dtype)}
        return step.give(step.emit("eye", {}, attrs, dtype=dtype))
    ones = step.fill_rows(value, 1)
    places = step.unary("cumsum", ones, axis=0, exclusive=True, reverse=False)
    options = {"depth": columns, "dtype": int(VarType.FP32), "allow_out_of_range": True}
    return step.give(step.cast(step.emit("one_hot_v2", {"X": places}, options, dtype="float32"), dtype))
