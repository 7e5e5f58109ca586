"""Arrays of tensors, one for each step of a loop; rank tables of sequences."""

from __future__ import annotations

from typing import Any

from paddlelike import unique_name
from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variable
from paddlelike.layers.emit import emit, emit_all
from paddlelike.layers.helper import LayerHelper

__all__ = [
    "array_length",
    "array_read",
    "array_to_lod_tensor",
    "array_write",
    "create_array",
    "lod_rank_table",
    "lod_tensor_to_array",
    "max_sequence_len",
    "reorder_lod_tensor_by_rank",
    "shrink_memory",
    "tensor_array_to_tensor",
]

_INDEX = (VarType.INT64,)


def create_array(dtype: Any) -> Variable:
    """An empty array of tensors.

    >>> create_array("float32").type.name
    'LOD_TENSOR_ARRAY'
    """
    return _new_array(LayerHelper("array"), dtype)


def _new_array(helper: LayerHelper, dtype: Any) -> Variable:
    return helper.create_variable(name=f"{helper.name}.out", type=VarType.LOD_TENSOR_ARRAY, dtype=dtype)


def array_write(x: Variable, i: Variable, array: Variable | None = None) -> Variable:
    """Set element ``i`` of ``array``, a new one if None, to ``x`` (operator ``write_to_array``).

    ``i`` is int64 of shape ``[1]``. Returns the array.
    """
    check_variable("array_write", "x", x)
    check_variable("array_write", "i", i, _INDEX)
    helper = LayerHelper("array_write")
    array = _new_array(helper, x.dtype) if array is None else _checked("array_write", array)
    helper.append_op(type="write_to_array", inputs={"X": [x], "I": [i]}, outputs={"Out": [array]})
    return array


def array_read(array: Variable, i: Variable) -> Variable:
    """Element ``i`` of ``array`` (operator ``read_from_array``).

    >>> from paddlelike.layers.tensor.constants import fill_constant
    >>> i = fill_constant([1], "int64", 0)
    >>> first = array_read(array_write(fill_constant([2], "float32", 7.0), i), i)
    """
    check_variable("array_read", "i", i, _INDEX)
    inputs = {"X": [_checked("array_read", array)], "I": [i]}
    return emit("read_from_array", inputs, layer="array_read", dtype=array.dtype)


def array_length(array: Variable) -> Variable:
    """The number of elements, int64 of shape ``[1]`` (operator ``lod_array_length``)."""
    inputs = {"X": [_checked("array_length", array)]}
    return emit("lod_array_length", inputs, layer="array_length", dtype="int64", constant=True)


def tensor_array_to_tensor(
    input: Variable, axis: int = 1, name: str | None = None, use_stack: bool = False
) -> tuple[Variable, Variable]:
    """The elements of an array joined along ``axis``, or stacked on a new one; and the size of each.

    Operator ``tensor_array_to_tensor``.
    """
    out, index = emit_all(
        "tensor_array_to_tensor",
        {"X": _checked("tensor_array_to_tensor", input)},
        {"Out": input.dtype, "OutIndex": "int32"},
        {"axis": axis, "use_stack": use_stack},
        name=name,
    )
    return out, index


def _checked(layer: str, array: Any) -> Variable:
    variable = check_variable(layer, "array", array)
    if variable.type != VarType.LOD_TENSOR_ARRAY:
        raise TypeError(
            f"layer {layer!r}: variable {variable.name!r} is a {variable.type.name}, not an array\n"
            "  hint: layers.create_array makes one"
        )
    return variable


# Sequences by length


def lod_rank_table(x: Variable, level: int = 0) -> Variable:
    """The sequences of ``x`` sorted by length, the longest first (operator ``lod_rank_table``)."""
    check_variable("lod_rank_table", "x", x)
    helper = LayerHelper("lod_rank_table")
    table = helper.create_variable(name=unique_name.generate("lod_rank_table"), type=VarType.LOD_RANK_TABLE)
    helper.append_op(type="lod_rank_table", inputs={"X": x}, outputs={"Out": table}, attrs={"level": level})
    return table


def max_sequence_len(rank_table: Variable) -> Variable:
    """The length of the longest sequence, int64 of shape ``[1]`` (operator ``max_sequence_len``)."""
    return emit("max_sequence_len", {"RankTable": rank_table}, layer="max_seqence_len", dtype="int64")


def lod_tensor_to_array(x: Variable, table: Variable) -> Variable:
    """An array whose element ``t`` holds step ``t`` of every sequence (operator ``lod_tensor_to_array``)."""
    check_variable("lod_tensor_to_array", "x", x)
    helper = LayerHelper("lod_tensor_to_array")
    array = helper.create_variable(
        name=unique_name.generate("lod_tensor_to_array"), type=VarType.LOD_TENSOR_ARRAY, dtype=x.dtype
    )
    inputs = {"X": x, "RankTable": table}
    helper.append_op(type="lod_tensor_to_array", inputs=inputs, outputs={"Out": array})
    return array


def array_to_lod_tensor(x: Variable, table: Variable) -> Variable:
    """The sequences whose steps an array holds (operator ``array_to_lod_tensor``)."""
    return emit("array_to_lod_tensor", {"X": _checked("array_to_lod_tensor", x), "RankTable": table})


def reorder_lod_tensor_by_rank(x: Variable, rank_table: Variable) -> Variable:
    """The sequences of ``x`` in the order of the table (operator ``reorder_lod_tensor_by_rank``)."""
    check_variable("reorder_lod_tensor_by_rank", "x", x)
    check_variable("reorder_lod_tensor_by_rank", "rank_table", rank_table)
    inputs = {"X": [x], "RankTable": [rank_table]}
    return emit("reorder_lod_tensor_by_rank", inputs)


def shrink_memory(x: Variable, i: Variable, table: Variable) -> Variable:
    """The rows of ``x`` of the sequences that have a step ``i`` (operator ``shrink_rnn_memory``)."""
    inputs = {"X": [x], "I": [i], "RankTable": [table]}
    return emit("shrink_rnn_memory", inputs, layer="shrink_memory")
