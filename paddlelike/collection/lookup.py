"""Lookup tables of a collection: parameters whose rows are expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from paddlelike.collection.expressions import Expression, lookup
from paddlelike.collection.parameters import Parameters
from paddlelike.errors import ShapeError
from paddlelike.formats.dynet import LOOKUP_PARAMETER

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["LookupParameters"]

Array = np.ndarray[Any, Any]


class LookupParameters(Parameters):
    """A table of ``rows`` entries, as in DyNet, made by ``add_lookup_parameters``; ``table[3]`` is row 3.

    A table has a ``name`` in its collection, a ``shape`` and the ``variable_name`` of its variable in the
    scope.

    Parameters
    ----------
    name
        Its name in the collection.
    shape
        (rows, width), or (rows, ...).
    variable_name
        The name of its variable in the scope.
    scope
        The scope that holds the value.

    Raises
    ------
    IndexError
        There is no such row.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> table = dy.ParameterCollection().add_lookup_parameters((10, 4), name="words")
    >>> table.name(), table[3].npvalue().shape
    ('/words', (4,))
    """

    kind: ClassVar[str] = LOOKUP_PARAMETER

    def __getitem__(self, row: int) -> Expression:
        """Return a row as an expression. Raises IndexError for a row that does not exist."""
        return lookup(self, row)

    def row_as_array(self, row: int) -> Array:
        """Return a copy of one row. Raises IndexError for a row that does not exist."""
        if not 0 <= row < self._shape[0]:
            raise IndexError(f"{self._name} has rows 0 to {self._shape[0] - 1}, not {row}")
        return np.array(self.as_array()[row])

    def rows_as_array(self, rows: Sequence[int]) -> Array:
        """Return copies of some rows, in their order; errors as in :meth:`row_as_array`."""
        return np.array([self.row_as_array(row) for row in rows])

    def init_row(self, row: int, value: ArrayLike) -> None:
        """Set one row. Raises ShapeError when its shape differs, IndexError for a row that does not exist."""
        array = self.as_array()
        given = np.asarray(value, dtype=np.float32)
        if not 0 <= row < self._shape[0]:
            raise IndexError(f"{self._name} has rows 0 to {self._shape[0] - 1}, not {row}")
        if given.shape != self._shape[1:]:
            raise ShapeError(f"a row of {self._name} has shape {self._shape[1:]}, the value {given.shape}")
        array[row] = given
        self.set_value(array)

    def init_from_array(self, value: ArrayLike) -> None:
        """Set all rows. Raises ShapeError when the shape differs."""
        self.set_value(value)
