"""The values that a pickle of plain data may hold: numpy arrays whose elements are still in the file, and
their parts.

:data:`CONSTRUCTORS` lists every global that may be called, each with a plain function of this module.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

import numpy as np

from paddlelike.core import Array, memory
from paddlelike.errors import FormatError
from paddlelike.formats.elements import check_shape

Constructors = Mapping[tuple[str, str], Callable[..., Any]]

HINT: Final = (
    "a state file holds arrays and plain values only; open this one where it was made "
    "and save its arrays again"
)
_SIZES: Final = {"b": [1], "i": [1, 2, 4, 8], "u": [1, 2, 4, 8], "f": [2, 4, 8], "c": [8, 16]}
_CODES: Final = frozenset(f"{kind}{size}" for kind, sizes in _SIZES.items() for size in sizes)


class Text:
    """A long text that is still UTF-8 in the file."""

    __slots__ = ("view",)

    def __init__(self, view: memoryview) -> None:
        self.view = view

    def __str__(self) -> str:
        return str(self.view, "utf-8", "surrogatepass")


class Latin1:
    """Bytes that the file keeps as text, because protocol 2 has no byte strings."""

    __slots__ = ("view",)

    def __init__(self, view: memoryview) -> None:
        self.view = view

    def __bytes__(self) -> bytes:
        return str(self.view, "utf-8").encode("latin1")


class Foreign:
    """An object of an unknown class: the class name, and the object's data in the pickle."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: str, *given: object) -> None:
        self.kind = kind
        self.parts: dict[Any, Any] = dict(enumerate(given))

    def add_state(self, state: object) -> None:
        """Add the attributes of the object."""
        for one in state if isinstance(state, tuple) else (state,):
            self.parts.update(one if isinstance(one, dict) else {"state": one})


def is_container(value: object) -> bool:
    """Return whether a value of a pickle has parts."""
    return isinstance(value, dict | list | tuple | set | Foreign)


def list_parts(value: object) -> Iterable[tuple[object, Any]]:
    """Return the parts of a container with their keys or positions; [] for other values."""
    if isinstance(value, Foreign):
        return value.parts.items()
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list | tuple | set) else ()


class PickledArray:
    """An array whose elements are still in the file; its dtype and shape are known.

    Attributes
    ----------
    problem
        A description of the array if no variable can hold it; its elements are not kept then.
    """

    __slots__ = ("_array", "_fortran", "_pieces", "_raw", "dtype", "problem", "shape")

    def __init__(self) -> None:
        self.problem: str | None = None
        self.dtype = np.dtype(np.uint8)
        self.shape: tuple[int, ...] = (0,)
        self._raw: bytes | memoryview | Latin1 = b""
        self._fortran = False
        self._pieces: list[PickledArray] = []
        self._array: Array | None = None

    @property
    def nbytes(self) -> int:
        """The size of the elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    def set_state(self, *state: object) -> None:
        """Set the state that numpy pickles: (version,) shape, dtype, Fortran order, elements.

        Raises
        ------
        FormatError
            The state describes more elements than the file has.
        """
        shape, dtype, fortran, raw = state[-4:]
        raw = raw.encode("latin1") if isinstance(raw, str) else raw
        if not isinstance(dtype, _DType):
            raise FormatError("an array has no element type")
        self.problem = dtype.problem
        if self.problem is None and not isinstance(raw, bytes | memoryview | Latin1):
            self.problem = "an array of objects"
        if self.problem is not None:
            return
        assert isinstance(raw, bytes | memoryview | Latin1)
        self.dtype = dtype.numpy()
        self.shape = _check_shape(shape, self.dtype)
        self._fortran, self._raw = bool(fortran), raw
        # text takes one or two bytes of the file for each byte
        kept = len(raw.view) if isinstance(raw, Latin1) else len(raw)
        if not self.nbytes <= kept <= self.nbytes * (1 + isinstance(raw, Latin1)):
            raise self._make_size_error(kept)

    @classmethod
    def join(cls, pieces: list[PickledArray], shape: Iterable[int]) -> PickledArray:
        """Return an array of ``shape``, joined from the flat pieces that it was cut into.

        Raises
        ------
        FormatError
            The pieces do not have the elements of such an array.
        """
        whole = cls()
        whole.dtype, whole._pieces = pieces[0].dtype, pieces
        whole.shape = _check_shape(shape, whole.dtype)
        count = sum(piece.nbytes for piece in pieces)
        if count != whole.nbytes or any(piece.dtype != whole.dtype for piece in pieces):
            raise whole._make_size_error(count)
        return whole

    def read(self) -> Array:
        """Return the array in C order, in native byte order and writable; always the same object.

        Raises
        ------
        FormatError
            The elements are damaged.
        """
        if self.problem is not None:
            raise FormatError(f"{self.problem}, which no Paddle variable can hold")
        if self._array is None:
            array = memory.empty(self.shape, self.dtype.newbyteorder("="))
            if self._pieces:
                np.concatenate([piece._flat() for piece in self._pieces], out=array.reshape(-1))
            else:
                order: Literal["F", "C"] = "F" if self._fortran else "C"
                array[...] = self._flat().reshape(self.shape, order=order)
            self._array = array
        return self._array

    def _flat(self) -> Array:
        try:
            data = bytes(self._raw) if isinstance(self._raw, Latin1) else self._raw
        except ValueError as error:
            raise FormatError(f"the elements of an array are not latin1 text ({error})") from error
        if len(data) != self.nbytes:
            raise self._make_size_error(len(data))
        return np.frombuffer(data, self.dtype)

    def _make_size_error(self, count: int) -> FormatError:
        return FormatError(
            f"an array of {self.dtype} {list(self.shape)} takes {self.nbytes} bytes, the file has {count}"
        )


def _check_shape(shape: object, dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Return ``shape`` as a tuple. Raises FormatError if no array can have it."""
    dims = tuple(shape) if isinstance(shape, Iterable) else (None,)
    if not all(type(dim) is int for dim in dims):
        raise FormatError("an array has impossible dims")
    check_shape("an array", dims, dtype.itemsize)
    return dims


class _DType:
    """A pickled numpy dtype: a code such as ``f4``, then the byte order as its state."""

    __slots__ = ("_code", "_order", "problem")

    def __init__(self, code: object, *flags: object) -> None:
        self.problem: str | None = None
        if not isinstance(code, str) or code not in _CODES:
            self.problem = f"an array of dtype {str(code)[:20]!r}"
        self._code = code
        self._order = "="

    def set_state(self, version: object, order: str, *rest: object) -> None:
        if order not in ("<", ">", "|", "=") or rest[:3] != (None, None, None):
            self.problem = self.problem or "an array of records"
        self._order = order

    def numpy(self) -> np.dtype[Any]:
        return np.dtype(f"{self._order}{self._code}")


_MOST_PARTS, _MOST_BITS = 64, 65  # of a tuple that is a key, and of an integer in it


def check_key(value: object) -> object:
    """Return ``value`` if it may be a key of a dict or set. Hashing a nested tuple could take forever.

    Raises
    ------
    FormatError
        ``value`` may not be a key.
    """
    is_flat = isinstance(value, tuple) and len(value) < _MOST_PARTS and all(map(_is_plain, value))
    if not is_flat and not isinstance(value, str | int | float | bytes | Foreign | None):
        raise FormatError(f"a key of a dict or set is a {type(value).__name__}")
    return value


def _is_plain(value: object) -> bool:
    if isinstance(value, int):
        return value.bit_length() < _MOST_BITS
    return isinstance(value, str | float | None)


def _array(*_: object) -> PickledArray:
    return PickledArray()


def _frombuffer(
    raw: object, dtype: object, shape: Iterable[int], order: str, axes: None = None
) -> PickledArray:
    array = PickledArray()
    array.set_state(shape, dtype, order == "F", raw)
    return array


def _scalar(dtype: object, raw: object) -> PickledArray:
    return _frombuffer(raw, dtype, (), "C")


def _ndarray(*_: object) -> object:
    raise FormatError("the pickle calls numpy.ndarray, unlike any pickled array")


def _encode(text: Text | str, encoding: str) -> bytes | Latin1:
    if encoding != "latin1":
        raise FormatError(f"bytes are kept as text in {encoding!r}")
    encoded: bytes | Latin1 = Latin1(text.view) if isinstance(text, Text) else text.encode("latin1")
    return encoded


def _bytes(value: object = b"") -> bytes | memoryview | Latin1:
    if not isinstance(value, bytes | memoryview | Latin1):
        raise FormatError(f"bytes are made of a {type(value).__name__}")
    return value


def _eval(code: str, names: dict[str, Any]) -> PickledArray:
    """Return the array of a tensor that Paddle 2 pickles as eval('data', {'data': array})."""
    value = names.get("data") if code == "data" and len(names) == 1 else None
    if not isinstance(value, PickledArray):
        raise FormatError("the pickle wants to run code, which is refused", hint=HINT)
    return value


def _tuple(items: object) -> tuple[Any, ...]:
    """Return the pair that Paddle 2 pickles for a named tensor: tuple((name, array))."""
    if not isinstance(items, tuple):
        raise FormatError(f"the pickle makes a tuple of a {type(items).__name__}")
    return items


def _dict(pairs: Iterable[tuple[object, object]] = ()) -> OrderedDict[Any, Any]:
    return OrderedDict((check_key(key), value) for key, value in pairs)


def _set(items: Iterable[object] = ()) -> set[Any]:
    return {check_key(item) for item in items}


_NUMPY: Final[dict[str, Callable[..., Any]]] = {
    "multiarray _reconstruct": _array,
    "multiarray scalar": _scalar,
    "numeric _frombuffer": _frombuffer,
}
_BUILTINS: Final[dict[str, Callable[..., Any]]] = {
    "bytearray": _bytes,
    "bytes": _bytes,
    "eval": _eval,
    "frozenset": _set,
    "set": _set,
    "tuple": _tuple,
}

CONSTRUCTORS: Final[Constructors] = {
    ("numpy", "ndarray"): _ndarray,
    ("numpy", "dtype"): _DType,
    ("_codecs", "encode"): _encode,
    ("collections", "OrderedDict"): _dict,
    **{(f"numpy.core.{k.split()[0]}", k.split()[1]): make for k, make in _NUMPY.items()},
    **{(f"numpy._core.{k.split()[0]}", k.split()[1]): make for k, make in _NUMPY.items()},
    **{("builtins", name): make for name, make in _BUILTINS.items()},
    **{("__builtin__", name): make for name, make in _BUILTINS.items()},  # Python 2
}
