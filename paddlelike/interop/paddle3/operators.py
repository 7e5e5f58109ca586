"""The table of Paddle 3's operators in ``operators.txt``, with the ProgramDesc operators that correspond to
them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from paddlelike.core import AttrType
from paddlelike.foundation.text_tables import read_table
from paddlelike.framework.environment import PADDLE3_VERSION
from paddlelike.framework.opdef import registry
from paddlelike.framework.opdef.attributes import Attr

_KINDS: Final = {
    AttrType.BOOLEAN: "bool",
    AttrType.FLOAT: "f32",
    AttrType.FLOATS: "f32s",
    AttrType.INT: "i32",
    AttrType.INTS: "i32s",
    AttrType.LONG: "i64",
    AttrType.LONGS: "i64s",
    AttrType.STRING: "str",
}

#: The value of an attribute without counterpart that changes nothing.
ANY: Final = object()


class Operand(NamedTuple):
    """A place for a variable, a list of variables, or a constant that is an attribute in a ProgramDesc."""

    slot: str  # "" where no slot takes a variable
    many: str  # the slot that takes a list
    attr: str  # "" where it is not an attribute
    kind: str


class Result(NamedTuple):
    """A variable, or a list of variables, that an operator writes."""

    slot: str  # "" for none
    is_list: bool
    same_as: str  # the slot of the input that it overwrites
    is_added: bool  # an operator of Paddle 3 does not have it


class Attribute(NamedTuple):
    """An attribute, and its value if the other format lacks it."""

    name: str  # "" where Paddle 3 has none
    kind: str
    target: str  # "" where a ProgramDesc has none
    value: Any


class Row(NamedTuple):
    """One operator of Paddle 3, and its type in a ProgramDesc."""

    name: str
    type: str
    operands: tuple[Operand, ...]
    results: tuple[Result, ...]
    attributes: tuple[Attribute, ...]


@functools.cache
def _read_lines() -> dict[str, tuple[str, ...]]:
    """Return the fields of the table by Paddle 3's names: type, operands, results, attributes."""
    found = {}
    for line in read_table("paddlelike.interop.paddle3", "operators.txt").splitlines():
        if not line.startswith("#"):
            head, *fields = (part.strip() for part in (line + "| | |").split("|")[:4])
            name, _, type_ = head.partition(" ")
            found[name] = (type_ or name, *fields)
    return found


def find_row(kind: str) -> Row | None:
    """Return the row of an operator, also of its in-place form; None if there is none."""
    name = kind if kind in _read_lines() else kind.removesuffix("_")
    return _parse_row(name, *_read_lines()[name]) if name in _read_lines() else None


def find_rows(type_: str | None = None) -> Iterator[Row]:
    """Yield the rows with a type in a ProgramDesc, or all."""
    return (_parse_row(name, *row) for name, row in _read_lines().items() if type_ in (row[0], None))


@functools.cache
def _parse_row(name: str, type_: str, operands: str, results: str, attributes: str) -> Row:
    known = registry.find_for_version(type_, PADDLE3_VERSION)
    assert known is not None, type_
    declared = known.input_slots, known.output_slots
    own = (" ".join(slot.name + "*" * slot.several for slot in slots) for slots in declared)
    operands, results = (given or default for given, default in zip((operands, results), own, strict=True))
    return Row(
        name,
        type_,
        tuple(_parse_operand(text) for text in operands.split()) if operands != "-" else (),
        tuple(_parse_result(text) for text in results.split()) if results != "-" else (),
        tuple(_parse_attribute(text, known.attrs) for text in attributes.split()),
    )


def _parse_operand(text: str) -> Operand:
    if text.endswith("*"):
        return Operand("", text[:-1], "", "")
    if text == "-":
        return Operand("", "", "", text)
    if ":" not in text:
        return Operand(text.strip("_"), "", "", "")
    attr, _, slots = text.partition("@")
    name, _, kind = attr.partition(":")
    one, _, many = slots.partition(",")
    return Operand(one.strip("-"), many, name, kind)


def _parse_result(text: str) -> Result:
    slot, _, same = text.strip("_").partition("=")
    return Result(slot.lstrip("+").rstrip("*"), slot.endswith("*"), same, slot.startswith("+"))


def _parse_attribute(text: str, attrs: Mapping[str, Attr]) -> Attribute:
    name, has_kind, rest = text.partition(":")
    if not has_kind:
        name, _, target = text.partition("=")
        return Attribute(name, _KINDS[attrs[target or name].type], target or name, ANY)
    if rest.startswith("="):
        return Attribute("", "", name, json.loads(rest[1:]))
    if "~" in rest:
        kind, _, value = rest.partition("~")
        return Attribute(name, kind, "", json.loads(value) if value else ANY)
    kind, _, target = rest.partition("=")
    return Attribute(name, kind, "" if kind == "place" else target or name, ANY)
