"""Access to parts of a tensor: Fluid's private methods of LoDTensor that scripts call, and indexing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from paddlelike.core.dtypes import numpy_dtype
from paddlelike.core.places import CPUPlace, Place
from paddlelike.errors import EnforceNotMet


class ElementAccess:
    """Base class of :class:`~paddlelike.core.tensor.LoDTensor`: Fluid's methods for single elements and
    parts.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # of LoDTensor

        def __init__(self, array: np.ndarray[Any, Any]) -> None: ...
        @property
        def held_array(self) -> np.ndarray[Any, Any] | None: ...
        def shape(self) -> list[int]: ...
        def lod(self) -> list[list[int]]: ...
        def touch(self) -> None: ...
        def adopt(self, array: np.ndarray[Any, Any] | None, lod: list[list[int]] | None = None) -> None: ...

    def __getitem__(self, item: Any) -> Self:
        """Return a part as a new tensor without LoD; as in Fluid, an index keeps its dim with size 1.

        Raises IndexError for more indexes than dims, for ``...`` and for an index out of range.
        """
        items = item if isinstance(item, tuple) else (item,)
        array = self._require_array("[]")
        if len(items) > array.ndim or not all(isinstance(i, int | np.integer | slice) for i in items):
            raise IndexError(f"LoDTensor of shape {self.shape()} cannot be indexed by {item!r}; "
                             "expected an int or a slice for each of the first dims")  # fmt: skip
        part = array[tuple(_keep_dim(i, size) for i, size in zip(items, array.shape, strict=False))]
        return type(self)(part.copy())

    def _get_dims(self) -> list[int]:
        """Return the dims; [0] when there is no array."""
        return self.shape()

    def _set_dims(self, dims: list[int]) -> None:
        """Change the dims of the array; an empty tensor is filled with float32 zeros.

        Raises EnforceNotMet for another number of elements.
        """
        array = np.zeros(dims, np.float32) if self.held_array is None else self.held_array
        if array.size != int(np.prod(dims)):
            raise EnforceNotMet(f"LoDTensor._set_dims: {list(array.shape)} cannot become {list(dims)}")
        self.adopt((array if array.flags.writeable else array.copy()).reshape(dims), self.lod())

    def _is_initialized(self) -> bool:
        """Return whether there is an array."""
        return self.held_array is not None

    def _place(self) -> Place:
        """Return the place of the array."""
        return CPUPlace()

    def _clear(self) -> None:
        """Drop the array."""
        self.adopt(None, self.lod())

    def _share_data_with(self, other: ElementAccess) -> None:
        """Take the array of another tensor, without a copy."""
        self.adopt(other._require_array("_share_data_with"), other.lod())

    def _get_float_element(self, index: int) -> float:
        """Return an element, by its position in C order, as a float. Raises EnforceNotMet if it is absent."""
        flat = self._require_array("_get_float_element").reshape(-1)
        return float(flat[_check_position(index, flat.size)])

    def _set_float_element(self, index: int, value: float) -> None:
        """Write one element, by its position in C order. Raises EnforceNotMet when it is absent."""
        flat = self._require_array("_set_float_element").reshape(-1)
        flat[_check_position(index, flat.size)] = value
        self.touch()

    _get_double_element = _get_float_element
    _set_double_element = _set_float_element

    def _alloc_float(self, place: Place | None = None) -> None:
        """Fill a tensor that has dims but no array with float32 zeros."""
        self._allocate("float32")

    def _alloc_double(self, place: Place | None = None) -> None:
        """Like :meth:`_alloc_float`, float64."""
        self._allocate("float64")

    def _alloc_int(self, place: Place | None = None) -> None:
        """Like :meth:`_alloc_float`, int32."""
        self._allocate("int32")

    def _allocate(self, dtype: str) -> None:
        self.adopt(np.zeros(self.shape(), numpy_dtype(dtype)), self.lod())

    def _require_array(self, method: str) -> np.ndarray[Any, Any]:
        if self.held_array is None:
            raise EnforceNotMet(f"LoDTensor.{method}: the tensor holds no value yet", hint="call its set()")
        return self.held_array


def _keep_dim(item: Any, size: int) -> slice:
    """Return an index as a slice of one element. Raises IndexError when it is out of range."""
    if isinstance(item, slice):
        return item
    index = int(item) + size if item < 0 else int(item)
    if not 0 <= index < size:
        raise IndexError(f"index {item} is out of range for a dim of size {size}")
    return slice(index, index + 1)


def _check_position(index: int, count: int) -> int:
    if not 0 <= index < count:
        raise EnforceNotMet(f"index {index} is out of range for a LoDTensor with {count} elements")
    return index
