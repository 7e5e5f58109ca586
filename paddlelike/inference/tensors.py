"""Inputs and outputs of engines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from paddlelike.core import Array, LoD, LoDTensor
from paddlelike.errors import FeedError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

Value = tuple[Array, LoD]


class Runner(Protocol):
    """Returns the outputs for some feeds, in order.

    With ``lend``, the feeds are the handles' own arrays, which the next run reads again; the next run may
    overwrite the outputs.
    """

    def __call__(self, feed: Mapping[str, Any], /, *, lend: bool = False) -> list[Value]: ...


def split_value(value: object) -> Value:
    """Return the array and the LoD of an array or a LoDTensor."""
    if not isinstance(value, LoDTensor):
        return np.asarray(value), []
    array = value.held_array
    return (np.empty(0, np.float32) if array is None else array), value.lod()


class PaddleDType(IntEnum):
    """Element types of the engine."""

    FLOAT32 = 0
    INT64 = 1
    INT32 = 2
    UINT8 = 3
    INT8 = 4
    FLOAT16 = 5
    BOOL = 6
    FLOAT64 = 7


class PaddlePlace(IntEnum):
    """The device of a tensor; here always the CPU."""

    UNK = -1
    CPU = 0
    GPU = 1


_NUMPY: Final = {kind: np.dtype(kind.name.lower()) for kind in PaddleDType}
_KINDS: Final = {dtype: kind for kind, dtype in _NUMPY.items()}


def paddle_dtype_size(dtype: PaddleDType) -> int:
    """Return the size of one element in bytes.

    >>> paddle_dtype_size(PaddleDType.INT64)
    8
    """
    return _NUMPY[dtype].itemsize


def _find_kind(array: NDArray[np.generic]) -> PaddleDType:
    """Return the engine's type of an array. Raises FeedError for other types."""
    kind = _KINDS.get(array.dtype)
    if kind is None:
        raise FeedError(
            f"a predictor takes no arrays of {array.dtype}",
            hint=f"convert it to one of {', '.join(str(dtype) for dtype in _KINDS)}",
        )
    return kind


class PaddleBuf:
    """The bytes of a :class:`PaddleTensor`, made from a size, a list of numbers (float32), or an array.

    >>> PaddleBuf([1.0, 2.5]).float_data()
    [1.0, 2.5]
    """

    def __init__(self, data: int | ArrayLike) -> None:
        if isinstance(data, int):
            self.resize(data)
        else:
            self.reset(data)

    def reset(self, data: ArrayLike) -> None:
        """Replace the contents by a copy of other numbers."""
        self.array: NDArray[Any] = np.array(
            data, None if isinstance(data, np.ndarray) else np.float32, order="C"
        )

    def resize(self, length: int) -> None:
        """Replace the contents by that many zero bytes."""
        self.array = np.zeros(length, np.uint8)

    def length(self) -> int:
        """Return the number of bytes."""
        return self.array.nbytes

    def empty(self) -> bool:
        """Return whether the array has no elements."""
        return not self.array.size

    def float_data(self) -> list[float]:
        """Return the bytes as float32 numbers."""
        return list(self._view(np.float32).tolist())

    def int32_data(self) -> list[int]:
        """Return the bytes as int32 numbers."""
        return list(self._view(np.int32).tolist())

    def int64_data(self) -> list[int]:
        """Return the bytes as int64 numbers."""
        return list(self._view(np.int64).tolist())

    def tolist(self, dtype: str) -> list[int] | list[float]:
        """Return the bytes as numbers of that type: "float32", "int32" or "int64"."""
        return list(self._view(dtype).tolist())

    def _view(self, dtype: DTypeLike) -> NDArray[Any]:
        return self.array.reshape(-1).view(dtype)


class PaddleTensor:
    """A tensor passed to :meth:`PaddlePredictor.run`, or returned by it.

    Parameters
    ----------
    data
        An array; without one, set ``shape``, ``dtype`` and ``data`` afterwards.
    lod
        Offsets of sequences, a list for each level.
    copy
        Accepted for Paddle; the elements are always copied.

    >>> PaddleTensor(np.array([[1, 2]], "int32"), name="ids").as_ndarray()
    array([[1, 2]], dtype=int32)
    """

    def __init__(
        self,
        data: ArrayLike | None = None,
        name: str = "",
        lod: Sequence[Sequence[int]] = (),
        copy: bool = True,
    ) -> None:
        self.name = name
        self.lod: list[list[int]] = [list(level) for level in lod]
        if data is None:
            self.data, self.dtype = PaddleBuf(0), PaddleDType.FLOAT32
            self.shape: list[int] = []
        else:
            self._hold(PaddleBuf(np.asarray(data)))

    def _hold(self, data: PaddleBuf) -> None:
        self.data, self.shape, self.dtype = data, list(data.array.shape), _find_kind(data.array)

    def as_ndarray(self) -> NDArray[np.generic]:
        """Return a copy of the elements as array. Raises FeedError where bytes and shape do not fit."""
        return self._view().copy()

    def _view(self) -> NDArray[Any]:
        array, dtype = self.data.array, _NUMPY[self.dtype]
        if array.dtype == dtype and list(array.shape) == self.shape:
            return array
        if math.prod(self.shape) * dtype.itemsize != array.nbytes:
            raise FeedError(
                f"PaddleTensor {self.name!r}: {array.nbytes} bytes do not fill {dtype} of shape {self.shape}",
                hint="set shape and dtype to those of the data",
            )
        return array.reshape(-1).view(dtype).reshape(self.shape)


def make_output(name: str, array: NDArray[Any], lod: LoD) -> PaddleTensor:
    """Return an output of a predictor, which holds the array itself."""
    tensor, buffer = PaddleTensor.__new__(PaddleTensor), PaddleBuf.__new__(PaddleBuf)
    tensor.name, tensor.lod, buffer.array = name, lod, array
    tensor._hold(buffer)
    return tensor


def paddle_tensor_to_bytes(tensor: PaddleTensor) -> bytes:
    """Return the elements of a tensor as bytes."""
    return tensor.data.array.tobytes()


class ZeroCopyTensor:
    """An input or output of a predictor, by name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lod: LoD = []
        self._array: NDArray[Any] | None = None
        self._shape: tuple[int, ...] | None = None

    def name(self) -> str:
        """Return the variable's name."""
        return self._name

    def reshape(self, shape: Sequence[int]) -> None:
        """Set the shape of the next array."""
        self._shape = tuple(shape)

    def copy_from_cpu(self, data: NDArray[np.generic]) -> None:
        """Copy an array into this tensor. Raises FeedError for a dtype that the engine does not have.

        An array with another shape but as many elements gets the shape set by :meth:`reshape`.
        """
        held = self._array
        if (
            held is not None
            and type(data) is np.ndarray
            and data.shape == held.shape
            and data.dtype is held.dtype
            and self._shape is None
        ):  # the usual case
            held[...] = data
            return
        array = np.array(data, order="C")
        _find_kind(array)
        if self._shape is not None and math.prod(self._shape) == array.size:
            array = array.reshape(self._shape)
        self._array, self._shape = array, None

    share_external_data = copy_from_cpu

    def copy_to_cpu(self) -> NDArray[np.generic]:
        """Return a copy of the elements. Raises FeedError before there is a value."""
        array = self._array
        return self._get().copy() if array is None else array.copy()

    def shape(self) -> list[int]:
        """Return the shape; [] before there is a value."""
        return list(self._shape or (() if self._array is None else self._array.shape))

    def type(self) -> PaddleDType:
        """Return the element type; FLOAT32 before there is a value."""
        return PaddleDType.FLOAT32 if self._array is None else _find_kind(self._array)

    def lod(self) -> list[list[int]]:
        """Return the offsets of the sequences."""
        return [list(level) for level in self._lod]

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """Set the offsets of the sequences."""
        self._lod = [list(level) for level in lod]

    def _get(self) -> NDArray[np.generic]:
        if self._array is None:
            raise FeedError(
                f"predictor: {self._name!r} has no value",
                hint="copy_from_cpu() gives an input its array; run() gives the outputs theirs",
            )
        return self._array

    def _to_feed(self) -> LoDTensor:
        return LoDTensor(self._get(), self._lod)
