"""The payload of a call: parts of arrays, and receivers that provide memory for them."""

from __future__ import annotations

import enum
import operator
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from paddlelike.errors import FrameError

Array = np.ndarray[Any, Any]


class Part(NamedTuple):
    """Bytes at ``offset`` of array ``index``; both sides use the same indices.

    ``data`` is a contiguous buffer. It is read while the call runs and must not change before the call ends.
    """

    index: int  # type: ignore[assignment]  # tuples have a method of this name
    offset: int
    data: memoryview


class Note(NamedTuple):
    """A further header between the parts, which the receiver's method ``note`` gets."""

    header: dict[str, Any]


class Flush(enum.Enum):
    """A mark between parts: send everything so far, since the next part may take long."""

    FLUSH = 0


FLUSH: Final = Flush.FLUSH
#: The items that a direct connection sends; gRPC sends only parts.
Item: TypeAlias = Part | Note | Flush


class Receiver(Protocol):
    """Gives the memory for the records of a call."""

    def place(self, index: int, offset: int, length: int) -> memoryview:
        """Return writable memory of ``length`` bytes for a record that is about to be copied.

        Called in the order of the records, before any byte of the record is copied. Raises FrameError for a
        record that this call does not take.
        """


def as_bytes(array: Array) -> memoryview:
    """Return the bytes of a C-order array of any dtype and shape, without a copy.

    Raises ValueError for an array that is not contiguous.

    >>> len(as_bytes(np.zeros((2, 3), np.float32)))
    24
    """
    if not array.flags.c_contiguous:
        raise ValueError(f"an array with strides {array.strides} is not contiguous; pass a C-order copy")
    try:
        return array.data.cast("B")
    except (TypeError, ValueError):  # an empty array, or a dtype that only numpy has
        return array.reshape(-1).view(np.uint8).data


def make_parts(arrays: Mapping[int, Array]) -> list[Part]:
    """Return whole arrays as parts, each under its index."""
    return [Part(index, 0, as_bytes(array)) for index, array in arrays.items()]


class Into:
    """A receiver that fills arrays in order, so that no byte is written twice.

    Parameters
    ----------
    arrays
        Writable C-order arrays by index. They are written while the call runs, also where it fails later.
    views
        The bytes of the arrays, if an earlier receiver of the same arrays has made these views.

    Examples
    --------
    >>> weight = np.zeros(2, np.float32)
    >>> receiver = Into({7: weight})
    >>> receiver.place(7, 0, 8)[:] = np.float32([1, 2]).tobytes()
    >>> receiver.check()
    >>> weight
    array([1., 2.], dtype=float32)
    """

    def __init__(self, arrays: Mapping[int, Array], views: Mapping[int, memoryview] | None = None) -> None:
        self.arrays: dict[int, Array] = dict(arrays)
        self._memory = (
            {index: as_bytes(array) for index, array in arrays.items()} if views is None else dict(views)
        )
        self._filled = dict.fromkeys(self._memory, 0)

    @property
    def views(self) -> Mapping[int, memoryview]:
        """The bytes of the arrays by index."""
        return self._memory

    def add(self, arrays: Mapping[int, Array]) -> None:
        """Add arrays to be filled; they replace the arrays of the same index."""
        self.arrays.update(arrays)
        for index, array in arrays.items():
            self._memory[index] = as_bytes(array)
            self._filled[index] = 0

    @property
    def size(self) -> int:
        """The size of all arrays in bytes."""
        return sum(map(len, self._memory.values()))

    def place(self, index: int, offset: int, length: int) -> memoryview:
        """Return the next ``length`` bytes of array ``index``.

        Raises FrameError for an unknown index, for bytes out of order and for more bytes than the array has.
        """
        memory = self._memory.get(index)
        if memory is None:
            raise FrameError(f"array {index} is not part of this call")
        filled = self._filled[index]
        if offset != filled or length > len(memory) - offset:
            raise FrameError(
                f"a record of {length} bytes at {offset} of array {index}, which holds {len(memory)} bytes, "
                f"{filled} of them received"
            )
        self._filled[index] = offset + length
        return memory[offset : offset + length]

    def check(self, only: Iterable[int] | None = None) -> None:
        """Raise FrameError unless every array (of ``only``, if given) was filled to its last byte."""
        if only is None and all(map(operator.eq, self._filled.values(), map(len, self._memory.values()))):
            return  # both have the same order
        for index in self._memory if only is None else only:
            filled, size = self._filled[index], len(self._memory[index])
            if filled != size:
                raise FrameError(f"array {index} is incomplete: {filled} of {size} bytes arrived")
