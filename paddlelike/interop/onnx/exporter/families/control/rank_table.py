"""Rank tables and arrays of tensors."""

from __future__ import annotations

import numpy as np

from paddlelike.core import VarType, dtype_row
from paddlelike.interop.onnx.exporter.families.control.blocks import make_empty, make_graph
from paddlelike.interop.onnx.exporter.graph import RankTable, Step, converts
from paddlelike.interop.onnx.exporter.sequences import find_owners


def _find_table(step: Step) -> RankTable:
    (name,) = step.op.input("RankTable")
    if name not in step.graph.tables:
        step.refuse(f"no operator that ONNX can express makes the table {name}")
    return step.graph.tables[name]


@converts("lod_rank_table")
def _convert_table(step: Step) -> None:
    if step.attr("level"):
        step.refuse(f"it ranks level {step.attr('level')} of the LoD")
    lengths = step.lengths()
    longest, order = step.add_several("TopK", lengths, step.add("Shape", lengths), count=2)
    step.graph.tables[step.op.output("Out")[0]] = RankTable(order, longest, lengths)


@converts("max_sequence_len")
def _convert_max_length(step: Step) -> str:
    return step.reduce("ReduceMax", _find_table(step).longest, [0], keep=True)


def _count_active(step: Step, table: RankTable, turn: str) -> str:
    """Return the number of sequences that have this step, as a row."""
    active = step.cast(step.add("Greater", table.longest, turn), VarType.INT64)
    return step.reduce("ReduceSum", active, [0], keep=True)


@converts("shrink_rnn_memory")
def _convert_shrink(step: Step) -> str:
    count = _count_active(step, _find_table(step), step.input("I"))
    return step.add("Slice", step.input(), step.ints(0), count, step.ints(0))


@converts("lod_tensor_to_array")
def _convert_to_array(step: Step) -> str:
    from onnx import helper

    graph, table = step.graph, _find_table(step)
    firsts = step.add("CumSum", table.lengths, step.constant(0, np.int64), exclusive=1)
    firsts = step.add("Gather", firsts, table.order, axis=0)
    turn, going, array = (graph.take_name(name) for name in ("turn", "going", "steps"))
    element = dtype_row(step.variable().dtype).onnx
    ports = [
        helper.make_tensor_value_info(turn, dtype_row(VarType.INT64).onnx, []),
        helper.make_tensor_value_info(going, dtype_row(VarType.BOOL).onnx, []),
        helper.make_tensor_sequence_value_info(array, element, None),
    ]

    def run() -> list[str]:
        starts = step.add("Slice", firsts, step.ints(0), _count_active(step, table, turn))
        rows = step.add("Gather", step.input(), step.add("Add", starts, turn), axis=0)
        return [going, step.add("SequenceInsert", array, rows)]

    body, _ = make_graph(step, "step", run, ports)
    count = step.reduce("ReduceMax", table.longest, [0], keep=False)
    return step.add("Loop", count, "", make_empty(graph, step.variable("Out")), body=body)


@converts("array_to_lod_tensor")
def _convert_from_array(step: Step) -> None:
    """Concatenate the rows of all steps, sorted by sequence and then by step."""
    table = _find_table(step)
    most = step.reduce("ReduceMax", table.longest, [0], keep=False)
    steps = step.unsqueeze(step.add("Range", step.constant(0, np.int64), most, step.constant(1, np.int64)), 1)
    places = step.add("Add", step.unsqueeze(step.add("Mul", table.order, most), 0), steps)
    is_there = step.add("Less", steps, step.unsqueeze(table.longest, 0))
    places = step.add("Compress", step.reshape(places, -1), step.reshape(is_there, -1), axis=0)
    rows = step.add("ConcatFromSequence", step.input(), axis=0)
    step.give("Out", _sort_rows(step, rows, places), lengths=table.lengths)


def _sort_rows(step: Step, rows: str, places: str) -> str:
    _, order = step.add_several("TopK", places, step.add("Shape", places), count=2, largest=0)
    return step.add("Gather", rows, order, axis=0)


@converts("reorder_lod_tensor_by_rank")
def _convert_reorder(step: Step) -> None:
    table = _find_table(step)
    if not step.has_lengths():
        step.give("Out", step.add("Gather", step.input(), table.order, axis=0))
        return
    lengths = step.lengths()
    _, ranks = step.add_several("TopK", table.order, step.add("Shape", lengths), count=2, largest=0)
    owners, places = find_owners(step.graph, lengths)
    most = step.reduce("ReduceMax", lengths, [0], keep=False)
    places = step.add("Add", step.add("Mul", step.add("Gather", ranks, owners, axis=0), most), places)
    sorted_lengths = step.add("Gather", lengths, table.order, axis=0)
    step.give("Out", _sort_rows(step, step.input(), places), lengths=sorted_lengths)


_OLDEST = 14  # the opset whose Identity, If and Loop take sequences


def _find_place(step: Step) -> str:
    if step.graph.opset < _OLDEST:
        step.refuse(f"arrays of tensors need opset {_OLDEST}")
    return step.cast(step.reshape(step.input("I")), VarType.INT64)


@converts("write_to_array")
def _convert_write(step: Step) -> str:
    """Append or replace an element; none may be skipped."""
    place, name = _find_place(step), step.op.output("Out")[0]
    if step.has_lengths():
        step.refuse("elements with a LoD have no place in an array")
    array = step.graph.values.get(name) or make_empty(step.graph, step.variable("Out"))
    grown = step.add("SequenceInsert", array, step.input(), place)
    after = step.add("Add", place, step.constant(1, "int64"))
    replaced, _ = make_graph(step, "replaced", lambda: [step.add("SequenceErase", grown, after)])
    appended, _ = make_graph(step, "appended", lambda: [grown])
    is_there = step.add("Less", place, step.add("SequenceLength", array))
    return step.add("If", is_there, then_branch=replaced, else_branch=appended)


@converts("read_from_array")
def _convert_read(step: Step) -> str:
    return step.add("SequenceAt", step.input(), _find_place(step))


@converts("lod_array_length")
def _convert_length(step: Step) -> str:
    return step.reshape(step.add("SequenceLength", step.input()), 1)


@converts("tensor_array_to_tensor")
def _convert_to_tensor(step: Step) -> str:
    if step.is_read("OutIndex"):
        step.refuse("OutIndex is read")
    stacked = int(step.attr("use_stack"))
    return step.add("ConcatFromSequence", step.input(), axis=step.attr("axis"), new_axis=stacked)
