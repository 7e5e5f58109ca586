"""Pickles of plain values, and of references to classes and functions that need not exist here.

Python's own pickler imports the classes it refers to. This writer writes only names, so a file can name a
class of another system. Every Python from 2.3 on reads its protocol 2.
"""

from __future__ import annotations

import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, Final

from paddlelike.errors import SaveError
from paddlelike.formats.state.machine import Reference
from paddlelike.lazy import dataclass

__all__ = ["Instance", "Reference", "encode_item", "encode_plain", "encode_text"]


@dataclass(frozen=True, eq=False)
class Instance:
    """An object to be written: its class, and its attributes."""

    kind: Reference
    state: dict[str, Any]


def encode_plain(value: object) -> bytes:
    """Return the pickle of a value made of numbers, texts, None, tuples, lists, dicts, references and
    instances.

    Raises SaveError for any other value.

    >>> pickle.loads(encode_plain((2, [0.5, None], {"a": True})))
    (2, [0.5, None], {'a': True})
    """
    return pickle.PROTO + b"\x02" + encode_item(value) + pickle.STOP


def encode_item(value: object) -> bytes:
    """Return the opcodes that push a value. Raises SaveError as :func:`encode_plain`."""
    encode = _ENCODERS.get(type(value))
    if encode is None:
        raise SaveError(
            f"a value of {type(value).__module__}.{type(value).__qualname__} cannot be written",
            hint="a spec holds numbers, texts, None, tuples, lists, dicts, classes and named functions",
        )
    return encode(value)


def _encode_reference(value: Reference) -> bytes:
    return pickle.GLOBAL + f"{value.module}\n{value.name}\n".encode()


def _encode_instance(value: Instance) -> bytes:
    made = _encode_reference(value.kind) + pickle.EMPTY_TUPLE + pickle.NEWOBJ
    return made + _encode_dict(value.state) + pickle.BUILD


def _encode_int(value: int) -> bytes:
    if -(2**31) <= value < 2**31:
        return pickle.BININT + struct.pack("<i", value)
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return pickle.LONG4 + struct.pack("<i", len(raw)) + raw


def encode_text(value: str) -> bytes:
    """Return the opcode that pushes a text."""
    raw = value.encode("utf-8", "surrogatepass")
    return pickle.BINUNICODE + struct.pack("<I", len(raw)) + raw


def _encode_items(begin: bytes, items: Iterable[object], end: bytes) -> bytes:
    return begin + pickle.MARK + b"".join(map(encode_item, items)) + end


def _encode_tuple(value: tuple[Any, ...]) -> bytes:
    return _encode_items(b"", value, pickle.TUPLE)


def _encode_list(value: list[Any]) -> bytes:
    return _encode_items(pickle.EMPTY_LIST, value, pickle.APPENDS)


def _encode_dict(value: dict[Any, Any]) -> bytes:
    return _encode_items(
        pickle.EMPTY_DICT, [part for pair in value.items() for part in pair], pickle.SETITEMS
    )


_ENCODERS: Final[dict[type, Callable[[Any], bytes]]] = {
    type(None): lambda value: pickle.NONE,
    bool: lambda value: pickle.NEWTRUE if value else pickle.NEWFALSE,
    int: _encode_int,
    float: lambda value: pickle.BINFLOAT + struct.pack(">d", value),
    str: encode_text,
    tuple: _encode_tuple,
    list: _encode_list,
    dict: _encode_dict,
    OrderedDict: _encode_dict,
    Reference: _encode_reference,
    Instance: _encode_instance,
}
