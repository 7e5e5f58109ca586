"""The bytes of variables' files, made of the arrays' own memory, and what a manifest says of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from paddlelike.core.dtypes import VarType, convert_dtype
from paddlelike.core.scope import Scope, ScopeVariable
from paddlelike.core.tensor import LoDTensor, SelectedRows
from paddlelike.errors import NotInitializedError, SaveError
from paddlelike.formats.paddle.directory import encode_value
from paddlelike.formats.sources import Buffer
from paddlelike.io.incremental import State, array_of, state_of
from paddlelike.io.report import Moved

__all__ = ["Item", "check_value", "combined_facts", "combined_file", "facts_of", "item_of"]

Array = np.ndarray[Any, Any]
Value = LoDTensor | SelectedRows


class Item(NamedTuple):
    """A variable that is being saved, and the value it holds."""

    name: str
    holder: ScopeVariable
    value: Value
    state: State

    @property
    def array(self) -> Array:
        """The elements, in the scope's memory or a copy of it."""
        array: Array = array_of(self.value)
        return array

    @property
    def moved(self) -> Moved:
        """The line of a report."""
        array = self.array
        return Moved(array.shape, _numpy_name(array.dtype), array.nbytes)

    def copied(self, array: Array) -> Item:
        """The same with another array of the same elements."""
        value = self.value
        if isinstance(value, SelectedRows):
            return self._replace(value=SelectedRows(value.row_array.copy(), value.height(), array))
        return self._replace(value=LoDTensor(array, value.lod()))


def item_of(name: str, scope: Scope) -> Item:
    """Return the variable of that name with its value in ``scope``.

    Raises
    ------
    NotInitializedError
        It holds none.
    SaveError
        It holds something that is no tensor.
    """
    holder = scope.find_var(name)
    value = None if holder is None else holder.value
    if type(value) is not LoDTensor or value._array is None:  # of thousands of variables nearly none
        value = check_value(name, value)
    assert holder is not None
    return Item(name, holder, value, state_of(holder))


def check_value(name: str, value: Any) -> Value:
    """Return the value of a variable if it can be saved.

    Raises
    ------
    NotInitializedError
        There is no value.
    SaveError
        The value is no tensor.
    """
    if value is None or (isinstance(value, Value) and array_of(value) is None):
        raise NotInitializedError(
            f"variable {name!r} cannot be saved: it holds no value",
            hint="run the startup program, or load the values, in this scope first",
        )
    if not isinstance(value, Value):
        raise SaveError(f"variable {name!r} cannot be saved: it holds a {type(value).__name__}, not a tensor")
    return value


def facts_of(item: Item) -> dict[str, Any]:
    """What the manifest says of a variable's file."""
    array, value = item.array, item.value
    facts: dict[str, Any] = {
        "variable": item.name,
        "kind": "lod_tensor",
        "dtype": _type_name(array.dtype),
        "shape": list(array.shape),
        "lod": [],
    }
    if isinstance(value, SelectedRows):
        facts |= {"kind": "selected_rows", "height": value.height()}
    elif value._lod:
        facts["lod"] = value.lod()
    return facts


def combined_file(items: Sequence[Item]) -> list[Buffer]:
    """One file of all values, in their order.

    Raises
    ------
    SaveError
        Some are SelectedRows, which it cannot hold.
    """
    rows = [item.name for item in items if isinstance(item.value, SelectedRows)]
    if rows:
        raise SaveError(
            f"{rows} hold SelectedRows, which a combined file cannot hold",
            hint="save without filename=, one file for each variable",
        )
    return [buffer for item in items for buffer in encode_value(item.value)]


def combined_facts(items: Sequence[Item]) -> dict[str, Any]:
    """What the manifest says of a combined file: the variables in its order."""
    variables = [[item.name, _type_name(item.array.dtype), list(item.array.shape)] for item in items]
    return {"kind": "combined", "variables": variables}


@functools.lru_cache(64)
def _numpy_name(dtype: np.dtype[Any]) -> str:
    return dtype.name


@functools.lru_cache(64)
def _type_name(dtype: np.dtype[Any]) -> str:
    return VarType(convert_dtype(dtype)).name
