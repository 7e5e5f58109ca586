"""The messages of CNTK's dictionaries, built from the table below at their first use.

The source is CNTK.proto of CNTK 2.7 (proto3). Two things are declared in another way, with the same bytes: a
map is its repeated entries, so that their order is ours, and packed float elements are ``bytes``, so that
they become arrays at once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from paddlelike.errors import FormatError

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

__all__ = ["Message", "make_dictionary", "parse_dictionary"]

Message = Any  # made at run time: no type checker knows its fields

# field id, label, type, name; those after "oneof" of one message exclude each other
_TABLE: Final = """
Dictionary
    1  optional uint64           version
    2  repeated Entry            data

Entry
    1  optional string           key
    2  optional DictionaryValue  value

DictionaryValue
    1  optional uint64           version
    2  optional uint32           value_type
    3  oneof    bool             bool_value
    4  oneof    int32            int_value
    5  oneof    uint64           size_t_value
    6  oneof    float            float_value
    7  oneof    double           double_value
    8  oneof    string           string_value
    9  oneof    NDShape          nd_shape_value
    10 oneof    Axis             axis_value
    11 oneof    Vector           vector_value
    12 oneof    Dictionary       dictionary_value
    13 oneof    NDArrayView      nd_array_view_value

NDShape
    1  repeated uint64           shape_dim

Axis
    1  optional int32            static_axis_idx
    2  optional string           name
    3  optional bool             is_ordered_dynamic_axis

Vector
    1  repeated DictionaryValue  value

NDArrayView
    1  optional uint32           data_type
    2  optional uint32           storage_format
    3  optional NDShape          shape
    4  oneof    Elements         float_values
    5  oneof    Elements         double_values
    6  oneof    Elements         bytes_value
    7  oneof    Integers         sint32_values

Elements
    1  optional bytes            value

Integers
    1  repeated sint32           value
"""

_PACKAGE: Final = "paddlelike.cntk"


@lru_cache(maxsize=1)
def _dictionary_class() -> Message:
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(_build_file().SerializeToString())
    descriptor = pool.FindMessageTypeByName(f"{_PACKAGE}.Dictionary")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    before_4_22 = message_factory.MessageFactory(pool)
    return before_4_22.GetPrototype(descriptor)  # type: ignore[attr-defined]


def make_dictionary() -> Message:
    """Return an empty ``Dictionary``."""
    return _dictionary_class()()


def parse_dictionary(data: bytes) -> Message:
    """Return the ``Dictionary`` that ``data`` is.

    Raises
    ------
    FormatError
        The bytes are none, or nested deeper than protobuf reads.

    >>> parse_dictionary(bytes.fromhex("08021204 0a026b31")).data[0].key
    'k1'
    """
    from google.protobuf.message import DecodeError

    message = make_dictionary()
    try:
        message.MergeFromString(data)
    except (DecodeError, ValueError, RecursionError) as error:  # ValueError: text that is not UTF-8
        raise FormatError(
            f"{len(data)} bytes are no dictionary of CNTK: {error!s:.200}",
            hint="the file is damaged, was cut, or is of another system",
        ) from error
    return message


def _build_file() -> FileDescriptorProto:
    """Return the table as a FileDescriptorProto."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

    file = FileDescriptorProto(name="paddlelike/cntk.proto", package=_PACKAGE, syntax="proto3")
    for name, *lines in map(str.splitlines, _TABLE.strip().split("\n\n")):
        message = file.message_type.add(name=name)
        for number, label, kind, field_name in map(str.split, lines):
            field = message.field.add(name=field_name, number=int(number))
            one = "OPTIONAL" if label == "oneof" else label.upper()
            field.label = FieldDescriptorProto.Label.Value(f"LABEL_{one}")
            if label == "oneof":
                if not message.oneof_decl:
                    message.oneof_decl.add(name="one")
                field.oneof_index = 0
            if kind.islower() or kind[:4] in ("uint", "sint"):
                field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
            else:
                field.type = FieldDescriptorProto.TYPE_MESSAGE
                field.type_name = f".{_PACKAGE}.{kind}"
    return file
