"""Rank tables: sequences sorted by length, and their steps as arrays of tensors.

Parameters
----------
x
    Sequences with LoD.
rank_table
    A table of :func:`lod_rank_table`.
"""

from __future__ import annotations

from paddlelike import unique_name
from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_array, check_variable
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper


def lod_rank_table(x: Variable, level: int = 0) -> Variable:
    """Return the table of the sequences of ``x``, the longest first (operator ``lod_rank_table``).

    Raises TypeError unless ``x`` is a variable.
    """
    check_variable("lod_rank_table", "x", x)
    helper = LayerHelper("lod_rank_table")
    table = helper.create_variable(name=unique_name.generate("lod_rank_table"), type=VarType.LOD_RANK_TABLE)
    helper.append_op(type="lod_rank_table", inputs={"X": x}, outputs={"Out": table}, attrs={"level": level})
    return table


def max_sequence_len(rank_table: Variable) -> Variable:
    """Return the length of the longest sequence, int64 of shape ``[1]`` (operator ``max_sequence_len``)."""
    return emit("max_sequence_len", {"RankTable": rank_table}, layer="max_seqence_len", dtype="int64")


def lod_tensor_to_array(x: Variable, table: Variable) -> Variable:
    """Return an array whose element ``t`` is step ``t`` of every sequence (operator ``lod_tensor_to_array``).

    Raises TypeError unless ``x`` is a variable.
    """
    check_variable("lod_tensor_to_array", "x", x)
    helper = LayerHelper("lod_tensor_to_array")
    array = helper.create_variable(
        name=unique_name.generate("lod_tensor_to_array"), type=VarType.LOD_TENSOR_ARRAY, dtype=x.dtype
    )
    inputs = {"X": x, "RankTable": table}
    helper.append_op(type="lod_tensor_to_array", inputs=inputs, outputs={"Out": array})
    return array


def array_to_lod_tensor(x: Variable, table: Variable) -> Variable:
    """Return the sequences whose steps an array holds (operator ``array_to_lod_tensor``).

    Raises TypeError unless ``x`` is an array.
    """
    return emit("array_to_lod_tensor", {"X": check_array("array_to_lod_tensor", x), "RankTable": table})


def shrink_memory(x: Variable, i: Variable, table: Variable) -> Variable:
    """Return the rows of ``x`` of the sequences that have a step ``i`` (operator ``shrink_rnn_memory``)."""
    inputs = {"X": [x], "I": [i], "RankTable": [table]}
    return emit("shrink_rnn_memory", inputs, layer="shrink_memory")


def reorder_lod_tensor_by_rank(x: Variable, rank_table: Variable) -> Variable:
    """Return the sequences of ``x`` in the order of the table (operator ``reorder_lod_tensor_by_rank``).

    Raises TypeError unless ``x`` and ``rank_table`` are variables.

    >>> import paddlelike as fluid
    >>> from paddlelike.layers.control.rank_table import lod_rank_table
    >>> x = fluid.data("x", [None, 4], lod_level=1)
    >>> fluid.layers.reorder_lod_tensor_by_rank(x, lod_rank_table(x)).shape
    (-1, 4)
    """
    check_variable("reorder_lod_tensor_by_rank", "x", x)
    check_variable("reorder_lod_tensor_by_rank", "rank_table", rank_table)
    inputs = {"X": [x], "RankTable": [rank_table]}
    return emit("reorder_lod_tensor_by_rank", inputs)
