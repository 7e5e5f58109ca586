"""``fluid.proto.framework_pb2``: ProgramDesc and the messages below it.

>>> from paddlelike.fluid.proto import framework_pb2
>>> framework_pb2.VarType.FP32, framework_pb2.VarType.TensorDesc(data_type=5).data_type
(5, 5)
>>> framework_pb2.AttrType.Name(0), framework_pb2.AttrType.Value("FLOAT"), framework_pb2.INT
('INT', 1, 0)
"""

from __future__ import annotations

from typing import Any

from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

from paddlelike.framework.codec.schema import Messages, messages

__all__ = list(Messages.__dataclass_fields__)


def __getattr__(name: str) -> Any:
    """Return a class of messages, or an enum; AttributeError for any other name."""
    if name in __all__:
        return getattr(messages(), name)
    enum = messages().ProgramDesc.DESCRIPTOR.file.enum_types_by_name["AttrType"]
    if name == "AttrType":
        return EnumTypeWrapper(enum)
    if name in enum.values_by_name:  # the types of attributes are names of the module
        return enum.values_by_name[name].number
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
