"""``fluid.data``, ``fluid.embedding`` and ``fluid.one_hot``: inputs, and what is first made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.guards import default_main_program
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import INTEGERS, check_variable
from paddlelike.layers.emit import emit
from paddlelike.layers.io.inputs import check_data
from paddlelike.layers.nn.lookup import one_hot_inputs, padding_row, table_lookup

__all__ = ["data", "embedding", "one_hot"]


def data(name: str, shape: Sequence[int | None], dtype: Any = "float32", lod_level: int = 0) -> Variable:
    """A variable that is fed at every run.

    A dim of None or -1 is known only then; the shape and dtype of what is fed are checked. Raises
    ValueError when the name is taken by a variable of another shape or dtype.

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
        need_check_feed=True,
    )  # fmt: skip


def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Variable:
    """The rows of a table of ``size`` (rows, width) at integer ids (operator ``lookup_table_v2``).

    Ids of shape (N, ...) give (N, ..., width). ``padding_idx`` gives zeros; -1 is the last row. With
    ``is_sparse`` the gradient holds only the rows that were used.

    >>> embedding(data("words", [None, 4], "int64"), size=[50, 8]).shape
    (-1, 4, 8)
    """
    check_variable("embedding", "input", input, (VarType.INT64,))
    return table_lookup(
        "lookup_table_v2",
        input,
        size,
        is_sparse=is_sparse,
        is_distributed=is_distributed,
        padding_idx=padding_row("embedding", padding_idx, size),
        param_attr=param_attr,
        dtype=dtype,
    )


def one_hot(input: Variable, depth: int | Variable, allow_out_of_range: bool = False) -> Variable:
    """A one at each id, zeros elsewhere; ids of shape (N, ...) give (N, ..., depth), float32.

    Operator ``one_hot_v2``. An id out of range fails, or with ``allow_out_of_range`` gives zeros.
    """
    check_variable("one_hot", "input", input, INTEGERS)
    inputs, attrs = one_hot_inputs(input, depth, allow_out_of_range)
    return emit("one_hot_v2", inputs, attrs, dtype="float32")
