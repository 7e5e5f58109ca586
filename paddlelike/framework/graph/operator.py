"""An operator of a program: a type, variables by slot, attributes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from paddlelike.core.dtypes import AttrType
from paddlelike.errors import EnforceNotMet
from paddlelike.framework.graph.attributes import COMMON_ATTRS, convert_attr, infer_attr_type
from paddlelike.framework.graph.services import services
from paddlelike.framework.opdef import registry

if TYPE_CHECKING:
    from paddlelike.framework.graph.block import Block

__all__ = ["OpRole", "Operator", "find_user_line"]


class OpRole:
    """What part of training an operator belongs to (bits of the attribute ``op_role``)."""

    Forward = 0
    Backward = 1
    Optimize = 2
    RPC = 4
    Dist = 8
    LRSched = 16
    Loss = 256


#: Files that a user has no part in: this package, and what leaves a ``with`` block for it.
_NOT_USERS: Final = (str(Path(__file__).parents[2]), contextlib.__file__)


class Operator:
    """One step of a program. Made by :meth:`Block.append_op`, which checks it.

    ``inputs`` and ``outputs`` map slots to lists of variable names.
    """

    __slots__ = (
        "attrs",
        "block",
        "encoded",
        "encoded_types",
        "inputs",
        "is_target",
        "line",
        "outputs",
        "trusted",
        "type",
    )

    def __init__(
        self,
        block: Block,
        type: str,  # noqa: A002  (Fluid's name)
        inputs: dict[str, list[str]],
        outputs: dict[str, list[str]],
        attrs: dict[str, Any],
        line: str | None = None,
    ) -> None:
        self.block = block
        self.type = type
        self.inputs = inputs
        self.outputs = outputs
        self.attrs = attrs
        self.is_target = False
        self.line = line  # where in the user's script it was made
        self.encoded: Any = None  # the message it was read from, for fields that have no name here
        self.trusted = True  # False: it was read from bytes that nobody vouches for, see graph/trust.py
        self.encoded_types: Mapping[str, AttrType] = {}  # attribute types of an operator not known here

    # Fluid's way to ask

    @property
    def input_names(self) -> list[str]:
        """The input slots."""
        return list(self.inputs)

    @property
    def output_names(self) -> list[str]:
        """The output slots."""
        return list(self.outputs)

    @property
    def input_arg_names(self) -> list[str]:
        """The names of all input variables."""
        return [name for names in self.inputs.values() for name in names]

    @property
    def output_arg_names(self) -> list[str]:
        """The names of all output variables."""
        return [name for names in self.outputs.values() for name in names]

    @property
    def attr_names(self) -> list[str]:
        """The names of the attributes it has."""
        return list(self.attrs)

    @property
    def idx(self) -> int:
        """Its place in its block."""
        return next(i for i, op in enumerate(self.block.ops) if op is self)

    @property
    def desc(self) -> Operator:
        """Itself: there is one copy of the graph."""
        return self

    def input(self, slot: str) -> list[str]:
        """The names in an input slot; [] when there is none."""
        return self.inputs.get(slot, [])

    def output(self, slot: str) -> list[str]:
        """The names in an output slot; [] when there is none."""
        return self.outputs.get(slot, [])

    def has_attr(self, name: str) -> bool:
        """Whether it has that attribute."""
        return name in self.attrs

    def attr(self, name: str) -> Any:
        """The value of an attribute."""
        try:
            return self.attrs[name]
        except KeyError:
            raise EnforceNotMet(f"operator {self.type!r} has no attribute {name!r}") from None

    def all_attrs(self) -> dict[str, Any]:
        """Every attribute by name (a copy)."""
        return dict(self.attrs)

    def attr_type(self, name: str) -> AttrType:
        """The type of an attribute."""
        known = registry.find_or_none(self.type)
        if known is not None and name in known.attrs:
            return known.attrs[name].type
        if name in COMMON_ATTRS:
            return COMMON_ATTRS[name]
        if name in self.encoded_types:
            return self.encoded_types[name]
        return infer_attr_type(self.attr(name))

    # Changes

    def _set_attr(self, name: str, value: Any) -> None:
        """Set an attribute; its type is checked when the operator is known."""
        self.attrs[name] = convert_attr(self.type, name, self._type_to_be(name, value), value)
        self.block.program._changed()

    def _type_to_be(self, name: str, value: Any) -> AttrType:
        known = registry.find_or_none(self.type)
        if known is not None and name in known.attrs:
            return known.attrs[name].type
        return COMMON_ATTRS[name] if name in COMMON_ATTRS else infer_attr_type(value)

    def _rename_input(self, old: str, new: str) -> None:
        """Read another variable instead."""
        _rename(self.inputs, old, new)
        self.block.program._changed()

    def _rename_output(self, old: str, new: str) -> None:
        """Write another variable instead."""
        _rename(self.outputs, old, new)
        self.block.program._changed()

    def sub_blocks(self) -> list[int]:
        """The numbers of the blocks that it runs."""
        found = []
        for name, value in self.attrs.items():
            kind = self.attr_type(name) if type(value) is int or isinstance(value, list) else None
            if kind == AttrType.BLOCK:
                found.append(value)
            elif kind == AttrType.BLOCKS:
                found.extend(value)
        return found

    def copy_into(self, block: Block) -> Operator:
        """The same operator in another block."""
        copy = Operator(
            block,
            self.type,
            {slot: list(names) for slot, names in self.inputs.items()},
            {slot: list(names) for slot, names in self.outputs.items()},
            {n: list(v) if isinstance(v, list) else v for n, v in self.attrs.items()},
            self.line,
        )
        copy.is_target = self.is_target
        copy.encoded, copy.encoded_types, copy.trusted = self.encoded, self.encoded_types, self.trusted
        return copy

    def to_string(self, throw_on_error: bool = True) -> str:
        """This operator as text."""
        return services().text.format_operator(self)

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        return f"<{self.type} {self.inputs} -> {self.outputs}>"


def find_user_line() -> str | None:
    """The nearest line of code outside this package, as ``file:line in function``."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_USERS):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return None
    code = frame.f_code
    return f"{code.co_filename}:{frame.f_lineno} in {code.co_name}"


def _rename(slots: dict[str, list[str]], old: str, new: str) -> None:
    for slot, names in slots.items():
        slots[slot] = [new if name == old else name for name in names]
