"""Program -> ProgramDesc, Paddle's protobuf encoding of a program.

An unchanged part that was decoded from a message is written as that message, so that operators and fields of
other Paddle versions are kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final

from paddlelike.core import AttrType
from paddlelike.errors import GraphError
from paddlelike.foundation.garbage import pause_collection
from paddlelike.framework.codec.fields import (
    ATTR_FIELDS,
    REPEATED,
    TENSOR_FIELDS,
    VariableFields,
    read_attr,
    read_variable,
)
from paddlelike.framework.codec.schema import messages
from paddlelike.framework.environment import PADDLE_VERSION, add_operator_versions
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.order import order_as_hashed, order_attributes
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable

_BLOCKS: Final = (AttrType.BLOCK, AttrType.BLOCKS)
_SHORT: Final = 16  # length of lists that are encoded once for many operators
Parts = dict[Hashable | None, bytes]


@pause_collection
def encode_program(program: Program) -> bytes:
    """Return the program as bytes; equal programs give equal bytes. Raises GraphError."""
    try:
        return bytes(build_message(program).SerializeToString(deterministic=True))
    except (ValueError, TypeError) as error:
        raise GraphError(f"the program cannot be encoded: {error}") from error


def build_message(program: Program, *, by_name: bool = False) -> Any:
    """Return the program as a ProgramDesc message, its variables sorted by name if ``by_name``."""
    message = messages().ProgramDesc()
    if program.encoded is not None:
        message.CopyFrom(program.encoded)
        message.ClearField("blocks")
    else:
        message.version.version = PADDLE_VERSION
    if not program.is_versioned:
        message.ClearField("version")
    if program.has_operator_versions:
        add_operator_versions(message)
    parts: Parts = {}
    for block in program.blocks:
        encode_block(block, message.blocks.add(), parts, by_name=by_name)
    return message


def encode_block(block: Block, message: Any, parts: Parts | None = None, *, by_name: bool = False) -> None:
    """Fill a BlockDesc. ``parts`` are the encoded parts that other blocks share.

    ``by_name`` puts the variables in the order of their names.
    """
    parts = {} if parts is None else parts
    message.idx, message.parent_idx = block.idx, block.parent_idx
    if block.forward_block_idx != -1:
        message.forward_block_idx = block.forward_block_idx
    names: Iterable[str] = block.vars
    if by_name:
        names = sorted(names)
    elif not block.is_ordered:
        names = order_as_hashed(names)
    try:
        for name in names:
            _encode_common_variable(block.vars[name], message.vars.add(), parts)
        for op in block.ops:
            _encode_common_operator(op, message.ops.add(), parts)
    except UnicodeEncodeError as error:
        raise _make_text_error("text", error.object) from error


def _encode_common_variable(variable: Variable, message: Any, parts: Parts) -> None:
    """Fill a VarDesc; fields that many variables share are encoded once."""
    key = _get_variable_key(variable)
    if key in parts:
        message.MergeFromString(parts[key])
        message.name = variable.name
        return
    encode_variable(variable, message)
    if key is not None:
        parts[key] = _encode_without(message, "name")


def _encode_common_operator(op: Operator, message: Any, parts: Parts) -> None:
    """Fill an OpDesc; fields that many operators share are encoded once."""
    key = _get_operator_key(op)
    if key in parts:
        message.MergeFromString(parts[key])
        _encode_slots(op, message)
        return
    encode_operator(op, message)
    if key is not None:
        parts[key] = _encode_without(message, "inputs", "outputs")


def _encode_without(message: Any, *fields: str) -> bytes:
    part = type(message)()
    part.CopyFrom(message)
    for field in fields:
        part.ClearField(field)
    return bytes(part.SerializePartialToString())


def _get_variable_key(variable: Variable) -> Hashable | None:
    """Return a key that variables with different names but equal fields share, or None for an unusual
    variable.
    """
    if variable.encoded is not None or variable.reads:
        return None
    return (
        variable.type,
        variable.dtype,
        variable.shape,
        variable.lod_level,
        variable.declares_lod_level,
        variable.persistable,
        variable.declares_persistable,
        variable.need_check_feed,
    )


def _get_operator_key(op: Operator) -> Hashable | None:
    """Return a key that operators with different slots but equal fields share, or None for an unusual
    operator.
    """
    if op.encoded is not None:
        return None
    for value in op.attrs.values():
        if type(value) is list and len(value) > _SHORT:
            return None
    return op.type, op.attr_passes, op.is_target, repr(op.attrs)  # text distinguishes 1, 1.0 and True


def encode_variable(variable: Variable, message: Any) -> None:
    """Fill a VarDesc."""
    if variable.encoded is not None:
        message.CopyFrom(variable.encoded)
        if _collect_fields(variable) == read_variable(variable.encoded):
            return
    try:
        message.name = variable.name
    except UnicodeEncodeError as error:
        raise _make_text_error("variable", variable.name) from error
    message.type.type = int(variable.type)
    field = TENSOR_FIELDS.get(variable.type)
    for other in TENSOR_FIELDS.values():
        if other != field:
            message.type.ClearField(other)
    if field is not None:
        part = getattr(message.type, field)
        tensor = part if field == "selected_rows" else part.tensor
        tensor.data_type = int(variable.dtype)
        tensor.ClearField("dims")
        tensor.dims.extend(variable.shape)
        if field != "selected_rows" and (variable.lod_level or variable.declares_lod_level):
            part.lod_level = variable.lod_level
    if variable.reads:
        message.type.reader.ClearField("lod_tensor")
    for dtype, shape, lod_level in variable.reads:
        part = message.type.reader.lod_tensor.add()
        part.tensor.data_type, part.lod_level = int(dtype), lod_level
        part.tensor.dims.extend(shape)
    if variable.persistable or variable.declares_persistable or message.HasField("persistable"):
        message.persistable = variable.persistable
    if variable.need_check_feed or message.HasField("need_check_feed"):
        message.need_check_feed = variable.need_check_feed


def _make_text_error(what: str, text: str) -> GraphError:
    return GraphError(
        f"{what} {text!r} cannot be in a ProgramDesc: it cannot be encoded as UTF-8",
        hint="rename the variable (ParamAttr(name=...)), or change the attribute",
    )


def encode_operator(op: Operator, message: Any) -> None:
    """Fill an OpDesc: slots sorted by name, attributes in the order of Fluid's hash table."""
    old: dict[str, Any] = {}
    if op.encoded is not None:
        message.CopyFrom(op.encoded)
        if op.attr_passes == 0 and _is_unchanged(op, op.encoded):
            return
        old = {attr.name: attr for attr in op.encoded.attrs}
        for field in ("inputs", "outputs", "attrs"):
            message.ClearField(field)
    message.type = op.type
    _encode_slots(op, message)
    for name in _order_attributes(op):
        part = message.attrs.add()
        if name in old and _is_same(read_attr(old[name]), op.attrs[name]):
            part.CopyFrom(old[name])
        else:
            _encode_attr(part, op, name, op.attrs[name])
    if op.is_target:
        message.is_target = True


def _encode_slots(op: Operator, message: Any) -> None:
    for slots, field in ((op.inputs, message.inputs), (op.outputs, message.outputs)):
        for slot in sorted(slots):
            field.add(parameter=slot, arguments=slots[slot])


def _order_attributes(op: Operator) -> Sequence[str]:
    passes = max(op.attr_passes, 1)
    blocks = [name for name in op.attrs if passes > 1 and op.attr_type(name) in _BLOCKS]
    return order_attributes(tuple(op.attrs), passes, frozenset(blocks))


def _encode_attr(part: Any, op: Operator, name: str, value: Any) -> None:
    kind = op.attr_type(name)
    part.name, part.type = name, int(kind)
    field = ATTR_FIELDS[kind]
    if kind in (AttrType.SCALAR, AttrType.SCALARS):
        getattr(part, field).MergeFrom(value)
    elif kind in REPEATED:
        getattr(part, field).extend(value)
    else:
        setattr(part, field, value)


def _collect_fields(variable: Variable) -> VariableFields:
    """Return the fields of the VarDesc that a variable has."""
    tensor = variable.type in TENSOR_FIELDS
    return VariableFields(
        variable.name,
        int(variable.type),
        int(variable.dtype) if tensor else 0,
        variable.shape if tensor else (),
        variable.lod_level if tensor else 0,
        variable.persistable,
        variable.need_check_feed,
    )


def _is_unchanged(op: Operator, message: Any) -> bool:
    """Return whether an operator still equals ``message``."""
    return (
        op.type == message.type
        and op.is_target == message.is_target
        and op.inputs == {part.parameter: list(part.arguments) for part in message.inputs}
        and op.outputs == {part.parameter: list(part.arguments) for part in message.outputs}
        and _is_same(op.attrs, {attr.name: read_attr(attr) for attr in message.attrs})
    )


def _is_same(value: Any, other: Any) -> bool:
    """Return whether attributes are equal; NaN equals NaN."""
    if value == other:
        return True
    if isinstance(value, dict):
        return value.keys() == other.keys() and all(_is_same(value[name], other[name]) for name in value)
    return repr(value) == repr(other)
