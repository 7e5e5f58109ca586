"""Values: LoDTensor, SelectedRows, LoDTensorArray.

LoD ("level of detail") cuts the rows of a batch into sequences, in one or more levels. It is stored as
offsets, as in Paddle: lengths 2 and 3 are the offsets [0, 2, 5].
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np

from paddlelike.core import memory
from paddlelike.core.dtypes import VarType, convert_dtype, unify_dtype
from paddlelike.core.elements import ElementAccess
from paddlelike.core.places import Place
from paddlelike.core.rows import RowIndex, merge_rows, sum_rows
from paddlelike.core.versioned import Versioned
from paddlelike.errors import EnforceNotMet
from paddlelike.foundation.display import Displayed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Array = np.ndarray[Any, Any]
LoD = list[list[int]]


class LoDTensor(ElementAccess, Versioned, Displayed):
    """An array with an optional LoD.

    Parameters
    ----------
    array
        The elements; None for a tensor without a value.
    lod
        Offsets, a list for each level; None for no LoD.

    >>> t = LoDTensor()
    >>> t.set(np.arange(5, dtype="float32"))
    >>> t.set_recursive_sequence_lengths([[2, 3]])
    >>> t.lod(), t.shape()
    ([[0, 2, 5]], [5])
    """

    __slots__ = ("__weakref__", "_array", "_device", "_device_version", "_lod", "version")

    _left_out: ClassVar[Mapping[str, Callable[[], Any]]] = {
        "_device": lambda: None,
        "_device_version": lambda: 0,
    }

    def __init__(self, array: Array | None = None, lod: LoD | None = None) -> None:
        self._array = array  # unset while the value is on a device only, see adopt_from_device
        self._device: Any = None  # an array of a device that had the same elements at a version
        self._device_version = 0
        self._lod: LoD = [] if lod is None else lod
        self.version = 0  # increased by every write

    @property
    def array(self) -> Array | None:
        """A read-only view of the elements; :meth:`set` and :meth:`writing` change them."""
        return _make_view(self.held_array)

    @property
    def held_array(self) -> Array | None:
        """The array itself, for use inside this package; code that writes into it must call :meth:`touch`."""
        return self._array

    @contextlib.contextmanager
    def writing(self) -> Iterator[Array]:
        """Yield the array for writing inside the ``with``; entering and leaving it both count as a write.

        A save that begins inside the block stores the current elements, and the next save writes the file
        again. Do not keep views of the array: later writes through them are not noticed, and so not saved.

        Raises
        ------
        EnforceNotMet
            The tensor holds no value yet.

        >>> t = LoDTensor(np.zeros(3, "float32"))
        >>> with t.writing() as array:
        ...     array[1:] = 5
        >>> t.array.tolist(), t.array.flags.writeable
        ([0.0, 5.0, 5.0], False)
        """
        view = self._require_array("writing").view()  # which a save would see
        if not view.flags.writeable:  # its owner keeps it read-only, or a save reads it
            self._array = memory.place(view)
            view = self._array.view()
        self.touch()
        try:
            yield view
        finally:
            self.touch()

    def touch(self) -> None:
        """Record that the array was written into."""
        self.version += 1

    def adopt(self, array: Array | None, lod: LoD | None = None) -> None:
        """Take over an array without a copy and set the LoD."""
        self._array = array
        self._lod = [] if lod is None else lod
        self.version += 1

    def adopt_from_device(self, value: Any, lod: LoD | None = None) -> None:
        """Take over a device array that numpy.asarray can read; it is copied at its first use on the host."""
        self._lod = [] if lod is None else lod
        self.version += 1
        self._device, self._device_version = value, self.version
        self._array = None
        del self._array

    def keep_on_device(self, value: Any) -> None:
        """Remember a device array that holds the same elements."""
        self._device, self._device_version = value, self.version

    def find_on_device(self) -> Any:
        """Return the device array that holds the same elements as this tensor, or None without one."""
        return self._device if self._device_version == self.version else None

    def borrow(self) -> LoDTensor:
        """Return a tensor for reading the same elements; a value that is only on a device is copied first.

        While the returned tensor exists, memory of a CPU device is not reused for another value.
        """
        if self._device is None:
            return self
        try:  # without a call of __getattr__
            object.__getattribute__(self, "_array")
        except AttributeError:
            return LoDTensor(np.asarray(self._device), self._lod)
        return self

    def __getattr__(self, name: str) -> Any:
        # Called only for an attribute that is not set: the array of a tensor whose value is on a device.
        if name == "_array" and self._device is not None:
            self._array = memory.place(np.asarray(self._device))
            return self._array
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def set(self, array: ArrayLike, place: Place | None = None) -> None:
        """Copy an array into this tensor; the LoD is kept.

        Raises TypeError for a dtype that Paddle does not have.
        """
        source = np.asarray(array)
        try:
            convert_dtype(source.dtype)
        except TypeError as error:
            raise TypeError(f"LoDTensor.set: {error}") from None
        source = unify_dtype(source.astype(source.dtype.newbyteorder("="), copy=False))
        old = self._array
        if old is not None and (view := open_for(old, source)) is not None:
            view[...] = source
        else:
            self._array = memory.place(source)
        self.version += 1

    def lod(self) -> LoD:
        """Return the offsets of every level; [] when there is none."""
        return [list(level) for level in self._lod]

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """Set the offsets of every level. Raises EnforceNotMet when they do not fit the rows."""
        checked = [[int(offset) for offset in level] for level in lod]
        problem = _lod_problem(checked, None if self._array is None else len(np.atleast_1d(self._array)))
        if problem:
            raise EnforceNotMet(f"LoD {checked} {problem}")
        self._lod = checked
        self.version += 1

    def recursive_sequence_lengths(self) -> list[list[int]]:
        """Return the lengths of the sequences of every level."""
        return [np.diff(level).tolist() for level in self._lod]

    def set_recursive_sequence_lengths(self, lengths: Sequence[Sequence[int]]) -> None:
        """Set the lengths of the sequences of every level. Raises the errors of :meth:`set_lod`."""
        self.set_lod([[0, *np.cumsum(level, dtype=np.int64).tolist()] for level in lengths])

    def has_valid_recursive_sequence_lengths(self) -> bool:
        """Return whether the levels fit each other and the rows."""
        return not _lod_problem(self._lod, None if self._array is None else len(self._array))

    def shape(self) -> list[int]:
        """Return the dims; [0] when there is no array."""
        return [0] if self._array is None else list(self._array.shape)

    def _dtype(self) -> VarType:
        return VarType.FP32 if self._array is None else convert_dtype(self._array.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if self._array is None:
            return np.empty(0, np.float64)
        if copy or (dtype is not None and np.dtype(dtype) != self._array.dtype):
            return self._array.astype(self._array.dtype if dtype is None else dtype)
        return _make_view(self._array)

    def __repr__(self) -> str:
        if self._array is None:
            return "LoDTensor(empty)"
        lod = f", lod={self._lod}" if self._lod else ""
        return f"LoDTensor(shape={self.shape()}, dtype={self._array.dtype}{lod})\n{self._array}"


def adopt_all(tensors: Sequence[LoDTensor], values: Sequence[Any]) -> None:
    """Let tensors without a LoD take arrays of a device as their values; see ``adopt_from_device``."""
    # Without calls, since a small compiled step spends most of its time outside of XLA in this loop.
    for tensor, value in zip(tensors, values, strict=True):
        tensor._device = value
        tensor._device_version = tensor.version = tensor.version + 1
        tensor._array = None
        del tensor._array


def open_for(array: Array, value: Array) -> Array | None:
    """Return a view for writing a value over an array; None if the array is read-only or has another kind."""
    view = array.view()
    return view if view.shape == value.shape and view.dtype == value.dtype and view.flags.writeable else None


@overload
def _make_view(array: Array) -> Array: ...
@overload
def _make_view(array: Array | None) -> Array | None: ...
def _make_view(array: Array | None) -> Array | None:
    """Return a read-only view of an array, so that every write is counted."""
    if array is None:
        return None
    view = array.view()
    view.flags.writeable = False
    return view


def _lod_problem(lod: LoD, rows: int | None) -> str:
    """Return the problem of invalid offsets, or ''."""
    for index, level in enumerate(lod):
        if len(level) < 2 or level[0] != 0:
            return f"must start every level with 0 and hold one sequence at least (level {index})"
        if any(a > b for a, b in pairwise(level)):
            return f"has falling offsets in level {index}"
        below = len(lod[index + 1]) - 1 if index + 1 < len(lod) else rows
        if below is not None and level[-1] != below:
            what = "sequences of the next level" if index + 1 < len(lod) else "rows"
            return f"ends level {index} at {level[-1]}, but there are {below} {what}"
    return ""


class SelectedRows(Versioned, Displayed):
    """Some rows of a tall matrix: ``value[i]`` belongs to row ``rows()[i]`` of ``height()`` rows.

    Rows may be unsorted and repeat; as a gradient, repeated rows add up.

    Parameters
    ----------
    rows
        The row ids.
    height
        The number of rows of the whole matrix.
    value
        The values of these rows, an array of shape (N, ...).

    See Also
    --------
    fluid.LoDTensor

    >>> import numpy as np
    >>> SelectedRows([7, 2], 10, np.ones((2, 4), "float32")).height()
    10
    """

    __slots__ = ("_height", "_indexes", "_rows", "_tensor")

    _left_out: ClassVar[Mapping[str, Callable[[], Any]]] = {"_indexes": lambda: None}

    def __init__(self, rows: Sequence[int] | Array = (), height: int = 0, value: Array | None = None) -> None:
        self._rows = np.asarray(rows, np.int64)
        self._indexes: RowIndex | None = None  # built at the first look-up
        self._height = int(height)
        self._tensor = LoDTensor(value)

    @property
    def version(self) -> int:
        """The number of writes; every write increases it."""
        return self._tensor.version

    @property
    def row_array(self) -> Array:
        """The row ids, int64 of shape (N,)."""
        return self._rows

    @property
    def array(self) -> Array | None:
        """A read-only view of the values, of shape (N, ...)."""
        return self._tensor.array

    @property
    def held_array(self) -> Array | None:
        """The array of the values, not a copy; see :attr:`LoDTensor.held_array`."""
        return self._tensor.held_array

    def rows(self) -> list[int]:
        """Return the row ids."""
        return [int(row) for row in self._rows]

    def set_rows(self, rows: Sequence[int] | Array) -> None:
        """Set the row ids."""
        self._rows = np.asarray(rows, np.int64)
        self._indexes = None
        self._tensor.touch()

    def find_rows(self, rows: Array) -> Array:
        """Return the index of each row id, -1 for missing ones. No row may repeat.

        The first call takes time proportional to the number of rows, each further call to the number of
        ids it looks up.

        >>> SelectedRows([7, 3], 10).find_rows(np.array([3, 5, 7]))
        array([ 1, -1,  0])
        """
        if self._indexes is None:
            self._indexes = RowIndex(self._rows)
        return self._indexes.find(rows)

    def add_rows(self, rows: Sequence[int] | Array) -> None:
        """Append row ids."""
        new = np.asarray(rows, np.int64)
        if self._indexes is not None:
            self._indexes.add(new)
        self._rows = np.concatenate([self._rows, new])
        self._tensor.touch()

    def height(self) -> int:
        """Return the number of rows of the whole matrix."""
        return self._height

    def set_height(self, height: int) -> None:
        """Set the number of rows of the whole matrix."""
        self._height = int(height)
        self._tensor.touch()

    def get_tensor(self) -> LoDTensor:
        """Return the values as a tensor."""
        return self._tensor

    def gather(self) -> SelectedRows:
        """Return all rows, also those that a table holds outside memory."""
        return self

    def merge(self) -> SelectedRows:
        """Return the rows sorted and unique, with repeated ones summed. The result may share memory."""
        value = self._tensor.held_array
        assert value is not None
        rows, sums = merge_rows(self._rows, value)
        return SelectedRows(rows, self._height, sums)

    def to_dense(self) -> Array:
        """Return the whole matrix, with zeros in missing rows; values of repeated rows are summed."""
        value = self._tensor.held_array
        assert value is not None
        return sum_rows(self._rows, value, self._height)

    def __repr__(self) -> str:
        rows = np.array2string(self._rows, separator=", ", threshold=20, edgeitems=3)
        return f"SelectedRows(rows={rows}, height={self._height}, value={self._tensor!r})"


class LoDTensorArray(Versioned, list[LoDTensor]):
    """A list of tensors, one per step of a loop.

    Parameters
    ----------
    iterable
        The first tensors.

    >>> import paddlelike as fluid
    >>> len(fluid.LoDTensorArray())
    0
    """
