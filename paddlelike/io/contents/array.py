"""A dict of arrays as a source of values, for a load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paddlelike.core import LoDTensor, VarType, convert_dtype
from paddlelike.formats.entry import Entry
from paddlelike.io.contents.interface import Held, Reading, Unreadable, Value, Want


class ArrayContents:
    """Arrays by name, as ``load_program_state`` returns them."""

    unnamed = None

    def __init__(self, where: str, arrays: Mapping[str, Any]) -> None:
        self.where = where
        self._arrays = arrays

    def names(self) -> list[str]:
        """Return the names in the order of the mapping."""
        return list(self._arrays)

    def look(self, name: str, kind: VarType) -> Held | Unreadable | None:
        """Return the header of an array, or None if there is no such array."""
        array = self._arrays.get(name)
        if array is None:
            return None
        if kind == VarType.SELECTED_ROWS:
            return Unreadable(name, "an array, the program wants SelectedRows")
        try:
            dtype = convert_dtype(array.dtype)
        except TypeError as error:
            return Unreadable(name, str(error))
        return Held(name, Entry(name, dtype, tuple(array.shape), nbytes=array.nbytes))

    def read(self, wants: Sequence[Want], *, lazily: bool = False) -> Reading:
        """Return the arrays as values, without a copy."""
        values: list[Value] = []
        for name, rows in ((want.held.name, want.rows) for want in wants):
            whole = np.asarray(self._arrays[name])
            values.append(LoDTensor(whole if rows is None else whole[slice(*rows)]))
        return Reading(values, [])
