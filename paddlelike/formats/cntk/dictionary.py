"""CNTK's dictionaries as Python values, and back: the bytes of models and checkpoints.

A file is one serialized message. Its shapes are column-major: reversed, they are numpy's shapes in C order.
CNTK's Int is an ``int`` here, SizeT is :class:`SizeT`, Double a ``float``, Float a ``numpy.float32``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.errors import FormatError
from paddlelike.formats.cntk.schema import make_dictionary, parse_dictionary
from paddlelike.formats.elements import check_shape
from paddlelike.foundation.protobuf import Message

Array = np.ndarray[Any, Any]

LARGEST: Final = (1 << 31) - (1 << 20)  # bytes of a message that protobuf reads, with some reserve
_VERSION: Final = 2
_DENSE: Final = 0


class SizeT(int):
    """An integer from 0 to 2^64 - 1, for counts and for codes of kinds."""


class Shape(tuple[int, ...]):
    """A shape in numpy's order; the file has the reverse order."""

    __slots__ = ()


class Axis(NamedTuple):
    """An axis: a static one by its index from the last dim of a numpy shape, or a dynamic one."""

    static_index: int
    name: str = ""
    ordered: bool = False


class _Elements(NamedTuple):
    """The dtype and layout of an array's elements in the file."""

    number: int  # NDArrayView.DataType
    field: str
    stored: str  # the numpy type in the file


_ELEMENTS: Final[dict[np.dtype[Any], _Elements]] = {
    np.dtype("float32"): _Elements(1, "float_values", "<f4"),
    np.dtype("float64"): _Elements(2, "double_values", "<f8"),
    np.dtype("float16"): _Elements(4, "float_values", "<f4"),
    np.dtype("int8"): _Elements(5, "bytes_value", "<i1"),
    np.dtype("int16"): _Elements(6, "sint32_values", ""),
}
_DTYPES: Final = {row.number: dtype for dtype, row in _ELEMENTS.items()}


def encode(values: Mapping[str, Any]) -> bytes:
    """Return a dictionary as the bytes of a file, with its entries in order.

    Raises
    ------
    FormatError
        A value has a type that CNTK's dictionaries do not have, or the file would be over 2 GB.

    >>> encode({"a": SizeT(3)}).hex(" ")
    '08 02 12 0b 0a 01 61 12 06 08 02 10 03 28 03'
    """
    message = make_dictionary()
    _fill_dictionary(message, values)
    size = message.ByteSize()
    if size > LARGEST:
        raise FormatError(f"a CNTK file of {size} bytes: a message of protobuf has at most {LARGEST}")
    return bytes(message.SerializeToString(deterministic=True))


def decode(data: bytes) -> dict[str, Any]:
    """Return the dictionary in the bytes of a file. Its arrays are read-only views where possible.

    Raises
    ------
    FormatError
        The bytes are damaged, or hold sparse arrays.

    >>> decode(encode({"w": np.float32([[1, 2]]), "axis": Axis(0), "n": None}))
    {'w': array([[1., 2.]], dtype=float32), 'axis': Axis(static_index=0, name='', ordered=False), 'n': None}
    """
    if len(data) > LARGEST:
        raise FormatError(f"the file has {len(data)} bytes; models over 2 GB are not read")
    return _read_dictionary(parse_dictionary(data), "")


# Python to messages


def _fill_dictionary(message: Message, values: Mapping[str, Any]) -> None:
    message.version = _VERSION
    for key, value in values.items():
        if not isinstance(key, str):
            raise FormatError(f"a dictionary of CNTK has texts as keys, not {key!r:.40}")
        entry = message.data.add(key=key)
        _fill_value(entry.value, value, key)


def _fill_value(message: Message, value: object, where: str) -> None:
    message.version = _VERSION
    for kind, (matches, fill) in enumerate(_WRITERS):
        if matches(value):
            if kind:
                message.value_type = kind
            fill(message, value, where)
            return
    raise FormatError(
        f"{where}: CNTK's dictionaries hold no {type(value).__name__}: {value!r:.80}",
        hint="None, bool, int, float, str, list, dict, arrays of float16, float32, float64, int8 or int16",
    )


def _put(field: str) -> Callable[[Message, Any, str], None]:
    return lambda message, value, where: setattr(message, field, value)


def _fill_shape(message: Message, value: Sequence[int]) -> None:
    message.SetInParent()
    message.shape_dim.extend(reversed(value))


def _fill_axis(message: Message, value: Axis, where: str) -> None:
    axis = message.axis_value
    axis.SetInParent()
    axis.static_axis_idx, axis.name, axis.is_ordered_dynamic_axis = value


def _fill_vector(message: Message, value: Sequence[Any], where: str) -> None:
    message.vector_value.SetInParent()
    for index, item in enumerate(value):
        _fill_value(message.vector_value.value.add(), item, f"{where}.{index}")


def _fill_array(message: Message, value: Array, where: str) -> None:
    row = _ELEMENTS.get(value.dtype.newbyteorder("="))
    if row is None:
        known = ", ".join(str(dtype) for dtype in _ELEMENTS)
        raise FormatError(f"{where}: CNTK's arrays are {known}, not {value.dtype}")
    view = message.nd_array_view_value
    view.data_type = row.number
    _fill_shape(view.shape, value.shape)
    elements = getattr(view, row.field)
    if row.stored:
        elements.value = np.asarray(value, row.stored, order="C").tobytes()
    else:
        elements.SetInParent()
        elements.value.extend(value.ravel().tolist())


_Writer = tuple[Callable[[Any], bool], Callable[[Message, Any, str], None]]

#: By the number of the type: what is of this type, and what fills the message.
_WRITERS: Final[tuple[_Writer, ...]] = (
    (lambda v: v is None, lambda m, v, w: None),
    (lambda v: isinstance(v, bool), _put("bool_value")),
    (
        lambda v: isinstance(v, int) and not isinstance(v, SizeT | bool) and -(2**31) <= v < 2**31,
        _put("int_value"),
    ),
    (lambda v: isinstance(v, int) and 0 <= v < 2**64, _put("size_t_value")),
    (lambda v: isinstance(v, np.float32), lambda m, v, w: setattr(m, "float_value", float(v))),
    (lambda v: isinstance(v, float), _put("double_value")),
    (lambda v: isinstance(v, str), _put("string_value")),
    (lambda v: isinstance(v, Shape), lambda m, v, w: _fill_shape(m.nd_shape_value, v)),
    (lambda v: isinstance(v, Axis), _fill_axis),
    (lambda v: isinstance(v, list), _fill_vector),
    (lambda v: isinstance(v, dict), lambda m, v, w: _fill_dictionary(m.dictionary_value, v)),
    (lambda v: isinstance(v, np.ndarray), _fill_array),
)


# Messages to Python


def _read_dictionary(message: Message, where: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for entry in message.data:
        name = f"{where}.{entry.key}" if where else entry.key
        if entry.key in found:
            raise FormatError(f"two values have the key {name!r:.200}")
        found[entry.key] = _read_value(entry.value, name)
    return found


def _read_value(message: Message, where: str) -> object:
    kind = message.value_type
    if not 0 <= kind < len(_READERS):
        raise FormatError(f"{where:.200}: a value has type {kind}, which CNTK does not have")
    field, read = _READERS[kind]
    if not field:
        return None
    if message.WhichOneof("one") != field:
        raise FormatError(f"{where:.200}: a value of type {kind} lacks its {field}")
    return read(getattr(message, field), where)


def _read_array(view: Message, where: str) -> Array:
    dtype = _DTYPES.get(view.data_type)
    if dtype is None or view.storage_format != _DENSE:
        raise FormatError(
            f"{where:.200}: an array of element type {view.data_type}, storage {view.storage_format}",
            hint="dense arrays of float16, float32, float64, int8 and int16 are read",
        )
    row, shape = _ELEMENTS[dtype], _read_shape(view.shape, where)
    if view.WhichOneof("one") != row.field:
        raise FormatError(f"{where:.200}: an array of {dtype} lacks its {row.field}")
    count, elements = math.prod(shape), getattr(view, row.field).value
    itemsize = np.dtype(row.stored).itemsize if row.stored else 1
    if len(elements) != count * itemsize:
        raise FormatError(
            f"{where:.200}: {dtype} {list(shape)} has {count} elements, the file {len(elements) / itemsize:g}"
        )
    if row.stored:
        # float16 is kept as float32, which can be any number in a damaged file
        with np.errstate(over="ignore"):
            return np.frombuffer(elements, row.stored).astype(dtype, copy=False).reshape(shape)
    if any(not -(2**15) <= one < 2**15 for one in elements):
        raise FormatError(f"{where:.200}: elements are beyond the range of int16")
    return np.array(elements, dtype).reshape(shape)


def _read_shape(message: Message, where: str) -> Shape:
    shape = Shape(reversed(message.shape_dim))
    check_shape(f"{where:.200}", shape, 8)
    return shape


def _read_axis(message: Message, where: str) -> Axis:
    return Axis(message.static_axis_idx, message.name, message.is_ordered_dynamic_axis)


def _read_vector(message: Message, where: str) -> list[Any]:
    return [_read_value(item, f"{where}.{index}") for index, item in enumerate(message.value)]


def _read_plain(value: object, where: str) -> object:
    return value


_READERS: Final[tuple[tuple[str, Callable[[Any, str], Any]], ...]] = (
    ("", _read_plain),
    ("bool_value", _read_plain),
    ("int_value", _read_plain),
    ("size_t_value", lambda value, where: SizeT(value)),
    ("float_value", lambda value, where: np.float32(value)),
    ("double_value", _read_plain),
    ("string_value", _read_plain),
    ("nd_shape_value", lambda value, where: Shape(reversed(value.shape_dim))),
    ("axis_value", _read_axis),
    ("vector_value", _read_vector),
    ("dictionary_value", _read_dictionary),
    ("nd_array_view_value", _read_array),
)
