"""ProgramDesc -> Program. Each part keeps the message it was decoded from (see :mod:`.encode`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from paddlelike.core import AttrType, VarType
from paddlelike.errors import FormatError
from paddlelike.foundation.garbage import pause_collection
from paddlelike.framework.codec import nesting
from paddlelike.framework.codec.fields import find_attr_type, read_attr, read_variable
from paddlelike.framework.codec.schema import messages, parse
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.opdef import registry
from paddlelike.framework.opdef.attributes import COMMON_ATTRS
from paddlelike.hooks import Hook

_read_paddle3: Final[Hook[[bytes], Any]] = Hook("read_paddle3")
_BEGIN: Final = b"\n{\x08"  # of a message whose first block has 123 bytes
_HEAD: Final = 64  # bytes
_BLOCKS: Final = (AttrType.BLOCK, AttrType.BLOCKS)
_VAR_TYPES: Final = {int(kind): kind for kind in VarType}  # calling an enum takes ten times as long


def decode_program(data: bytes, *, trusted: bool = False) -> Program:
    """Return the program in ``data``: a ProgramDesc, or a program of Paddle 3 (``inference.json``).

    With ``trusted`` an Executor may run its external operators, see :mod:`paddlelike.framework.graph.trust`.
    Raises FormatError for bytes that are not a usable program, TypeError for anything but bytes.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"a serialized program is bytes, not {type(data).__name__}")
    head = bytes(data[:_HEAD])
    if head.lstrip().startswith(b"{") and not head.startswith(_BEGIN):
        return _decode(_read_paddle3.function(bytes(data)), trusted=trusted)
    try:
        message = parse(messages().ProgramDesc, bytes(data))
        if data and not message.blocks:  # empty bytes are an empty program, as in Fluid
            raise FormatError(f"{len(data)} bytes are a program without blocks")
        return _decode(message, trusted=trusted)
    except FormatError as error:
        hint = (
            "copy or save it again, if it is the __model__ or .pdmodel of a saved model; "
            "no other file holds its program"
        )
        raise FormatError(error.message, hint=error.hint or hint) from error


def decode_message(kind: str, data: bytes) -> object:
    """Return the message ``kind`` in ``data``: a ProgramDesc, VarDesc or OpDesc.

    Raises FormatError for another kind and for bytes that are not such a message.
    """
    if kind not in ("ProgramDesc", "VarDesc", "OpDesc") or not isinstance(data, bytes):
        raise FormatError(f"{kind!r:.40} is not a message of a program")
    return parse(getattr(messages(), kind), data)


@pause_collection
def _decode(message: Any, *, trusted: bool) -> Program:
    program = Program()
    parts = list(message.blocks)
    message.ClearField("blocks")  # the parts stay as they are
    program.encoded = message
    program.blocks = []
    known: dict[bytes, _Known] = {}
    for index, part in enumerate(parts):
        if part.idx != index:
            raise FormatError(f"block {index} of the program has index {part.idx}, expected {index}")
        block = Block(program, part.idx, part.parent_idx)
        block.forward_block_idx, block.is_ordered = part.forward_block_idx, True
        program.blocks.append(block)
        for var in part.vars:
            block.vars[var.name] = _decode_variable(block, var)
        for op in part.ops:
            block.ops.append(_decode_operator(block, op, known))
            block.ops[-1].trusted = trusted
    nesting.check(program)
    for block in program.blocks:
        for op in block.ops:
            for name in op.output_arg_names:
                written = block._find_var_recursive(name)
                if written is not None:
                    written.op = op
    return program


def _check_text(name: Any, what: str) -> str:
    """Return a name. Raises FormatError for one that is not UTF-8, which protobuf returns as bytes."""
    if not isinstance(name, str):
        raise FormatError(f"the name of {what} is {name!r:.80}, which is not UTF-8")
    return name


def _decode_variable(block: Block, message: Any) -> Variable:
    fields = read_variable(message)
    name = _check_text(fields.name, "a variable")
    variable = Variable(
        block,
        type=_to_var_type(fields.type, name),
        name=name,
        shape=fields.shape,
        dtype=_to_var_type(fields.dtype, name),
        lod_level=fields.lod_level,
        persistable=fields.persistable,
        need_check_feed=fields.need_check_feed,
        is_data=fields.need_check_feed,
    )
    variable.encoded = message
    return variable


def _to_var_type(value: int, name: str) -> VarType:
    found = _VAR_TYPES.get(value)
    if found is None:
        raise FormatError(f"variable {name!r} has type {value}, which no Paddle version defines")
    return found


class _Known(NamedTuple):
    """The parts that many operators share, which is everything except their slots."""

    type: str
    is_target: bool
    attrs: dict[str, Any]
    types: dict[str, AttrType]
    has_lists: bool


def _decode_operator(block: Block, message: Any, known: dict[bytes, _Known]) -> Operator:
    rest = type(message)()
    rest.CopyFrom(message)
    rest.ClearField("inputs")
    rest.ClearField("outputs")
    key = rest.SerializePartialToString()
    common = known.get(key)
    if common is None:
        common = known[key] = _decode_common(message)
    attrs = common.attrs.copy()
    if common.has_lists:
        attrs = {name: list(value) if type(value) is list else value for name, value in attrs.items()}
    op = Operator(block, common.type, _decode_slots(message.inputs), _decode_slots(message.outputs), attrs)
    op.is_target, op.encoded, op.attr_passes = common.is_target, message, 0
    op.encoded_types = common.types
    return op


def _decode_common(message: Any) -> _Known:
    attrs = {_check_text(attr.name, "an attribute"): read_attr(attr) for attr in message.attrs}
    known = _Known(
        _check_text(message.type, "an operator type"),
        message.is_target,
        attrs,
        {attr.name: find_attr_type(attr.type) for attr in message.attrs},
        any(type(value) is list for value in attrs.values()),
    )
    _check_attr_types(known.type, known.types)
    return known


def _decode_slots(slots: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for slot in slots:
        names, parameter = list(slot.arguments), slot.parameter
        if type(parameter) is not str:
            _check_text(parameter, "a slot")
        for name in names:
            if type(name) is not str:
                _check_text(name, "a variable")
        found[parameter] = names
    return found


def _check_attr_types(op_type: str, types: Mapping[str, AttrType]) -> None:
    """Raise FormatError unless block attributes and the attributes of all operators have their types."""
    known = registry.find_or_none(op_type)
    table = {} if known is None else known.attrs
    for name, kind in types.items():
        want = table[name].type if name in table else COMMON_ATTRS.get(name, kind)
        strict = name in COMMON_ATTRS or want in _BLOCKS or kind in _BLOCKS
        if kind != want and strict:
            raise FormatError(
                f"attribute {name!r} of operator {op_type!r} is of type {kind.name}, expected {want.name}"
            )
