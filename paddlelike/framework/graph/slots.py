"""The variables given for the slots of a new operator, as lists of names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.opdef import OpDef


def _collect_names(given: Any) -> list[str]:
    """Return the names of the variables given for a slot."""
    if given is None:
        return []
    if isinstance(given, Variable):
        return [given.name]
    if isinstance(given, str):
        return [given]
    if isinstance(given, bytes):
        return [given.decode()]
    if isinstance(given, list | tuple):
        return [name for one in given for name in _collect_names(one)]
    raise TypeError(f"a slot takes variables or their names, not {given!r}")


def collect_input_names(cls: type[OpDef], given: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """Return names by input slot, as in Paddle with every slot of the operator when any inputs are given.

    Raises GraphError for a missing input and for several variables in a slot that takes one, TypeError for
    anything but variables and names.
    """
    if given is None and not any(not slot.optional for slot in cls.input_slots):
        return {}
    slots = {}
    for slot in cls.input_slots:
        names = _collect_names((given or {}).get(slot.name))
        if not names and not slot.optional and not (slot.several and slot.name in (given or {})):
            raise GraphError(f"operator {cls.type!r} needs its input {slot.name!r}")
        if len(names) > 1 and not slot.several:
            raise GraphError(
                f"operator {cls.type!r} takes one variable in {slot.name!r}, got {len(names)}: {names}"
            )
        slots[slot.name] = names
    return slots


def collect_output_names(cls: type[OpDef], given: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """Return names by output slot. Raises GraphError for a missing output."""
    slots = {}
    for slot in cls.output_slots:
        if slot.name not in (given or {}):
            if slot.optional:
                continue
            raise GraphError(f"operator {cls.type!r} needs its output {slot.name!r}")
        slots[slot.name] = _collect_names((given or {})[slot.name])
    return slots
