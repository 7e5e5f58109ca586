"""The variables given for the slots of a new operator, as lists of names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.opdef import OpDef

__all__ = ["collect_input_names", "collect_output_names"]


def _names(given: Any) -> list[str]:
    """The names in what was given for a slot."""
    if given is None:
        return []
    if isinstance(given, Variable):
        return [given.name]
    if isinstance(given, str):
        return [given]
    if isinstance(given, bytes):
        return [given.decode()]
    if isinstance(given, list | tuple):
        return [name for one in given for name in _names(one)]
    raise TypeError(f"a slot takes variables or their names, not {given!r}")


def collect_input_names(cls: type[OpDef], given: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """Names by slot. Every slot of the operator is there when any inputs are given, as in Paddle."""
    if given is None and not any(not slot.optional for slot in cls.input_slots):
        return {}
    slots = {}
    for slot in cls.input_slots:
        names = _names((given or {}).get(slot.name))
        if not names and not slot.optional and not (slot.several and slot.name in (given or {})):
            raise GraphError(f"operator {cls.type!r} needs its input {slot.name!r}")
        if len(names) > 1 and not slot.several:
            raise GraphError(
                f"operator {cls.type!r} takes one variable in {slot.name!r}, got {len(names)}: {names}"
            )
        slots[slot.name] = names
    return slots


def collect_output_names(cls: type[OpDef], given: Mapping[str, Any] | None) -> dict[str, list[str]]:
    slots = {}
    for slot in cls.output_slots:
        if slot.name not in (given or {}):
            if slot.optional:
                continue
            raise GraphError(f"operator {cls.type!r} needs its output {slot.name!r}")
        slots[slot.name] = _names((given or {})[slot.name])
    return slots
