"""Rank tables and arrays of tensors."""

from __future__ import annotations

from paddlelike.core import VarType, dtype_row
from paddlelike.interop.onnx.exporter.families.control.blocks import make_empty, make_graph
from paddlelike.interop.onnx.exporter.graph import RankTable, Step, Value, converts
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
    longest, order = step.add_several("TopK", lengths, lengths.dims(), count=2)
    step.graph.tables[step.op.output("Out")[0]] = RankTable(order, longest, lengths)


@converts("max_sequence_len")
def _convert_max_length(step: Step) -> Value:
    return _find_table(step).longest.reduce("ReduceMax", 0, keep=True)


def _count_active(table: RankTable, turn: Value) -> Value:
    """Return the number of sequences that have this step, as a row."""
    active = (table.longest > turn).cast(VarType.INT64)
    return active.reduce("ReduceSum", 0, keep=True)


@converts("shrink_rnn_memory")
def _convert_shrink(step: Step) -> Value:
    count = _count_active(_find_table(step), step.input("I"))
    return step.add("Slice", step.input(), step.ints(0), count, step.ints(0))


@converts("lod_tensor_to_array")
def _convert_to_array(step: Step) -> Value:
    from onnx import helper

    graph, table = step.graph, _find_table(step)
    firsts = step.add("CumSum", table.lengths, step.scalar(0), exclusive=1)
    firsts = firsts.take(table.order)
    turn, going, array = (Value(graph, graph.take_name(name)) for name in ("turn", "going", "steps"))
    element = dtype_row(step.variable().dtype).onnx
    ports = [
        helper.make_tensor_value_info(turn.name, dtype_row(VarType.INT64).onnx, []),
        helper.make_tensor_value_info(going.name, dtype_row(VarType.BOOL).onnx, []),
        helper.make_tensor_sequence_value_info(array.name, element, None),
    ]

    def run() -> list[Value]:
        starts = firsts[: _count_active(table, turn)]
        rows = step.input().take(starts + turn)
        return [going, step.add("SequenceInsert", array, rows)]

    body, _ = make_graph(step, "step", run, ports)
    count = table.longest.reduce("ReduceMax", 0)
    return step.add("Loop", count, "", make_empty(graph, step.variable("Out")), body=body)


@converts("array_to_lod_tensor")
def _convert_from_array(step: Step) -> None:
    """Concatenate the rows of all steps, sorted by sequence and then by step."""
    table = _find_table(step)
    most = table.longest.reduce("ReduceMax", 0)
    steps = most.range().unsqueeze(1)
    places = (table.order * most).unsqueeze(0) + steps
    is_there = steps < table.longest.unsqueeze(0)
    places = places.reshape(-1)[is_there.reshape(-1)]
    rows = step.add("ConcatFromSequence", step.input(), axis=0)
    step.give("Out", _sort_rows(step, rows, places), lengths=table.lengths)


def _sort_rows(step: Step, rows: Value, places: Value) -> Value:
    _, order = step.add_several("TopK", places, places.dims(), count=2, largest=0)
    return rows.take(order)


@converts("reorder_lod_tensor_by_rank")
def _convert_reorder(step: Step) -> None:
    table = _find_table(step)
    if not step.has_lengths():
        step.give("Out", step.input().take(table.order))
        return
    lengths = step.lengths()
    _, ranks = step.add_several("TopK", table.order, lengths.dims(), count=2, largest=0)
    owners, places = find_owners(lengths)
    most = lengths.reduce("ReduceMax", 0)
    places = ranks.take(owners) * most + places
    sorted_lengths = lengths.take(table.order)
    step.give("Out", _sort_rows(step, step.input(), places), lengths=sorted_lengths)


_OLDEST = 14  # the opset whose Identity, If and Loop take sequences


def _find_place(step: Step) -> Value:
    if step.graph.opset < _OLDEST:
        step.refuse(f"arrays of tensors need opset {_OLDEST}")
    return step.input("I").reshape().cast(VarType.INT64)


@converts("write_to_array")
def _convert_write(step: Step) -> Value:
    """Append or replace an element; none may be skipped."""
    place, name = _find_place(step), step.op.output("Out")[0]
    if step.has_lengths():
        step.refuse("elements with a LoD have no place in an array")
    array = step.graph.values.get(name) or make_empty(step.graph, step.variable("Out"))
    grown = step.add("SequenceInsert", array, step.input(), place)
    after = place + step.scalar(1)
    replaced, _ = make_graph(step, "replaced", lambda: [step.add("SequenceErase", grown, after)])
    appended, _ = make_graph(step, "appended", lambda: [grown])
    is_there = place < step.add("SequenceLength", array)
    return step.add("If", is_there, then_branch=replaced, else_branch=appended)


@converts("read_from_array")
def _convert_read(step: Step) -> Value:
    return step.add("SequenceAt", step.input(), _find_place(step))


@converts("lod_array_length")
def _convert_length(step: Step) -> Value:
    return step.add("SequenceLength", step.input()).reshape(1)


@converts("tensor_array_to_tensor")
def _convert_to_tensor(step: Step) -> Value:
    if step.is_read("OutIndex"):
        step.refuse("OutIndex is read")
    stacked = int(step.attr("use_stack"))
    return step.add("ConcatFromSequence", step.input(), axis=step.attr("axis"), new_axis=stacked)
