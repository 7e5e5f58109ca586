"""Layers on sparse gradients: rows with their indices (SelectedRows)."""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variable
from paddlelike.layers.emit import emit

__all__ = ["get_tensor_from_selected_rows", "merge_selected_rows"]


def merge_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """Return SelectedRows with rows of equal index added (operator ``merge_selected_rows``).

    Raises TypeError unless ``x`` is a variable.

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

    Raises TypeError unless ``x`` is a variable.

    >>> import paddlelike as fluid
    >>> block, rows = fluid.default_main_program().global_block(), fluid.core.VarDesc.VarType.SELECTED_ROWS
    >>> x = block.create_var(name="rows", shape=[10, 4], dtype="float32", type=rows)
    >>> fluid.layers.get_tensor_from_selected_rows(x).shape
    (10, 4)
    """
    check_variable("get_tensor_from_selected_rows", "x", x)
    return emit("get_tensor_from_selected_rows", {"X": x}, name=name)
