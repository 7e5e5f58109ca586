"""Columns of several arrays, joined or added: partial_concat, partial_sum."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import OWN, Array, Bool, Gradient, GradOp, Int, OpDef, OpView, Spec, register


def _columns(type: str, x: list[Spec], start: int, length: int) -> tuple[int, int]:
    """Return the first column and the end. Raises ShapeError unless all are (N, D) and have those columns."""
    if not x:
        raise ShapeError(f"{type}: X is empty, expected one variable at least")
    shapes = [list(one.shape) for one in x]
    if any(len(shape) != 2 for shape in shapes) or len({shape[1] for shape in shapes}) > 1:
        raise ShapeError(f"{type}: X has the shapes {shapes}, expected (N, D) of one width")
    width = shapes[0][1]
    first = start + width if start < 0 else start
    end = width if length < 0 else first + length
    if not 0 <= first < width or end > width:
        raise ShapeError(f"{type}: columns {start} to {end} are not in the {width} columns of X")
    return first, end


def _specs(x: list[Array]) -> list[Spec]:
    return [Spec(one.shape, 0) for one in x]  # type: ignore[arg-type]  # the dtype does not matter


class _Partial(OpDef):
    """An operator on the same columns of every X."""

    inputs = ("X*",)
    attrs = {"start_index": Int(0), "length": Int(-1)}
    lod = "X"
    gradient = Gradient("X", "Out@GRAD", lod_in_run=OWN, traceable=False)

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        return [grad._replace(own_attrs=True) for grad in super().make_grad(op)]


@register
class PartialConcat(_Partial):
    """``Out``: ``length`` columns (-1: all) from ``start_index`` on of every X, side by side."""

    type = "partial_concat"

    @staticmethod
    def infer(x: list[Spec], *, start_index: int, length: int) -> Spec:
        first, end = _columns("partial_concat", x, start_index, length)
        return Spec((x[0].shape[0], (end - first) * len(x)), x[0].dtype)

    @staticmethod
    def forward(x: list[Array], *, start_index: int, length: int) -> Array:
        first, end = _columns("partial_concat", _specs(x), start_index, length)
        return np.concatenate([one[:, first:end] for one in x], axis=1)

    @staticmethod
    def backward(x: list[Array], d_out: Array, *, start_index: int, length: int) -> list[Array]:
        first, end = _columns("partial_concat", _specs(x), start_index, length)
        out = [np.zeros_like(one) for one in x]
        for index, one in enumerate(out):
            one[:, first:end] = d_out[:, index * (end - first) : (index + 1) * (end - first)]
        return out


@register
class PartialSum(_Partial):
    """``Out``: the sum of ``length`` columns (-1: all) from ``start_index`` on of every X."""

    type = "partial_sum"
    attrs = {"use_mkldnn": Bool(False), "start_index": Int(0), "length": Int(-1)}

    @staticmethod
    def infer(x: list[Spec], *, start_index: int, length: int) -> Spec:
        first, end = _columns("partial_sum", x, start_index, length)
        return Spec((x[0].shape[0], end - first), x[0].dtype)

    @staticmethod
    def forward(x: list[Array], *, start_index: int, length: int) -> Array:
        first, end = _columns("partial_sum", _specs(x), start_index, length)
        out = x[0][:, first:end].copy()
        for one in x[1:]:
            out += one[:, first:end]
        return out

    @staticmethod
    def backward(x: list[Array], d_out: Array, *, start_index: int, length: int) -> list[Array]:
        first, end = _columns("partial_sum", _specs(x), start_index, length)
        out = [np.zeros_like(one) for one in x]
        for one in out:
            one[:, first:end] = d_out
        return out
