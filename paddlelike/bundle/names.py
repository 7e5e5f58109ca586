"""Names of a bundle's members: the names of the variables, made unique."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from paddlelike.core import Array, LoDTensor, Scope, ScopeVariable, SelectedRows
from paddlelike.errors import SaveError

PICKLE: Final = "pkl"  # the member with the pickle


class MemberNames:
    """Gives every array a unique member name.

    An array gets the name of its variable or its key in a dict, or else ``array_0``, ... A name that is taken
    gets ``_2``, ``_3``. (With Theano's own numbering two arrays share a member if a variable is called
    ``x_2`` or ``array_0``.)

    Parameters
    ----------
    allow_unnamed, allow_duplicates
        Whether arrays may lack a name, or have a name that is taken. If False, such an array raises
        SaveError.
    """

    def __init__(self, *, allow_unnamed: bool = True, allow_duplicates: bool = True) -> None:
        self._allow_unnamed = allow_unnamed
        self._allow_duplicates = allow_duplicates
        self._hints: dict[int, str] = {}
        self._taken = {PICKLE}

    def see(self, value: object) -> None:
        """Record the names that a container gives to its arrays, before the pickler reaches the arrays."""
        if isinstance(value, Scope):
            for name in value.local_var_names():
                variable = value.find_var(name)
                if variable is not None:
                    self._see_variable(variable)
        elif isinstance(value, ScopeVariable):
            self._see_variable(value)
        elif isinstance(value, Mapping):
            for key, item in value.items():
                if isinstance(key, str) and isinstance(item, np.ndarray | LoDTensor):
                    array = item.array if isinstance(item, LoDTensor) else item
                    self._hints.setdefault(id(array), key)
        elif not isinstance(value, type) and hasattr(value, "__dict__"):
            self._see_named(value)

    def _see_variable(self, variable: ScopeVariable) -> None:
        held = variable.value
        if isinstance(held, LoDTensor | SelectedRows) and held.held_array is not None:
            self._hints[id(held.held_array)] = variable.name
        if isinstance(held, SelectedRows):
            self._hints[id(held.row_array)] = f"{variable.name}.rows"

    def take(self, array: Array) -> str:
        """Return the member name of an array.

        Raises SaveError when a missing name, or a taken name, is not allowed.
        """
        hint = self._hints.get(id(array), "")
        if not hint and not self._allow_unnamed:
            raise SaveError(f"an array of shape {array.shape} has no name, and allow_unnamed is False")
        if hint in self._taken and not self._allow_duplicates:
            raise SaveError(f"two arrays are called {hint!r}, and allow_duplicates is False")
        name = hint
        count = 2 if hint else 0
        while not name or name in self._taken:
            name = f"{hint}_{count}" if hint else f"array_{count}"
            count += 1
        self._taken.add(name)
        return name

    def _see_named(self, value: object) -> None:
        """Name an object's arrays: a single one after its ``name``, several after its attributes."""
        held = {key: item for key, item in vars(value).items() if isinstance(item, np.ndarray)}
        own = vars(value).get("name")
        if isinstance(own, str) and own and len(held) == 1:
            self._hints.setdefault(id(next(iter(held.values()))), own)
            return
        for key, item in held.items():
            self._hints.setdefault(id(item), key)
