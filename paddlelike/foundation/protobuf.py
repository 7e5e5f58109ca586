"""Classes of protobuf messages, made from a table when they are first needed.

A line of a table is a field: id, label, type, name, perhaps ``= default``, then a remark. The fields labelled
``oneof`` of one message exclude each other; a dotted message is nested in the message before the dot. The
classes are in a separate pool of the protobuf library (3.20 or later), since Paddle's may be in the default
pool. Fields that are not in the table are kept and written back unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Final

Message = Any  # made at run time: no type checker knows its fields
MessageClass = Any

_LINE: Final = re.compile(r"    (\d+) +(\w+) +([\w.]+) +(\w+)(?: = (\S+))?(?:  .*)?")


def make_classes(
    table: str, package: str, syntax: str, enums: Mapping[str, type[IntEnum]]
) -> Callable[[str], MessageClass]:
    """Return a function that maps a message's name in the table to its class.

    ``package`` is the name of the messages' package, ``syntax`` "proto2" or "proto3". ``enums`` are the
    types that are enumerations; they may be nested like messages.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax=syntax)
    created: dict[str, Any] = {}

    def inside(name: str) -> tuple[Any, str]:
        outer, _, own = name.rpartition(".")
        return (created[outer] if outer else file), own

    for name, *lines in map(str.splitlines, table.strip().split("\n\n")):
        parent, own = inside(name)
        created[name] = (parent.nested_type if name != own else file.message_type).add(name=own)
        for line in lines:
            _add_field(created[name], line, package, enums)
    for name, values in enums.items():
        parent, own = inside(name)
        enum = parent.enum_type.add(name=own)
        for value in values:
            enum.value.add(name=value.name, number=value)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())

    def get_class(name: str) -> MessageClass:
        descriptor = pool.FindMessageTypeByName(f"{package}.{name}")
        if hasattr(message_factory, "GetMessageClass"):
            return message_factory.GetMessageClass(descriptor)
        factory: Any = message_factory.MessageFactory(pool)  # before protobuf 4.22
        return factory.GetPrototype(descriptor)

    return get_class


def _add_field(message: Any, line: str, package: str, enums: Mapping[str, type[IntEnum]]) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    match = _LINE.fullmatch(line)
    assert match, line
    number, label, kind, name, default = match.groups()
    field = message.field.add(name=name, number=int(number), default_value=default)
    if label == "oneof":
        if not message.oneof_decl:
            message.oneof_decl.add(name="one")
        field.oneof_index, label = 0, "optional"
    field.label = FieldDescriptorProto.Label.Value(f"LABEL_{label.upper()}")
    if kind.islower():
        field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
    else:
        is_enum = kind in enums
        field.type = FieldDescriptorProto.TYPE_ENUM if is_enum else FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = f".{package}.{kind}"
