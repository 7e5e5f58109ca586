"""Write a state file: the pickle that CPython makes of ``{name: array}`` with numpy 1.x, by protocol 2."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from paddlelike.core import Array
from paddlelike.errors import FormatError
from paddlelike.formats.elements import view_elements
from paddlelike.formats.sources import Buffer

_BATCH: Final = 1000  # items that pickle puts into a dict at once
_PIECE: Final = 1 << 20  # bytes that are encoded at once
_MAX_TEXT: Final = 2**32 - 1
_LATIN1: Final = object()  # the key of the text "latin1", which the pickler remembers by identity


class StateWriter:
    """Writes ``{name: array}`` as CPython's C pickler does for numpy 1.x, by protocol 2.

    The pickler's memo compares objects by identity. CPython has a single object for each text of one
    character and for each byte string of at most one byte, so these are compared by value here.
    """

    def __init__(self) -> None:
        self._out = bytearray(pickle.PROTO + b"\x02")
        self._memo: dict[Any, int] = {}
        self._next = 0

    def write(self, values: Mapping[str, Array | bytes]) -> Iterator[Buffer]:
        """Yield the pickle of ``values``: arrays, and opcodes that push a value."""
        self._put(pickle.EMPTY_DICT)
        items = list(values.items())
        if len(items) == 1:
            yield from self._item(*items[0])
            self._out += pickle.SETITEM
        elif items:
            # a last, empty batch follows when the others are full
            for start in range(0, len(items) // _BATCH * _BATCH + 1, _BATCH):
                self._out += pickle.MARK
                for name, array in items[start : start + _BATCH]:
                    yield from self._item(name, array)
                self._out += pickle.SETITEMS
        self._out += pickle.STOP
        yield bytes(self._out)

    def _item(self, name: str, array: Array | bytes) -> Iterator[Buffer]:
        self._text(name)
        if isinstance(array, bytes):
            self._out += array
            return
        self._reference("numpy.core.multiarray", "_reconstruct")
        self._reference("numpy", "ndarray")
        self._out += pickle.BININT1 + b"\0"
        self._put(pickle.TUPLE1)
        self._short_bytes(b"b")
        self._put(pickle.TUPLE3)
        self._put(pickle.REDUCE)

        self._out += pickle.MARK + pickle.BININT1 + b"\1"
        self._shape(array.shape)
        self._dtype(array.dtype)
        self._out += pickle.NEWFALSE  # Fortran order
        yield from self._elements(name, array)
        self._put(pickle.TUPLE)
        self._out += pickle.BUILD

    def _elements(self, name: str, array: Array) -> Iterator[Buffer]:
        data = view_elements(array)
        if len(data) < 2:
            self._short_bytes(bytes(data))
            return
        self._reference("_codecs", "encode")
        high = sum(
            int(np.count_nonzero(np.frombuffer(data[at : at + _PIECE], np.int8) < 0))
            for at in range(0, len(data), _PIECE)
        )
        if len(data) + high > _MAX_TEXT:
            raise FormatError(
                f"{name!r} has {len(data)} bytes, more than the 4 GiB that pickle protocol 2 can hold",
                hint="save it with fluid.io.save_persistables, which has no such limit",
            )
        self._out += pickle.BINUNICODE + (len(data) + high).to_bytes(4, "little")
        yield bytes(self._out)
        self._out.clear()
        for at in range(0, len(data), _PIECE):
            yield str(data[at : at + _PIECE], "latin1").encode()
        self._put(b"")
        self._latin1()

    def _shape(self, shape: tuple[int, ...]) -> None:
        if not shape:
            self._out += pickle.EMPTY_TUPLE
            return
        if len(shape) > 3:
            self._out += pickle.MARK
        for dim in shape:
            self._int(dim)
        self._put(
            [pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3][len(shape) - 1] if len(shape) < 4 else pickle.TUPLE
        )

    def _int(self, value: int) -> None:
        if value < 1 << 8:
            self._out += pickle.BININT1 + value.to_bytes(1, "little")
        elif value < 1 << 16:
            self._out += pickle.BININT2 + value.to_bytes(2, "little")
        elif value < 1 << 31:
            self._out += pickle.BININT + value.to_bytes(4, "little")
        else:
            size = value.bit_length() // 8 + 1
            self._out += pickle.LONG1 + bytes([size]) + value.to_bytes(size, "little")

    def _dtype(self, dtype: np.dtype[Any]) -> None:
        dtype = dtype.newbyteorder("<")
        if dtype.kind not in "biufc":
            raise FormatError(f"an array of {dtype} cannot be saved")
        if self._refer(dtype):
            return
        self._reference("numpy", "dtype")
        self._text(f"{dtype.kind}{dtype.itemsize}")
        self._out += pickle.NEWFALSE + pickle.NEWTRUE
        self._put(pickle.TUPLE3)
        self._put(pickle.REDUCE, dtype)
        self._out += pickle.MARK + pickle.BININT1 + b"\3"
        self._text("|" if dtype.itemsize == 1 else "<")
        self._out += pickle.NONE * 3 + (pickle.BININT + b"\xff" * 4) * 2 + pickle.BININT1 + b"\0"
        self._put(pickle.TUPLE)
        self._out += pickle.BUILD

    def _short_bytes(self, data: bytes) -> None:
        """Write a byte string of at most one byte, as an encoded text or as a call of bytes()."""
        if self._refer(data):
            return
        if data:
            self._reference("_codecs", "encode")
            self._text(data.decode("latin1"))
            self._latin1(data)
        else:
            self._reference("__builtin__", "bytes")
            self._out += pickle.EMPTY_TUPLE
            self._put(pickle.REDUCE, data)

    def _latin1(self, key: bytes | None = None) -> None:
        """Write the opcodes that follow the text in a call of ``_codecs.encode``."""
        if not self._refer(_LATIN1):
            self._text("latin1", key=_LATIN1)
        self._put(pickle.TUPLE2)
        self._put(pickle.REDUCE, key)

    def _text(self, text: str, *, key: object = None) -> None:
        if key is None and len(text) == 1 and text < "\u0100":
            key = text
        if key is not None and self._refer(key):
            return
        data = text.encode("utf-8", "surrogatepass")
        self._out += pickle.BINUNICODE + len(data).to_bytes(4, "little") + data
        self._put(b"", key)

    def _reference(self, module: str, name: str) -> None:
        if not self._refer((module, name)):
            self._put(pickle.GLOBAL + f"{module}\n{name}\n".encode(), (module, name))

    def _refer(self, key: object) -> bool:
        """Write a reference to the object remembered under ``key``; return False if there is none."""
        index = self._memo.get(key)
        if index is None:
            return False
        short = index < 256
        self._out += (pickle.BINGET if short else pickle.LONG_BINGET) + index.to_bytes(
            1 if short else 4, "little"
        )
        return True

    def _put(self, opcode: bytes, key: object = None) -> None:
        """Write an opcode and remember the object that it creates."""
        index, self._next = self._next, self._next + 1
        if key is not None:
            self._memo[key] = index
        short = index < 256
        self._out += opcode + (pickle.BINPUT if short else pickle.LONG_BINPUT)
        self._out += index.to_bytes(1 if short else 4, "little")
