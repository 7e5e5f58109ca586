"""The contents of variables' files, as views of the arrays, and their entries in the manifest."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from paddlelike.core import (
    Array,
    LoDTensor,
    Scope,
    ScopeVariable,
    SelectedRows,
    VarType,
    convert_dtype,
    global_scope,
)
from paddlelike.errors import NotInitializedError, SaveError, StorageError
from paddlelike.formats.paddle.directory import encode_value, make_facts
from paddlelike.formats.sources import Buffer
from paddlelike.framework import Program, Variable
from paddlelike.framework.hints import explain_no_value, find_empty
from paddlelike.io.incremental import State, get_array
from paddlelike.io.report import Moved, make_moved

Value = LoDTensor | SelectedRows


class Item(NamedTuple):
    """A variable that is being saved, and its value."""

    name: str
    holder: ScopeVariable
    value: Value
    state: State

    @property
    def array(self) -> Array:
        """The elements, in the scope's memory."""
        array: Array = get_array(self.value)
        return array

    @property
    def moved(self) -> Moved:
        """The entry of a report."""
        array = self.array
        return make_moved(array.dtype, array.shape)


def get_item(name: str, scope: Scope) -> Item:
    """Return the variable called ``name`` with its value in ``scope``.

    Raises
    ------
    NotInitializedError
        It holds no value.
    SaveError
        It holds something other than a tensor.
    """
    holder = scope.find_var(name)
    version = 0 if holder is None else holder.version  # read before the value, see get_state()
    value = None if holder is None else holder.value
    borrowed = value.borrow() if isinstance(value, LoDTensor) else value
    if type(borrowed) is not LoDTensor or borrowed._array is None:  # rare
        borrowed = check_value(name, borrowed)
    assert holder is not None
    kept = get_array(borrowed)
    if isinstance(value, LoDTensor) and borrowed is not value:
        on_device = value.find_on_device()  # None after touch()
        kept = kept if on_device is None else on_device
    return Item(name, holder, borrowed, State(version, ref(kept)))


def check_value(name: str, value: object) -> Value:
    """Return the value of a variable if it can be saved; for a table, all rows.

    Raises
    ------
    NotInitializedError
        There is no value.
    SaveError
        The value is not a tensor.
    """
    if value is None or (isinstance(value, Value) and get_array(value) is None):
        raise NotInitializedError(
            f"variable {name!r} cannot be saved: it holds no value",
            hint="a gradient lives for one run: fetch it, or add `and v.persistable` to the predicate"
            if "@GRAD" in name
            else "run the startup program, or load the values, in this scope first",
        )
    if not isinstance(value, Value):
        raise SaveError(f"variable {name!r} cannot be saved: it holds a {type(value).__name__}, not a tensor")
    if not isinstance(value, SelectedRows):
        return value
    try:
        return value.gather()
    except StorageError as error:
        raise SaveError(f"variable {name!r} cannot be saved: {error.message}", hint=error.hint) from error


@contextmanager
def no_value_explained(program: Program, variables: Iterable[Variable]) -> Iterator[None]:
    """Add a suitable hint to errors about variables without a value."""
    try:
        yield
    except NotInitializedError as error:
        empty = find_empty((v.name for v in variables if "@GRAD" not in v.name), global_scope())
        if not empty or program._is_distributed:
            raise
        raise NotInitializedError(error.message, hint=explain_no_value(empty, program)) from error.__cause__


def describe_item(item: Item) -> dict[str, Any]:
    """Return the facts of a variable's file for the manifest."""
    array, value = item.array, item.value
    if type(value) is LoDTensor and not value._lod:
        return {"variable": item.name, **_describe_array(array.dtype, array.shape)}
    dtype = _get_type_name(array.dtype)
    if isinstance(value, SelectedRows):
        return make_facts(item.name, dtype, array.shape, height=value.height())
    return make_facts(item.name, dtype, array.shape, value._lod)


def encode_combined(items: Sequence[Item]) -> list[Buffer]:
    """Encode all values as one file, in order.

    Raises
    ------
    SaveError
        Some values are SelectedRows, which a combined file cannot hold.
    """
    rows = [item.name for item in items if isinstance(item.value, SelectedRows)]
    if rows:
        raise SaveError(
            f"{rows} hold SelectedRows, which a combined file cannot hold",
            hint="save without filename=, one file for each variable",
        )
    return [buffer for item in items for buffer in encode_value(item.value)]


def describe_combined(items: Sequence[Item]) -> dict[str, Any]:
    """Return the facts of a combined file for the manifest: its variables, in order."""
    variables = [[item.name, _get_type_name(item.array.dtype), list(item.array.shape)] for item in items]
    return {"kind": "combined", "variables": variables}


@functools.lru_cache(4096)  # among thousands of variables, most share type and shape
def _describe_array(dtype: np.dtype[Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the manifest entries of a variable, without its name. The result must not be changed."""
    facts = make_facts("", _get_type_name(dtype), shape)
    del facts["variable"]
    return facts


@functools.lru_cache(64)
def _get_type_name(dtype: np.dtype[Any]) -> str:
    return VarType(convert_dtype(dtype)).name
