"""Table look-up by integer ids, and its sparse gradients: rows with their indexes (SelectedRows)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework import Variable
from paddlelike.layers.emit import check_variable, emit
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["embedding", "get_tensor_from_selected_rows", "merge_selected_rows"]


def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: ParamAttrLike = None,
    dtype: DtypeLike = "float32",
) -> Variable:
    """Return the rows of a table of ``size`` (rows, width) for int64 ids: (..., 1) gives (..., width).

    Operator ``lookup_table``. The table is a parameter of shape ``size``.

    Parameters
    ----------
    input
        The ids, int64 (..., 1), each from 0 to rows - 1.
    size
        The shape of the table, ``[rows, width]``.
    is_sparse
        Whether the gradient holds only the rows that were looked up (SelectedRows). Then training reads and
        writes only these rows.
    is_distributed
        Whether parameter servers keep the table, each some of its rows.
    padding_idx
        The id whose result is zeros and whose row is not trained; -1 for the last row, None for no such id.
    dtype
        The type of the table's elements.

    Returns
    -------
    Variable
        (..., width) for ids (..., 1), of ``dtype``: a row of the table for each id.

    Raises
    ------
    TypeError
        ``input`` is not a variable of int64.

    >>> from paddlelike.input import data
    >>> embedding(data("word", [None, 1], "int64"), size=[50, 8]).shape
    (-1, 8)
    """
    check_variable("embedding", "input", input, (VarType.INT64,))
    return look_up_table(
        "lookup_table",
        input,
        size,
        is_sparse=is_sparse,
        is_distributed=is_distributed,
        padding_idx=normalize_padding_idx("embedding", padding_idx, size),
        param_attr=param_attr,
        dtype=dtype,
    )


def normalize_padding_idx(layer: str, padding_idx: int | None, size: Sequence[int]) -> int:
    """Return the operators' attribute for ``padding_idx``: -1 for None; negative ids are counted from the
    end.

    Raises GraphError when the table has no such row.
    """
    if padding_idx is None:
        return -1
    rows = size[0]
    if not -rows <= padding_idx < rows:
        raise GraphError(
            f"layer {layer!r}: padding_idx is {padding_idx}, expected -{rows} .. {rows - 1} "
            f"for a table of size {list(size)}"
        )
    return padding_idx if padding_idx >= 0 else rows + padding_idx


def look_up_table(
    type: str,
    ids: Variable,
    size: Sequence[int],
    *,
    is_sparse: bool,
    is_distributed: bool,
    padding_idx: int,
    param_attr: ParamAttrLike,
    dtype: DtypeLike,
) -> Variable:
    """Create the table, append the look-up operator and return its output."""
    helper = LayerHelper("embedding")
    table = helper.create_parameter(param_attr, size, dtype)
    attrs = {
        "is_sparse": is_sparse,
        "is_distributed": is_distributed,
        "remote_prefetch": is_sparse and not is_distributed,
        "padding_idx": padding_idx,
    }
    return emit(type, {"Ids": ids, "W": table}, attrs, helper=helper, dtype=dtype)


def merge_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """Return SelectedRows in which rows with the same index are added up (operator ``merge_selected_rows``).

    Parameters
    ----------
    x
        A variable that holds SelectedRows.

    Returns
    -------
    Variable
        SelectedRows of the height and dtype of ``x``, in which each index occurs once.

    Raises
    ------
    TypeError
        ``x`` is not a variable.

    >>> import paddlelike as fluid
    >>> block, rows = fluid.default_main_program().global_block(), fluid.core.VarDesc.VarType.SELECTED_ROWS
    >>> x = block.create_var(name="rows", shape=[10, 4], dtype="float32", type=rows)
    >>> fluid.layers.merge_selected_rows(x).shape
    (10, 4)
    """
    check_variable("merge_selected_rows", "x", x)
    return emit("merge_selected_rows", {"X": x}, name=name)


def get_tensor_from_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """Return the rows of SelectedRows as a tensor, without their indices (``get_tensor_from_selected_rows``).

    Parameters
    ----------
    x
        A variable that holds SelectedRows.

    Returns
    -------
    Variable
        (R, width) for R rows, in the dtype of ``x``; declared with the shape of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable.

    >>> import paddlelike as fluid
    >>> block, rows = fluid.default_main_program().global_block(), fluid.core.VarDesc.VarType.SELECTED_ROWS
    >>> x = block.create_var(name="rows", shape=[10, 4], dtype="float32", type=rows)
    >>> fluid.layers.get_tensor_from_selected_rows(x).shape
    (10, 4)
    """
    check_variable("get_tensor_from_selected_rows", "x", x)
    return emit("get_tensor_from_selected_rows", {"X": x}, name=name)
