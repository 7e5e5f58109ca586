"""``fluid.data``, ``fluid.embedding`` and ``fluid.one_hot``: inputs and their first layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paddlelike.core import VarType
from paddlelike.framework import Variable, default_main_program
from paddlelike.layers.emit import INTEGERS, check_variable, emit
from paddlelike.layers.io.inputs import check_data
from paddlelike.layers.nn.embedding import look_up_table, normalize_padding_idx
from paddlelike.layers.tensor.gather import prepare_one_hot

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["data", "embedding", "one_hot"]


def data(
    name: str, shape: Sequence[int | None], dtype: DtypeLike = "float32", lod_level: int = 0
) -> Variable:
    """Return a variable whose value is fed in every run.

    A dim of None or -1 may differ from run to run; shape and dtype of a feed are checked.

    Parameters
    ----------
    name
        The name by which it is fed.
    shape
        The shape of a batch; None or -1 where a dim may differ from run to run.
    dtype
        The type of the elements.
    lod_level
        The number of levels of sequences that the rows have.

    Returns
    -------
    Variable
        Of ``shape`` (None becomes -1) and ``dtype``; gradients end there.

    Raises
    ------
    TypeError
        ``name`` or ``shape`` is invalid.
    GraphError
        The name is taken by a variable of another shape or dtype.

    >>> data("image", [None, 1, 28, 28]).shape
    (-1, 1, 28, 28)
    """
    dims = check_data("data", name, shape)
    return default_main_program().global_block().create_var(
        name=name,
        shape=dims,
        dtype=dtype,
        type=VarType.LOD_TENSOR,
        lod_level=lod_level,
        stop_gradient=True,
        is_data=True,
        persistable=False,
        need_check_feed=True,
    )  # fmt: skip


def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: ParamAttrLike = None,
    dtype: DtypeLike = "float32",
) -> Variable:
    """Return the rows of a table of ``size`` (rows, width) at integer ids (operator ``lookup_table_v2``).

    Ids of shape (N, ...) give (N, ..., width). The row of ``padding_idx`` is zeros; -1 is the last row. With
    ``is_sparse`` the gradient holds only the rows that were used.

    Parameters
    ----------
    input
        The ids, int64 or int32, of any shape.
    size
        The shape of the table, ``[rows, width]``.
    is_sparse
        Whether the gradient holds only the rows that were looked up (SelectedRows).
    is_distributed
        Whether parameter servers keep the table, each some of its rows.
    padding_idx
        The id whose result is zeros and whose row is not trained; -1 for the last row, None for no such id.
    param_attr
        The table: a :class:`~paddlelike.ParamAttr`, a name, or an initializer; None for the defaults.
    dtype
        The type of the table's elements.

    Returns
    -------
    Variable
        (N, ..., width) for ids (N, ...), of ``dtype``: a row of the table for each id.

    Raises
    ------
    TypeError
        ``input`` is not a variable of integers.
    GraphError
        The table has no row ``padding_idx``.

    >>> embedding(data("words", [None, 4], "int64"), size=[50, 8]).shape
    (-1, 4, 8)
    """
    check_variable("embedding", "input", input, (VarType.INT64,))
    return look_up_table(
        "lookup_table_v2",
        input,
        size,
        is_sparse=is_sparse,
        is_distributed=is_distributed,
        padding_idx=normalize_padding_idx("embedding", padding_idx, size),
        param_attr=param_attr,
        dtype=dtype,
    )


def one_hot(input: Variable, depth: int | Variable, allow_out_of_range: bool = False) -> Variable:
    """Return one-hot rows, 1 at the id and 0 elsewhere: ids (N, ...) give (N, ..., depth), float32.

    Operator ``one_hot_v2``. An id out of range is an error, or with ``allow_out_of_range`` gives zeros.

    Parameters
    ----------
    input
        Ids, int64 or int32, of any shape.
    depth
        The number of classes.
    allow_out_of_range
        Whether an id out of range gives zeros instead of an error.

    Returns
    -------
    Variable
        float32 (N, ..., depth) for ids (N, ...).

    Raises
    ------
    TypeError
        ``input`` is not a variable of integers.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1], [0]], "int64"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.one_hot(x, depth=3)])
    >>> print(out)
    [[0. 1. 0.]
     [1. 0. 0.]]
    """
    check_variable("one_hot", "input", input, INTEGERS)
    inputs, attrs = prepare_one_hot(input, depth, allow_out_of_range)
    return emit("one_hot_v2", inputs, attrs, dtype="float32")
