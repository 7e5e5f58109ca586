"""Sequences: a LoD of one level in Fluid is the sequence axis in CNTK."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from paddlelike.formats.cntk.dictionary import Axis, SizeT
from paddlelike.interop.cntk.writing.graph import BATCH, Ref, Step, writes
from paddlelike.interop.cntk.writing.tensor import concat

_CHOSEN: Final = {"FIRST": "PastValue", "LAST": "FutureValue"}


_REDUCED: Final = {"MAX": ("Max", float("-inf")), "SUM": ("Sum", 0.0)}


def check_sequence(step: Step, x: Ref) -> None:
    if not x.sequence:
        step.refuse("its input does not hold sequences")


def _choose(step: Step, x: Ref, shift: str) -> Ref:
    """Return the step of each sequence that has no neighbour in one direction: the first or the last."""
    zero, one = x.number(0), x.number(1)
    spread = step.graph.add("ReconcileDynamicAxis", [zero, x], shape=[], like=x)
    end = step.graph.add(shift, [spread, one], {"offset": SizeT(1)}, shape=[])
    attributes = {
        "newDynamicAxes": [BATCH],
        "newSequenceAxisLengthScalingFactor": SizeT(0),
        "newSequenceAxisLengthAdditiveFactor": 1,
    }
    where = step.graph.add("Where", [end], attributes, shape=[])
    index = step.graph.add("PackedIndex", [x, where], shape=[])
    out = step.graph.add("GatherPacked", [x, index], shape=x.shape)
    return replace(out, sequence=False)


@writes("sequence_pool")
def _write_pool(step: Step) -> Ref:
    x, kind = step.ref(), step.attr("pooltype")
    check_sequence(step, x)
    if kind in _CHOSEN:
        return _choose(step, x, _CHOSEN[kind])
    if kind in ("AVERAGE", "SQRT"):
        total = _reduce(step, x, "SUM")
        count = _reduce(step, x.unary("ConstantOp", fillValue=1.0), "SUM")
        return total / (count.unary("Sqrt") if kind == "SQRT" else count)
    if kind not in _REDUCED:
        step.refuse(f"it pools by {kind}")
    return _reduce(step, x, kind)


def _reduce(step: Step, x: Ref, kind: str) -> Ref:
    """Return a reduction over the steps of each sequence, for which CNTK pads them."""
    how, padding = _REDUCED[kind]
    options = {"sequenceUnpackPaddingValue": padding, "sequenceUnpackSuppressMaskOutput": True}
    unpacked = step.graph.add("UnpackSequence", [x], options, shape=[0, *x.shape])
    attributes = {
        "axis": Axis(x.rank, f"staticAxisIdx={x.rank}", ordered=True),
        "reductionOpName": how,
        "reductionKeepDimensions": False,
    }
    out = step.graph.add("ReduceElements", [unpacked], attributes, shape=x.shape)
    return replace(out, sequence=False)


def _spread(step: Step, value: Ref, x: Ref) -> Ref:
    """Repeat the value of each sequence at all its steps."""
    return step.graph.add("ReconcileDynamicAxis", [value, x], shape=value.shape, like=x)


@writes("sequence_softmax")
def _write_softmax(step: Step) -> Ref:
    x = step.ref()
    check_sequence(step, x)
    moved = (x - _spread(step, _reduce(step, x, "MAX"), x)).unary("Exp")
    return moved / _spread(step, _reduce(step, moved, "SUM"), x)


@writes("sequence_conv")
def _write_conv(step: Step) -> Ref:
    """Multiply the window around each step by the filter, with zeros beyond the ends."""
    x, start = step.ref(), int(step.attr("contextStart"))
    check_sequence(step, x)
    step.refuse_inputs("PaddingData")
    if step.attr("contextStride") != 1 or x.rank != 1:
        step.refuse("its contextStride is not 1, or its steps are not rows")
    parts = []
    for offset in range(start, start + int(step.attr("contextLength"))):
        shift = "PastValue" if offset < 0 else "FutureValue"
        options = {"offset": SizeT(abs(offset))}
        moved = step.graph.add(shift, [x, x.number(0)], options, shape=x.shape) if offset else x
        parts.append(moved)
    joined = concat(step, parts, 0) if len(parts) > 1 else parts[0]
    return joined @ step.ref("Filter")


@writes("sequence_expand_as", "sequence_expand")
def _write_expand(step: Step) -> Ref:
    x, y = step.ref(), step.ref("Y")
    if x.sequence or not x.dynamic or not y.sequence:
        step.refuse("X holds sequences, or Y holds none")
    return step.graph.add("ReconcileDynamicAxis", [x, y], shape=x.shape, like=y)
