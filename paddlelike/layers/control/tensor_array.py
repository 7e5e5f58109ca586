"""Arrays of tensors, and sequences sorted by length.

Parameters
----------
array
    A LoDTensorArray, as :func:`create_array` returns.
x
    Sequences with LoD.
rank_table
    A table of :func:`lod_rank_table`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike import unique_name
from paddlelike.core import VarType
from paddlelike.framework import Variable
from paddlelike.layers.emit import check_array, check_variable, emit, emit_all
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike

__all__ = ["array_length", "array_read", "array_write", "create_array", "tensor_array_to_tensor"]


_INDEX = (VarType.INT64,)


def create_array(dtype: DtypeLike) -> Variable:
    """Return an empty array of tensors of ``dtype``; :func:`array_write` fills it.

    It appends no operator. An element may have any shape.

    Returns
    -------
    Variable
        A variable of type LOD_TENSOR_ARRAY, of ``dtype``; its elements may have any shape.

    Raises
    ------
    TypeError
        ``dtype`` is not a type of elements.

    >>> import paddlelike as fluid
    >>> array = fluid.layers.create_array("float32")
    >>> fluid.Executor().run(fetch_list=[fluid.layers.array_length(array)])
    [array([0])]
    """
    return _new_array(LayerHelper("array"), dtype)


def _new_array(helper: LayerHelper, dtype: DtypeLike) -> Variable:
    return helper.create_variable(name=f"{helper.name}.out", type=VarType.LOD_TENSOR_ARRAY, dtype=dtype)


def array_write(x: Variable, i: Variable, array: Variable | None = None) -> Variable:
    """Set element ``i`` of ``array`` (a new array if None) to ``x`` (operator ``write_to_array``).

    ``i`` is int64 of shape ``[1]``. Returns the array.

    Parameters
    ----------
    array
        A LoDTensorArray, as :func:`create_array` returns; None for a new one.
    x
        The value to write.
    i
        The index, int64 of shape [1].

    Returns
    -------
    Variable
        The array: a variable of type LOD_TENSOR_ARRAY, of the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable, or ``i`` is not a variable of int64.

    >>> import paddlelike as fluid
    >>> i = fluid.layers.fill_constant([1], "int64", 0)
    >>> array = fluid.layers.array_write(fluid.layers.ones([2], "float32"), i)
    >>> fluid.Executor().run(fetch_list=[fluid.layers.array_read(array, i)])
    [array([1., 1.], dtype=float32)]
    """
    check_variable("array_write", "x", x)
    check_variable("array_write", "i", i, _INDEX)
    helper = LayerHelper("array_write")
    array = _new_array(helper, x.dtype) if array is None else check_array("array_write", array)
    helper.append_op(type="write_to_array", inputs={"X": [x], "I": [i]}, outputs={"Out": [array]})
    return array


def array_read(array: Variable, i: Variable) -> Variable:
    """Return element ``i`` of ``array`` (operator ``read_from_array``).

    The result has the shape of the element.

    Parameters
    ----------
    i
        The index, int64 of shape [1].

    Returns
    -------
    Variable
        In the shape and dtype of the element.

    Raises
    ------
    TypeError
        ``i`` is not a variable of int64.

    >>> from paddlelike.layers.tensor.constant import fill_constant
    >>> i = fill_constant([1], "int64", 0)
    >>> first = array_read(array_write(fill_constant([2], "float32", 7.0), i), i)
    """
    check_variable("array_read", "i", i, _INDEX)
    inputs = {"X": [check_array("array_read", array)], "I": [i]}
    return emit("read_from_array", inputs, layer="array_read", dtype=array.dtype)


def array_length(array: Variable) -> Variable:
    """Return the number of elements, int64 of shape ``[1]`` (operator ``lod_array_length``).

    Returns
    -------
    Variable
        int64 (1,).

    Raises
    ------
    TypeError
        ``array`` is not an array.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> array = fluid.layers.array_write(x, fluid.layers.fill_constant([1], "int64", 0))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.array_length(array)])
    >>> print(out)
    [1]
    """
    inputs = {"X": [check_array("array_length", array)]}
    return emit("lod_array_length", inputs, layer="array_length", dtype="int64", constant=True)


def tensor_array_to_tensor(
    input: Variable, axis: int = 1, name: str | None = None, use_stack: bool = False
) -> tuple[Variable, Variable]:
    """Return the elements of an array, concatenated or stacked along ``axis``, and the size of each.

    Operator ``tensor_array_to_tensor``.

    Parameters
    ----------
    input
        A LoDTensorArray of tensors that can be joined.
    axis
        The dim along which elements are joined, or stacked.
    use_stack
        Whether elements are stacked along a new dim.

    Returns
    -------
    out : Variable
        The elements joined along ``axis``, in their dtype.
    sizes : Variable
        int32 (elements,): the length of each element along ``axis``.

    Raises
    ------
    TypeError
        ``input`` is not an array.

    >>> import paddlelike as fluid
    >>> layers = fluid.layers
    >>> first, second = (layers.fill_constant([1], "int64", i) for i in range(2))
    >>> array = layers.array_write(layers.fill_constant([2, 3], "float32", 1.0), first)
    >>> _ = layers.array_write(layers.fill_constant([2, 4], "float32", 2.0), second, array)
    >>> out, sizes = layers.tensor_array_to_tensor(array, axis=1)
    >>> [one.shape for one in fluid.Executor().run(fetch_list=[out, sizes])]
    [(2, 7), (2,)]
    """
    inputs = {"X": check_array("tensor_array_to_tensor", input)}
    outputs = {"Out": input.dtype, "OutIndex": "int32"}
    attrs = {"axis": axis, "use_stack": use_stack}
    out, index = emit_all("tensor_array_to_tensor", inputs, outputs, attrs, name=name)
    return out, index


def lod_rank_table(x: Variable, level: int = 0) -> Variable:
    """Return a table of the sequences of ``x``, the longest first (operator ``lod_rank_table``).

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
    """Return the sequences whose steps are in an array (operator ``array_to_lod_tensor``).

    Raises TypeError unless ``x`` is an array.
    """
    return emit("array_to_lod_tensor", {"X": check_array("array_to_lod_tensor", x), "RankTable": table})


def shrink_memory(x: Variable, i: Variable, table: Variable) -> Variable:
    """Return the rows of ``x`` for the sequences that have a step ``i`` (operator ``shrink_rnn_memory``)."""
    inputs = {"X": [x], "I": [i], "RankTable": [table]}
    return emit("shrink_rnn_memory", inputs, layer="shrink_memory")


def reorder_lod_tensor_by_rank(x: Variable, rank_table: Variable) -> Variable:
    """Return the sequences of ``x`` in the order of the table (operator ``reorder_lod_tensor_by_rank``).

    Returns
    -------
    Variable
        The sequences of ``x`` in the order of the table, in the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` or ``rank_table`` is not a variable.

    >>> import paddlelike as fluid
    >>> from paddlelike.layers.control.tensor_array import lod_rank_table
    >>> x = fluid.data("x", [None, 4], lod_level=1)
    >>> fluid.layers.reorder_lod_tensor_by_rank(x, lod_rank_table(x)).shape
    (-1, 4)
    """
    check_variable("reorder_lod_tensor_by_rank", "x", x)
    check_variable("reorder_lod_tensor_by_rank", "rank_table", rank_table)
    inputs = {"X": [x], "RankTable": [rank_table]}
    return emit("reorder_lod_tensor_by_rank", inputs)
