"""Program <-> ProgramDesc, Paddle's protobuf encoding of a program.

Reading keeps the message each part came from, so that a program of any Paddle version is written back
without loss, operators and fields that are not known here included.
"""

from __future__ import annotations

from typing import Any, Final

from paddlelike.core.dtypes import AttrType, VarType
from paddlelike.errors import FormatError, GraphError
from paddlelike.framework.codec import nesting
from paddlelike.framework.codec.schema import messages, parse
from paddlelike.framework.graph.attributes import COMMON_ATTRS
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.opdef import registry

__all__ = ["PADDLE_VERSION", "decode_program", "encode_program", "program_message"]

PADDLE_VERSION: Final = 1008005  # what programs made here say of themselves: Paddle 1.8.5

_FIELDS: Final = {
    AttrType.INT: "i",
    AttrType.FLOAT: "f",
    AttrType.STRING: "s",
    AttrType.INTS: "ints",
    AttrType.FLOATS: "floats",
    AttrType.STRINGS: "strings",
    AttrType.BOOLEAN: "b",
    AttrType.BOOLEANS: "bools",
    AttrType.BLOCK: "block_idx",
    AttrType.LONG: "l",
    AttrType.BLOCKS: "blocks_idx",
    AttrType.LONGS: "longs",
    AttrType.FLOAT64S: "float64s",
    AttrType.VAR: "var_name",
    AttrType.VARS: "vars_name",
    AttrType.FLOAT64: "float64",
    AttrType.SCALAR: "scalar",
    AttrType.SCALARS: "scalars",
}
_REPEATED: Final = frozenset(kind for kind in AttrType if kind.name.endswith("S"))
_BLOCKS: Final = (AttrType.BLOCK, AttrType.BLOCKS)
#: Field of VarType that describes the tensor in a variable of that kind.
_TENSOR_FIELD: Final = {
    VarType.LOD_TENSOR: "lod_tensor",
    VarType.LOD_TENSOR_ARRAY: "tensor_array",
    VarType.SELECTED_ROWS: "selected_rows",
}


# Encoding


def encode_program(program: Program) -> bytes:
    """The program as bytes; equal programs give equal bytes."""
    try:
        return bytes(program_message(program).SerializeToString(deterministic=True))
    except (ValueError, TypeError) as error:
        raise GraphError(f"the program cannot be encoded: {error}") from error


def program_message(program: Program) -> Any:
    """The program as a ProgramDesc message."""
    message = messages().ProgramDesc()
    if program.encoded is not None:
        message.CopyFrom(program.encoded)
        message.ClearField("blocks")
    else:
        message.version.version = PADDLE_VERSION
    if not program.is_versioned:
        message.ClearField("version")
    for block in program.blocks:
        encode_block(block, message.blocks.add())
    return message


def encode_block(block: Block, message: Any) -> None:
    """Fill a BlockDesc."""
    message.idx, message.parent_idx = block.idx, block.parent_idx
    if block.forward_block_idx != -1:
        message.forward_block_idx = block.forward_block_idx
    for variable in block.vars.values():
        encode_variable(variable, message.vars.add())
    for op in block.ops:
        encode_operator(op, message.ops.add())


def encode_variable(variable: Variable, message: Any) -> None:
    """Fill a VarDesc."""
    if variable.encoded is not None:
        message.CopyFrom(variable.encoded)
        if _facts(variable) == _decoded_facts(variable.encoded):
            return
    message.name = variable.name
    message.type.type = int(variable.type)
    field = _TENSOR_FIELD.get(variable.type)
    for other in _TENSOR_FIELD.values():
        if other != field:
            message.type.ClearField(other)
    if field is not None:
        part = getattr(message.type, field)
        tensor = part if field == "selected_rows" else part.tensor
        tensor.data_type = int(variable.dtype)
        tensor.ClearField("dims")
        tensor.dims.extend(variable.shape)
        if field != "selected_rows":
            part.lod_level = variable.lod_level
    if variable.reads:
        message.type.reader.ClearField("lod_tensor")
    for dtype, shape, lod_level in variable.reads:
        part = message.type.reader.lod_tensor.add()
        part.tensor.data_type, part.lod_level = int(dtype), lod_level
        part.tensor.dims.extend(shape)
    message.persistable = variable.persistable
    if variable.need_check_feed or message.HasField("need_check_feed"):
        message.need_check_feed = variable.need_check_feed


def encode_operator(op: Operator, message: Any) -> None:
    """Fill an OpDesc: slots and attributes sorted by name, as Paddle sorts slots."""
    old: dict[str, Any] = {}
    if op.encoded is not None:
        message.CopyFrom(op.encoded)
        if _is_unchanged(op, op.encoded):
            return
        old = {attr.name: attr for attr in op.encoded.attrs}
        for field in ("inputs", "outputs", "attrs"):
            message.ClearField(field)
    message.type = op.type
    for slots, field in ((op.inputs, message.inputs), (op.outputs, message.outputs)):
        for slot in sorted(slots):
            part = field.add()
            part.parameter = slot
            part.arguments.extend(slots[slot])
    for name in sorted(op.attrs):
        part = message.attrs.add()
        if name in old and _attr_value(old[name]) == op.attrs[name]:
            part.CopyFrom(old[name])
        else:
            _encode_attr(part, op, name, op.attrs[name])
    if op.is_target:
        message.is_target = True


def _encode_attr(part: Any, op: Operator, name: str, value: Any) -> None:
    kind = op.attr_type(name)
    part.name, part.type = name, int(kind)
    field = _FIELDS[kind]
    if kind in (AttrType.SCALAR, AttrType.SCALARS):
        getattr(part, field).MergeFrom(value)
    elif kind in _REPEATED:
        getattr(part, field).extend(value)
    else:
        setattr(part, field, value)


# Decoding


def decode_program(data: bytes, *, trusted: bool = False) -> Program:
    """Return the program in ``data``. Raises FormatError for bytes that are no usable program.

    ``trusted``: an Executor may run its external operators, see :mod:`paddlelike.framework.graph.trust`.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"a serialized program is bytes, not {type(data).__name__}")
    try:
        message = parse(messages().ProgramDesc, bytes(data))
        if data and not message.blocks:  # no bytes at all are an empty program, as in Fluid
            raise FormatError(f"{len(data)} bytes that are a program without blocks")
        return _decode(message, trusted=trusted)
    except FormatError as error:
        raise FormatError(
            error.message,
            hint=error.hint or "a program is the file __model__, or .pdmodel, of a saved model",
        ) from error


def _decode(message: Any, *, trusted: bool) -> Program:
    program = Program()
    program.encoded = messages().ProgramDesc()
    program.encoded.CopyFrom(message)
    program.encoded.ClearField("blocks")
    program.blocks = []
    for number, part in enumerate(message.blocks):
        if part.idx != number:
            raise FormatError(f"block {number} of the program says that it is block {part.idx}")
        block = Block(program, part.idx, part.parent_idx)
        block.forward_block_idx = part.forward_block_idx
        program.blocks.append(block)
        for var in part.vars:
            block.vars[var.name] = _decode_variable(block, var)
        for op in part.ops:
            block.ops.append(_decode_operator(block, op))
            block.ops[-1].trusted = trusted
    nesting.check(program)
    for block in program.blocks:
        for op in block.ops:
            for name in op.output_arg_names:
                written = block._find_var_recursive(name)
                if written is not None:
                    written.op = op
    return program


def _text(name: Any, what: str) -> str:
    """A name; protobuf gives bytes for what is no UTF-8."""
    if not isinstance(name, str):
        raise FormatError(f"{name!r:.80} is the name of {what}, but no UTF-8")
    return name


def _decode_variable(block: Block, message: Any) -> Variable:
    facts = _decoded_facts(message)
    name, kind, dtype, shape, lod_level, persistable, need_check_feed = facts
    variable = Variable(
        block,
        type=_var_type(kind, name),
        name=_text(name, "a variable"),
        shape=shape,
        dtype=_var_type(dtype, name),
        lod_level=lod_level,
        persistable=persistable,
        need_check_feed=need_check_feed,
        is_data=need_check_feed,
    )
    variable.encoded = message
    return variable


def _var_type(number: int, name: str) -> VarType:
    try:
        return VarType(number)
    except ValueError:
        raise FormatError(
            f"variable {name!r} has type number {number}, which no Paddle version has"
        ) from None


def _decode_operator(block: Block, message: Any) -> Operator:
    op = Operator(
        block,
        _text(message.type, "an operator type"),
        _decode_slots(message.inputs),
        _decode_slots(message.outputs),
        {_text(attr.name, "an attribute"): _attr_value(attr) for attr in message.attrs},
    )
    op.is_target = message.is_target
    op.encoded = message
    op.encoded_types = {attr.name: AttrType(attr.type) for attr in message.attrs}
    _check_attr_types(op)
    return op


def _decode_slots(slots: Any) -> dict[str, list[str]]:
    return {
        _text(slot.parameter, "a slot"): [_text(name, "a variable") for name in slot.arguments]
        for slot in slots
    }


def _check_attr_types(op: Operator) -> None:
    """What every walk through a program relies on: blocks are blocks, and what all operators have."""
    known = registry.find_or_none(op.type)
    table = {} if known is None else known.attrs
    for name, kind in op.encoded_types.items():
        want = table[name].type if name in table else COMMON_ATTRS.get(name, kind)
        strict = name in COMMON_ATTRS or want in _BLOCKS or kind in _BLOCKS
        if kind != want and strict:
            raise FormatError(
                f"attribute {name!r} of operator {op.type!r} is of type {kind.name}, Paddle has {want.name}"
            )


def _attr_value(attr: Any) -> Any:
    kind = AttrType(attr.type)
    value = getattr(attr, _FIELDS[kind])
    return list(value) if kind in _REPEATED else value


def _facts(variable: Variable) -> tuple[Any, ...]:
    """What a VarDesc says of a variable."""
    tensor = variable.type in _TENSOR_FIELD
    return (
        variable.name,
        int(variable.type),
        int(variable.dtype) if tensor else 0,
        variable.shape if tensor else (),
        variable.lod_level if tensor else 0,
        variable.persistable,
        variable.need_check_feed,
    )


def _decoded_facts(message: Any) -> tuple[Any, ...]:
    field = _TENSOR_FIELD.get(message.type.type)  # an IntEnum and its number hash alike
    dtype, shape, lod_level = 0, (), 0
    if field is not None and message.type.HasField(field):
        part = getattr(message.type, field)
        tensor = part if field == "selected_rows" else part.tensor
        dtype, shape = tensor.data_type, tuple(tensor.dims)
        lod_level = 0 if field == "selected_rows" else part.lod_level
    return (
        message.name,
        message.type.type,
        dtype,
        shape,
        lod_level,
        message.persistable,
        message.need_check_feed,
    )


def _is_unchanged(op: Operator, message: Any) -> bool:
    return (
        op.type == message.type
        and op.is_target == message.is_target
        and op.inputs == {part.parameter: list(part.arguments) for part in message.inputs}
        and op.outputs == {part.parameter: list(part.arguments) for part in message.outputs}
        and op.attrs == {attr.name: _attr_value(attr) for attr in message.attrs}
    )
