"""The messages of a saved program (``__model__``, ``.pdmodel``), built from the table in ``schema.txt``.

Paddle's framework.proto is proto2, package ``paddle.framework.proto``; repeated integers are unpacked. The
table covers both 1.8 and 2.x, whose field ids do not clash.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import Any, Final

from paddlelike.core import AttrType, VarType
from paddlelike.errors import FormatError
from paddlelike.foundation.protobuf import MessageClass, make_classes
from paddlelike.foundation.text_tables import read_table
from paddlelike.lazy import dataclass


class _ScalarType(IntEnum):
    BOOLEAN = 1
    LONG = 2
    FLOAT64 = 3
    COMPLEX128 = 4


class _Compatibility(IntEnum):
    COMPATIBLE = 0
    DEFINITELY_NOT = 1
    POSSIBLE = 2
    BUG_FIX = 3
    PRECISION_CHANGE = 4


_ENUMS: Final[dict[str, type[IntEnum]]] = {
    "AttrType": AttrType,
    "VarType.Type": VarType,
    "Scalar.Type": _ScalarType,
    "CompatibleInfo.Type": _Compatibility,
}


@dataclass(frozen=True)
class Messages:
    """The message classes. Nested ones are attributes: ``OpDesc.Attr``, ``VarType.TensorDesc``."""

    ProgramDesc: MessageClass
    BlockDesc: MessageClass
    VarDesc: MessageClass
    VarType: MessageClass
    OpDesc: MessageClass
    Version: MessageClass
    OpCompatibleMap: MessageClass
    CompatibleInfo: MessageClass
    OpVersionMap: MessageClass
    OpVersion: MessageClass
    OpProto: MessageClass
    Scalar: MessageClass
    Complex: MessageClass


@lru_cache(maxsize=1)
def messages() -> Messages:
    """Return the message classes, created at the first call.

    >>> m = messages()
    >>> var = m.VarDesc(name="x", type=m.VarType(type=VarType.LOD_TENSOR))
    >>> var.type.lod_tensor.tensor.data_type = VarType.FP32
    >>> var.type.lod_tensor.tensor.dims.extend([-1, 13])
    >>> m.VarDesc.FromString(var.SerializeToString()) == var
    True
    """
    table = read_table("paddlelike.framework.codec", "schema.txt")
    get_class = make_classes(table, "paddle.framework.proto", "proto2", _ENUMS)
    return Messages(**{name: get_class(name) for name in Messages.__dataclass_fields__})


def make_scalar(value: bool | int | float) -> Any:
    """Return a number as a Scalar, the element of attributes of the types SCALAR and SCALARS."""
    if isinstance(value, bool):
        return messages().Scalar(type=_ScalarType.BOOLEAN, b=value)
    if isinstance(value, int):
        return messages().Scalar(type=_ScalarType.LONG, i=value)
    return messages().Scalar(type=_ScalarType.FLOAT64, r=value)


def parse(message: MessageClass, data: bytes) -> Any:
    """Return ``data`` as a message of that class.

    Raises
    ------
    FormatError
        The bytes are not such a message, or it lacks a required field.

    >>> parse(messages().BlockDesc, bytes.fromhex("0800 10ff ffff ffff ffff ff01")).parent_idx
    -1
    """
    from google.protobuf.message import DecodeError

    parsed = message()
    name = parsed.DESCRIPTOR.name
    try:
        parsed.MergeFromString(data)
    except (DecodeError, ValueError) as error:  # ValueError: text that is not UTF-8, in some versions
        raise FormatError(f"{len(data)} bytes are not a valid {name}: {error}") from error
    if not parsed.IsInitialized():
        missing = parsed.FindInitializationErrors()
        raise FormatError(
            f"a {name} lacks the fields {', '.join(missing[:3])}{' and more' * (len(missing) > 3)}",
            hint="it is damaged, or written by a Paddle newer than 3.3",
        )
    return parsed
