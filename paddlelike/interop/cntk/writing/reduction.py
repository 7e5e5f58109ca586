"""Sums, means and extremes."""

from __future__ import annotations

from dataclasses import replace

from paddlelike.formats.cntk.dictionary import SizeT
from paddlelike.interop.cntk.writing.graph import ALL_AXES, Ref, Step, static_axis, writes
from paddlelike.ops.reduction.reduce import REDUCTIONS, find_axes


@writes("sum")
def _write_sum(step: Step) -> Ref:
    first, *others = step.refs("X")
    total = first if others else first.unary("NoOp")
    for one in others:
        total = total + one
    return total


@writes("arg_max", "arg_min")
def _write_arg(step: Step) -> Ref:
    step.refuse_inputs("Axis")
    if step.attr("flatten", False):
        step.refuse("it flattens its input")
    x = step.ref()
    dim = step.static_dim(step.attr("axis"), x)
    how = "Argmax" if step.op.type == "arg_max" else "Argmin"
    return x.reduce(how, [dim], keep=bool(step.attr("keepdims", False)))


@writes("top_k")
def _write_top_k(step: Step) -> None:
    step.refuse_inputs("K")
    x, k = step.ref(), int(step.attr("k"))
    attributes = {"axis": static_axis(x.rank - 1, x.rank), "numItems": SizeT(k)}
    best = step.graph.add("TopK", [x], attributes, shape=[*x.shape[:-1], k])
    step.give("Out", best)
    step.give("Indices", replace(best, uid=best.uid.replace("_Output_0", "_Output_1")))


@writes(*(row.type for row in REDUCTIONS.values() if row.cntk))
def _write_reduce(step: Step) -> None:
    if step.op.type == "reduce_mean":
        step.refuse_integers()
    x, how = step.ref(), REDUCTIONS[step.op.type].cntk
    count = x.rank + x.dynamic
    dims = find_axes(step.op.type, None if step.attr("reduce_all") else tuple(step.attr("dim")), count)
    if len(dims) == count:
        _reduce_everything(step, x, how)
        return
    static = [step.static_dim(dim, x) for dim in dims]
    out = x.reduce(how, static, keep=bool(step.attr("keep_dim")))
    step.give("Out", out)


@writes("mean")
def _write_mean(step: Step) -> None:
    step.refuse_integers()
    _reduce_everything(step, step.ref(), "Mean")


def _reduce_everything(step: Step, x: Ref, how: str) -> None:
    """Reduce the samples too, to one number for a batch."""
    if not x.dynamic:
        out = x.reduce(how, range(x.rank))
        step.give("Out", out.reshape([1]))
        return
    if how not in ("Sum", "Mean") or x.sequence:
        step.refuse("it reduces the samples")
    attributes = {"axis": ALL_AXES, "reductionOpName": how, "reductionKeepDimensions": False}
    like = replace(x, dynamic=False)
    step.give("Out", step.graph.add("ReduceElements", [x], attributes, shape=[], like=like))
