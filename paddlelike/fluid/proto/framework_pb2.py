"""``fluid.proto.framework_pb2``: ProgramDesc and the messages below it.

>>> from paddlelike.fluid.proto import framework_pb2
>>> framework_pb2.VarType.FP32, framework_pb2.VarType.TensorDesc(data_type=5).data_type
(5, 5)
"""

from __future__ import annotations

from typing import Any

from paddlelike.framework.codec.schema import Messages, messages

__all__ = list(Messages.__dataclass_fields__)


def __getattr__(name: str) -> Any:
    """Return a class of messages, or an enum; AttributeError for any other name."""
    if name in __all__:
        return getattr(messages(), name)
    if name == "AttrType" or name in _attr_types():
        values = _attr_types()
        return values if name == "AttrType" else values[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _attr_types() -> dict[str, int]:
    """Return the numbers of the types of attributes, which are names of the module."""
    enum = messages().ProgramDesc.DESCRIPTOR.file.enum_types_by_name["AttrType"]
    return {value.name: value.number for value in enum.values}
