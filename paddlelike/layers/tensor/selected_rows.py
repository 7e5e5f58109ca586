"""Sparse gradients as layers see them: rows with their numbers (SelectedRows)."""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variable
from paddlelike.layers.emit import emit

__all__ = ["get_tensor_from_selected_rows", "merge_selected_rows"]


def merge_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """SelectedRows with rows of one number added up (operator ``merge_selected_rows``)."""
    check_variable("merge_selected_rows", "x", x)
    return emit("merge_selected_rows", {"X": x}, name=name)


def get_tensor_from_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """The rows of SelectedRows as a tensor, without their numbers (``get_tensor_from_selected_rows``)."""
    check_variable("get_tensor_from_selected_rows", "x", x)
    return emit("get_tensor_from_selected_rows", {"X": x}, name=name)
