"""The messages of a saved program (``__model__``, ``.pdmodel``), built from the table below.

Paddle's framework.proto is proto2, package ``paddle.framework.proto``; all repeated integers are
unpacked. The table covers 1.8 and 2.x together: their field ids do not clash. The protobuf library
creates the classes at the first use, so that any version of it from 3.20 on works. Fields that are not
in the table are kept: they are written back unchanged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final

from paddlelike.core.dtypes import AttrType, VarType
from paddlelike.errors import FormatError

__all__ = ["Messages", "messages", "parse"]

# field id, label, type, name [= default]; a dotted message is nested in the one before the dot
_TABLE: Final = """
ProgramDesc
    1  repeated BlockDesc                 blocks
    3  optional OpCompatibleMap           op_compatible_map       1.6 to 1.8 only
    4  optional Version                   version
    5  optional OpVersionMap              op_version_map          from 2.0 on

Version
    1  optional int64                     version = 0

BlockDesc
    1  required int32                     idx
    2  required int32                     parent_idx              -1 for the first block
    3  repeated VarDesc                   vars
    4  repeated OpDesc                    ops
    5  optional int32                     forward_block_idx = -1

VarDesc
    1  required string                    name
    2  required VarType                   type
    3  optional bool                      persistable = false
    4  optional bool                      need_check_feed = false
    5  optional bool                      is_parameter = false    fields 5 to 7 from 2.0 on
    6  optional bool                      stop_gradient = false
    7  repeated VarDesc.Attr              attrs

VarDesc.Attr
    1  required string                    name
    2  required AttrType                  type
    3  optional int32                     i
    4  optional string                    s
    5  repeated int32                     ints

VarType
    1  required VarType.Type              type
    2  optional VarType.TensorDesc        selected_rows
    3  optional VarType.LoDTensorDesc     lod_tensor
    4  optional VarType.LoDTensorArrayDesc tensor_array
    5  optional VarType.ReaderDesc        reader
    7  optional VarType.Tuple             tuple
    8  optional VarType.TensorDesc        string                  fields 8 to 12 from 2.x on
    9  optional VarType.TensorDesc        strings
    10 optional VarType.TensorDesc        vocab
    11 optional VarType.TensorDesc        sparse_coo
    12 optional VarType.TensorDesc        sparse_csr

VarType.TensorDesc
    1  required VarType.Type              data_type
    2  repeated int64                     dims                    -1 is not known

VarType.LoDTensorDesc
    1  required VarType.TensorDesc        tensor
    2  optional int32                     lod_level = 0

VarType.LoDTensorArrayDesc
    1  required VarType.TensorDesc        tensor
    2  optional int32                     lod_level = 0

VarType.ReaderDesc
    1  repeated VarType.LoDTensorDesc     lod_tensor

VarType.Tuple
    1  repeated VarType.Type              element_type

OpDesc
    1  repeated OpDesc.Var                inputs
    2  repeated OpDesc.Var                outputs
    3  required string                    type
    4  repeated OpDesc.Attr               attrs
    5  optional bool                      is_target = false

OpDesc.Var
    1  required string                    parameter               the slot
    2  repeated string                    arguments               names of variables

OpDesc.Attr
    1  required string                    name
    2  required AttrType                  type
    3  optional int32                     i
    4  optional float                     f
    5  optional string                    s
    6  repeated int32                     ints
    7  repeated float                     floats
    8  repeated string                    strings
    10 optional bool                      b
    11 repeated bool                      bools
    12 optional int32                     block_idx
    13 optional int64                     l
    14 repeated int32                     blocks_idx
    15 repeated int64                     longs
    16 repeated double                    float64s                fields 16 to 21 from 2.x on
    17 optional string                    var_name
    18 repeated string                    vars_name
    19 optional double                    float64
    20 optional Scalar                    scalar
    21 repeated Scalar                    scalars

Scalar
    1  required Scalar.Type               type
    2  optional bool                      b
    3  optional int64                     i
    4  optional double                    r
    5  optional Complex                   c

Complex
    1  required double                    r
    2  required double                    i

OpCompatibleMap
    1  repeated OpCompatibleMap.OpCompatiblePair pair
    2  optional string                    default_required_version

OpCompatibleMap.OpCompatiblePair
    1  required string                    op_name
    2  required CompatibleInfo            compatible_info

CompatibleInfo
    1  required string                    version
    2  required CompatibleInfo.Type       type

OpVersionMap
    1  repeated OpVersionMap.OpVersionPair pair

OpVersionMap.OpVersionPair
    1  required string                    op_name
    2  required OpVersion                 op_version

OpVersion
    1  required int32                     version
"""


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

_PACKAGE: Final = "paddle.framework.proto"
_LINE: Final = re.compile(r"    (\d+) +(\w+) +([\w.]+) +(\w+)(?: = (\S+))?(?:  .*)?")

MessageClass = Any  # made at run time: no type checker knows its fields


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
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()  # not the default pool: it may hold Paddle's classes
    pool.AddSerializedFile(_build_file().SerializeToString())

    def message_class(name: str) -> MessageClass:
        descriptor = pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")
        if hasattr(message_factory, "GetMessageClass"):
            return message_factory.GetMessageClass(descriptor)
        factory: Any = message_factory.MessageFactory(pool)  # before protobuf 4.22
        return factory.GetPrototype(descriptor)

    return Messages(**{name: message_class(name) for name in Messages.__dataclass_fields__})


def parse(message: MessageClass, data: bytes) -> Any:
    """Return ``data`` as a message of that class.

    Raises
    ------
    FormatError
        When the bytes are no such message, or one without a required field.

    >>> parse(messages().BlockDesc, bytes.fromhex("0800 10ff ffff ffff ffff ff01")).parent_idx
    -1
    """
    from google.protobuf.message import DecodeError

    parsed = message()
    name = parsed.DESCRIPTOR.name
    try:
        parsed.MergeFromString(data)
    except (
        DecodeError,
        ValueError,
    ) as error:  # ValueError: text that is not UTF-8, in some versions
        raise FormatError(f"{len(data)} bytes are not a valid {name}: {error}") from error
    if not parsed.IsInitialized():
        missing = parsed.FindInitializationErrors()
        raise FormatError(
            f"a {name} lacks the fields {', '.join(missing[:3])}{' and more' * (len(missing) > 3)}",
            hint="it is damaged, or written by a Paddle newer than 3.3",
        )
    return parsed


def _build_file() -> Any:
    """Return the table as a FileDescriptorProto."""
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(
        name="paddlelike/framework.proto", package=_PACKAGE, syntax="proto2"
    )
    created: dict[str, Any] = {}

    def inside(name: str) -> tuple[Any, str]:
        outer, _, own = name.rpartition(".")
        return (created[outer] if outer else file), own

    for name, *lines in map(str.splitlines, _TABLE.strip().split("\n\n")):
        parent, own = inside(name)
        message = (parent.nested_type if name != own else file.message_type).add(name=own)
        created[name] = message
        for line in lines:
            _add_field(message, line)
    for name, values in _ENUMS.items():
        parent, own = inside(name)
        enum = parent.enum_type.add(name=own)
        for value in values:
            enum.value.add(name=value.name, number=value)
    return file


def _add_field(message: Any, line: str) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    match = _LINE.fullmatch(line)
    assert match, line
    number, label, kind, name, default = match.groups()
    field = message.field.add(
        name=name,
        number=int(number),
        label=FieldDescriptorProto.Label.Value(f"LABEL_{label.upper()}"),
    )
    if kind.islower():
        field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
    else:
        is_enum = kind in _ENUMS
        field.type = FieldDescriptorProto.TYPE_ENUM if is_enum else FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}"
    if default is not None:
        field.default_value = default
