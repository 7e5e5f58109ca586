"""The table of Paddle 3's operators in ``operators.txt``, with the ProgramDesc operators that correspond to
them.
"""

from __future__ import annotations

import functools
import json
from typing import Any, Final, NamedTuple

from paddlelike.foundation.text_tables import read_table

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
def load_rows() -> dict[str, Row]:
    """Return the rows of the table by Paddle 3's names."""
    text = read_table("paddlelike.interop.paddle3", "operators.txt")
    rows = (_parse_row(line) for line in text.splitlines() if line and not line.startswith("#"))
    return {row.name: row for row in rows}


def find_row(kind: str) -> Row | None:
    """Return the row of an operator, also of its in-place form; None if there is none."""
    rows = load_rows()
    return rows.get(kind) or rows.get(kind.removesuffix("_"))


def _parse_row(line: str) -> Row:
    head, operands, results, attributes = (part.split() for part in (line + " | | |").split("|")[:4])
    return Row(
        head[0],
        head[1],
        tuple(_parse_operand(text) for text in operands),
        tuple(_parse_result(text) for text in results),
        tuple(_parse_attribute(text) for text in attributes),
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


def _parse_attribute(text: str) -> Attribute:
    name, _, rest = text.partition(":")
    if rest.startswith("="):
        return Attribute("", "", name, json.loads(rest[1:]))
    if "~" in rest:
        kind, _, value = rest.partition("~")
        return Attribute(name, kind, "", json.loads(value) if value else ANY)
    kind, _, target = rest.partition("=")
    return Attribute(name, kind, "" if kind == "place" else target or name, ANY)
