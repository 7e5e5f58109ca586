"""Sequences: CNTK's sequence axis is a LoD with one level here."""

from __future__ import annotations

from paddlelike.core import VarType
from paddlelike.framework import Variable
from paddlelike.interop.cntk.function import CHOSEN
from paddlelike.interop.cntk.reading.step import Step, Value, reads


@reads("ReconcileDynamicAxis")
def _read_reconcile(step: Step) -> Value:
    """Repeat a value, one per sequence or one for all, for each sample or step of another value."""
    value, other = step.value(), step.value(1)
    if value.dynamic and value.sequence == other.sequence:
        return value
    if value.dynamic:
        if not other.sequence:
            step.refuse("it turns steps of sequences into samples")
        inputs = {"X": value.variable, "Y": other.variable}
        return value._replace(variable=step.emit("sequence_expand_as", inputs), sequence=True)
    return step.give(step.repeat(value, other), other, value.rank)


@reads("Where")
def _read_where(step: Step) -> Value:
    """Return the indices of the steps whose value is not 0."""
    value = step.value()
    if not value.sequence or any(dim != 1 for dim in value.shape):
        step.refuse("its condition is not one number for each step of sequences")
    chosen = step.cast(step.reshape_all(value.variable, [-1]), "bool")
    rows = step.reshape_all(step.emit("where_index", {"Condition": chosen}, dtype="int64"), [-1])
    places = step.binary("elementwise_sub", _count_rows(step, value), _find_first_rows(step, value, value))
    out = step.emit("gather", {"X": step.reshape_all(places, [-1]), "Index": rows})
    axes = step.node.attributes.get("newDynamicAxes")
    factors = [
        step.node.attributes.get(f"newSequenceAxisLength{one}Factor") for one in ("Scaling", "Additive")
    ]
    if factors == [0, 1] or (isinstance(axes, list) and not any(getattr(one, "ordered", 0) for one in axes)):
        return value._replace(variable=out, sequence=False, rank=0)
    lengths = _add_steps(step, value, step.cast(chosen, "float32"))
    return value._replace(variable=step.emit("lod_reset", {"X": out, "Y": step.add_up(lengths)}), rank=0)


def _find_ones(step: Step, value: Value) -> Variable:
    """Return a 1 for each step of the sequences."""
    row = step.reduce("Sum", step.reshape(value, [-1]), 1, keep=False)
    return step.unary("fill_any_like", step.cast(row, "float32"), value=1.0, dtype=-1)


def _add_steps(step: Step, value: Value, numbers: Variable) -> Variable:
    """Return the sums of numbers over the steps of each sequence, int64."""
    column = step.emit("lod_reset", {"X": step.reshape_all(numbers, [-1, 1]), "Y": value.variable})
    return step.reshape_all(step.cast(step.pool_sequence(column, "SUM"), "int64"), [-1])


def _count_rows(step: Step, value: Value) -> Variable:
    """Return the index of each row as a column of float32, which is exact up to 16 million rows."""
    counts = step.unary("cumsum", _find_ones(step, value), axis=0, exclusive=True, reverse=False)
    return step.emit("lod_reset", {"X": step.reshape_all(counts, [-1, 1]), "Y": value.variable})


def _find_first_rows(step: Step, value: Value, places: Value) -> Variable:
    """Return the row at which each sequence of ``value`` begins, repeated for each of ``places``, as a
    column.
    """
    first = step.pool_sequence(_count_rows(step, value), "FIRST")
    if not places.sequence:
        return first
    return step.emit("sequence_expand_as", {"X": first, "Y": places.variable})


@reads("PackedIndex")
def _read_packed_index(step: Step) -> Value:
    """Return the row indexes for positions in sequences."""
    value, places = step.value(), step.value(1)
    if not value.sequence or not places.dynamic or places.rank:
        step.refuse("it has no positions in sequences")
    column = step.reshape(places, [1])
    rows = step.binary("elementwise_add", _find_first_rows(step, value, places), column)
    out = step.emit("lod_reset", {"X": rows, "Y": places.variable}) if places.sequence else rows
    return step.give(step.reshape_all(out, [-1]), places)


@reads("GatherPacked")
def _read_gather_packed(step: Step) -> Value:
    """Select steps of each sequence; a result of only the first or last steps is not a sequence."""
    value, which = step.value(), step.node.attributes.get(CHOSEN)
    if not value.sequence:
        step.refuse("it chooses steps of an input that is not a sequence")
    if which is not None:
        return value._replace(variable=step.pool_sequence(value.variable, which), sequence=False)
    rows = step.value(1)
    out = step.emit("gather", {"X": value.variable, "Index": step.cast(rows.variable, "int64")})
    if rows.sequence:
        out = step.emit("lod_reset", {"X": out, "Y": rows.variable})
    return rows._replace(variable=out, rank=value.rank)


@reads("ScatterPacked")
def _read_scatter_packed(step: Step) -> Value:
    """Scatter steps to their rows, zeros elsewhere, in sequences of the third input's lengths."""
    value, rows, like = (step.value(index) for index in range(3))
    if not value.dynamic or not like.sequence or rows.rank or -1 in value.shape:
        step.refuse("it has no rows of sequences")
    attrs = {"shape": [*value.shape] or [1], "value": 0.0, "dtype": int(value.variable.dtype)}
    zero = value._replace(
        variable=step.emit("fill_constant", {}, attrs, dtype=value.variable.dtype), dynamic=False
    )
    inputs = {
        "X": step.repeat(zero, like),
        "Ids": step.cast(rows.variable, "int64"),
        "Updates": value.variable,
    }
    out = step.emit("scatter", inputs, {"overwrite": True})
    return like._replace(variable=step.emit("lod_reset", {"X": out, "Y": like.variable}), rank=value.rank)


@reads("ToSequence", "ToSequenceLike")
def _read_to_sequence(step: Step) -> Value:
    """Turn the first static dim into steps: all, a given number, or as many as another sequence has."""
    value = step.value()
    if not value.dynamic or value.sequence or value.rank < 1 or value.shape[0] < 1:
        step.refuse("its input has no dim of steps")
    if len(step.values) == 1:
        lengths = step.fill_rows(value, value.shape[0])
    elif step.kind == "ToSequenceLike":
        lengths = _add_steps(step, step.value(1), _find_ones(step, step.value(1)))
    else:
        lengths = step.reshape_all(step.cast(step.value(1).variable, "int64"), [-1])
    out = step.emit("sequence_unpad", {"X": value.variable, "Length": lengths})
    return Value(out, dynamic=True, sequence=True, rank=value.rank - 1)


@reads("UnpackSequence")
def _read_unpack(step: Step) -> Value | tuple[Value, ...]:
    """Turn the steps into a static dim, padded to the longest sequence; the mask has a 1 for each step."""
    value = step.value()
    if not value.sequence:
        step.refuse("its input is not a sequence")
    value = value._replace(padding=step.attr("sequenceUnpackPaddingValue", float, 0.0))
    if step.attr("sequenceUnpackSuppressMaskOutput", bool, False):
        return value
    lengths = step.pad_steps(value)[1]
    attrs = {"maxlen": -1, "out_dtype": int(VarType.FP32)}
    mask = step.emit("sequence_mask", {"X": lengths}, attrs, slot="Y", dtype="float32")
    return value, Value(mask, dynamic=True, sequence=False, rank=1)
