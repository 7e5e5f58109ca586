"""Table look-up by integer ids: embedding and one-hot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import INTEGERS, check_variable
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.core.typing import DtypeLike
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["embedding", "one_hot"]


def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: ParamAttrLike = None,
    dtype: DtypeLike = "float32",
) -> Variable:
    """Return the rows of a table of ``size`` (rows, width) at int64 ids of shape (..., 1): (..., width).

    Operator ``lookup_table``. The row of ``padding_idx`` is zeros; -1 is the last row. With ``is_sparse``
    the gradient holds only the rows that were used; ``is_distributed`` keeps the table on servers. Raises
    TypeError unless ``input`` is a variable of a supported dtype.

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


def one_hot(input: Variable, depth: int | Variable, allow_out_of_range: bool = False) -> Variable:
    """Return a 1 at each id, else zeros; ids of shape (..., 1) give (..., depth), float32.

    Operator ``one_hot``. An id out of range is an error, or with ``allow_out_of_range`` gives zeros. Raises
    TypeError unless ``input`` is a variable of a supported dtype.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> ids = fluid.layers.assign(np.array([[2], [0]], "int64"))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.one_hot(ids, depth=3)])
    [array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)]
    """
    check_variable("one_hot", "input", input, INTEGERS)
    inputs, attrs = prepare_one_hot(input, depth, allow_out_of_range)
    return emit("one_hot", inputs, attrs, dtype="float32", constant=True)


def normalize_padding_idx(layer: str, padding_idx: int | None, size: Sequence[int]) -> int:
    """Return the operators' attribute for ``padding_idx``: -1 for None, negative ones counted from the end.

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


def prepare_one_hot(
    ids: Variable, depth: int | Variable, allow_out_of_range: bool
) -> tuple[dict[str, Variable], dict[str, Any]]:
    """Return the inputs and attributes of both one-hot operators; a depth may be a variable."""
    attrs: dict[str, Any] = {"allow_out_of_range": allow_out_of_range}
    if isinstance(depth, Variable):
        depth.stop_gradient = True
        return {"X": ids, "depth_tensor": depth}, attrs
    return {"X": ids}, {"depth": int(depth), **attrs}
