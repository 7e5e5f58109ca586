"""Arrays of tensors, which are ONNX's sequences; loops carry them from turn to turn."""

from __future__ import annotations

from paddlelike.core.dtypes import VarType
from paddlelike.interop.onnx.exporter.converters import converts
from paddlelike.interop.onnx.exporter.families.control.blocks import make_empty, make_graph
from paddlelike.interop.onnx.exporter.graph import Step

_OLDEST = 14  # the opset whose Identity, If and Loop take sequences


def _find_place(step: Step) -> str:
    if step.graph.opset < _OLDEST:
        step.refuse(f"arrays of tensors need opset {_OLDEST}")
    return step.cast(step.reshape(step.input("I")), VarType.INT64)


@converts("write_to_array")
def _convert_write(step: Step) -> None:
    """An element is appended, or replaced; none is left out in between."""
    place, name = _find_place(step), step.op.output("Out")[0]
    if step.has_lengths():
        step.refuse("elements with a LoD have no place in an array")
    array = step.graph.values.get(name) or make_empty(step.graph, step.variable("Out"))
    grown = step.add("SequenceInsert", array, step.input(), place)
    after = step.add("Add", place, step.constant(1, "int64"))
    replaced, _ = make_graph(step, "replaced", lambda: [step.add("SequenceErase", grown, after)])
    appended, _ = make_graph(step, "appended", lambda: [grown])
    is_there = step.add("Less", place, step.add("SequenceLength", array))
    step.give("Out", step.add("If", is_there, then_branch=replaced, else_branch=appended))


@converts("read_from_array")
def _convert_read(step: Step) -> None:
    step.give("Out", step.add("SequenceAt", step.input(), _find_place(step)))


@converts("lod_array_length")
def _convert_length(step: Step) -> None:
    step.give("Out", step.reshape(step.add("SequenceLength", step.input()), 1))


@converts("tensor_array_to_tensor")
def _convert_to_tensor(step: Step) -> None:
    if step.is_read("OutIndex"):
        step.refuse("OutIndex is read")
    stacked = int(step.attr("use_stack"))
    step.give("Out", step.add("ConcatFromSequence", step.input(), axis=step.attr("axis"), new_axis=stacked))
