"""Hostile programs: the messages of a ProgramDesc with any fields set, in encodings that are whole.

Blind mutations mostly break a length and are refused at once. These keep the encoding and change what it
says: numbers of blocks, types of attributes, names, slots.
"""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from paddlelike.framework.codec.schema import messages
from tests.fuzz.makers.mutations import EXTREMES

__all__ = ["change_program", "make_program", "nest_blocks"]

_NAMES = (
    "x",
    "w",
    "fc_0.w_0",
    "feed",
    "fetch",
    "",
    "a\0b",
    "../x",
    "/etc/passwd",
    "x@GRAD",
    "\u4e2d" * 50,
    "n" * 3000,
)
_TYPES = (
    "feed", "fetch", "while", "while_grad", "conditional_block", "recurrent", "mul", "read", "sum",
    "no_such_op", "", "scale", "load", "listen_and_serv", "increment",
)  # fmt: skip
_ATTRS = (
    "sub_block",
    "col",
    "op_role",
    "op_role_var",
    "is_test",
    "op_device",
    "shape",
    "no_such_attr",
    "dtype",
)


def make_program(rng: Random) -> bytes:
    """A program of random messages."""
    program = messages().ProgramDesc()
    for number in range(rng.choice((0, 1, 1, 2, 3, 8))):
        block = program.blocks.add()
        _fill(rng, block, 5)
        if rng.random() < 0.9:
            block.idx = number
            block.parent_idx = rng.randrange(-1, max(number, 1))
        if rng.random() < 0.8:
            block.forward_block_idx = rng.randrange(-1, number + 2)
        for op in block.ops:
            op.type = rng.choice(_TYPES)
            for slot in (*op.inputs, *op.outputs):
                slot.parameter = rng.choice(("X", "Out", "Input", "Y"))
    return bytes(program.SerializePartialToString())


def nest_blocks(rng: Random) -> bytes:
    """Blocks that run each other: deep, in circles, or again and again."""
    program = messages().ProgramDesc()
    count = rng.choice((2, 5, 30, 200, 1500))
    shape = rng.randrange(5)
    for number in range(count):
        block = program.blocks.add()
        block.idx = number
        block.parent_idx = number - 1 if shape < 4 else rng.randrange(-1, max(number, 1))
        if shape == 3:
            block.forward_block_idx = rng.choice((number - 2, number - 1, number, number + 1, 2**31 - 1))
        for _ in range(2 if shape == 1 else 1):
            op = block.ops.add()
            op.type = rng.choice(("while", "conditional_block", "no_such_op"))
            slot = op.inputs.add()
            slot.parameter = "X"
            slot.arguments.append("x")
            attr = op.attrs.add()
            attr.name, attr.type = "sub_block", rng.choice((8, 8, 10))
            target = rng.randrange(count) if shape == 2 else (number + 1) % (count + rng.randrange(2))
            attr.block_idx = target
            attr.blocks_idx.append(target)
    var = program.blocks[0].vars.add()
    var.name, var.type.type = "x", 7
    return bytes(program.SerializePartialToString())


def change_program(rng: Random, data: bytes) -> bytes:
    """A real program with some fields changed."""
    program = messages().ProgramDesc()
    program.CopyFrom(_parse_program(data))
    for _ in range(rng.choice((1, 1, 2, 5))):
        _change(rng, _descend(rng, program))
    return bytes(program.SerializePartialToString())


@cache
def _parse_program(data: bytes) -> Any:
    return messages().ProgramDesc.FromString(data)


def _descend(rng: Random, message: Any) -> Any:
    """Some message inside ``message``."""
    while rng.random() < 0.9:
        inner = []
        for field, value in message.ListFields():
            if field.message_type is not None:
                inner.extend(value if _is_repeated(field) else [value])
        if not inner:
            break
        message = rng.choice(inner)
    return message


def _change(rng: Random, message: Any) -> None:
    present = message.ListFields()
    what = rng.randrange(4)
    if present and what == 0:
        message.ClearField(rng.choice(present)[0].name)
        return
    if present and what == 1:
        field, value = rng.choice(present)
        if _is_repeated(field) and len(value) > 1:
            at = rng.randrange(len(value))
            if rng.random() < 0.5:
                del value[at]
            elif field.message_type is not None:
                for _ in range(rng.choice((1, 3, 60))):
                    value.add().CopyFrom(value[at])
            else:
                value.extend([value[at]] * rng.choice((1, 3, 300)))
            return
    field = rng.choice(present)[0] if present and what == 2 else rng.choice(message.DESCRIPTOR.fields)
    _set(rng, message, field, 3)


def _fill(rng: Random, message: Any, depth: int) -> None:
    for field in message.DESCRIPTOR.fields:
        if field.is_required or rng.random() < 0.35:
            _set(rng, message, field, depth)


def _set(rng: Random, message: Any, field: Any, depth: int) -> None:
    if field.message_type is not None:
        if depth:
            for _ in range(rng.randrange(4) if _is_repeated(field) else 1):
                one = getattr(message, field.name)
                _fill(rng, one.add() if _is_repeated(field) else one, depth - 1)
        return
    values = [_scalar(rng, field) for _ in range(rng.choice((0, 1, 3)) if _is_repeated(field) else 1)]
    if _is_repeated(field):
        getattr(message, field.name).extend(values)
    else:
        setattr(message, field.name, values[0])


def _scalar(rng: Random, field: Any) -> Any:
    if field.enum_type is not None:
        return rng.choice(field.enum_type.values).number
    kind = field.cpp_type
    if kind == field.CPPTYPE_STRING:
        return rng.choice(_ATTRS + _NAMES + _TYPES)
    if kind == field.CPPTYPE_BOOL:
        return rng.random() < 0.5
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return rng.choice((0.0, -1.5, 1e30, float("nan"), float("inf")))
    bits = 32 if kind == field.CPPTYPE_INT32 else 64
    value = rng.choice(EXTREMES) if rng.random() < 0.3 else rng.randrange(-2, 6)
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated) if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
