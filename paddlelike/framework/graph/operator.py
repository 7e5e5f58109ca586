"""An operator of a program: a type, variables by slot, attributes; the name scope and device of new
operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from paddlelike.core import AttrType
from paddlelike.core.roles import OpRole
from paddlelike.errors import EnforceNotMet
from paddlelike.foundation.current import Current
from paddlelike.foundation.warn import find_user_frame
from paddlelike.framework.graph.attributes import convert_attr, infer_attr_type
from paddlelike.framework.graph.desc import OperatorDesc
from paddlelike.framework.graph.states import EncodedState
from paddlelike.framework.opdef import registry
from paddlelike.framework.opdef.attributes import COMMON_ATTRS
from paddlelike.hooks import Hook

if TYPE_CHECKING:
    from paddlelike.framework.graph.block import Block

__all__ = ["OpRole", "Operator", "find_user_line"]


class NameScope:
    """A node of the tree of name scopes; a repeated name gets a suffix, as in ``/encoder_1/``."""

    def __init__(self, path: str = "/") -> None:
        self.path = path
        self._counts: dict[str, int] = {}

    def create_child(self, prefix: str) -> NameScope:
        """Return a new scope inside this one."""
        count = self._counts.get(prefix, 0)
        self._counts[prefix] = count + 1
        name = prefix if count == 0 else f"{prefix}_{count}"
        return NameScope(f"{self.path}{name}/")


NAME_SCOPE: Final = Current(NameScope())
DEVICE: Final = Current("")


_format_operator: Final[Hook[[Operator], str]] = Hook("format_operator")


class Operator(EncodedState):
    """One step of a program, created and checked by :meth:`Block.append_op`.

    Parameters
    ----------
    block
        The block that the operator belongs to.
    type
        The name of the operator in Paddle, such as "mul".
    inputs, outputs
        The names of the variables in each slot.
    attrs
        The attributes by name.
    line
        The line of the script that created the operator, for messages.

    See Also
    --------
    fluid.framework.Block, fluid.framework.Parameter, fluid.Program, fluid.Variable

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4])
    >>> _ = fluid.layers.relu(x)
    >>> op = fluid.default_main_program().global_block().ops[-1]
    >>> op.type, op.input("X")
    ('relu', ['x'])
    """

    __slots__ = (
        "attr_passes",
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
        #: The number of Fluid's hash tables between the order of ``attrs`` and the order of the encoding.
        self.attr_passes = 1
        self.is_target = False
        self.line = line  # the line of the user's script that created it
        self.encoded: Any = None  # the message it was read from, for fields that this class does not have
        self.encoded_types: Mapping[str, AttrType] = {}  # types of the attributes in that message
        self.trusted = True  # False for operators read from untrusted bytes, see graph/trust.py

    def _set_attributes(self, attributes: dict[str, Any]) -> None:
        super()._set_attributes({"attr_passes": 1} | attributes)  # missing in states of earlier releases

    # Fluid's queries

    @property
    def input_names(self) -> list[str]:
        """The names of the input slots, sorted."""
        return sorted(self.inputs)

    @property
    def output_names(self) -> list[str]:
        """The names of the output slots, sorted."""
        return sorted(self.outputs)

    @property
    def input_arg_names(self) -> list[str]:
        """The names of all input variables, in the order of their slots' names."""
        return [name for _, names in sorted(self.inputs.items()) for name in names]

    @property
    def output_arg_names(self) -> list[str]:
        """The names of all output variables, in the order of their slots' names."""
        return [name for _, names in sorted(self.outputs.items()) for name in names]

    @property
    def attr_names(self) -> list[str]:
        """The names of the operator's attributes."""
        return list(self.attrs)

    @property
    def idx(self) -> int:
        """The index of this operator in its block."""
        return next(i for i, op in enumerate(self.block.ops) if op is self)

    @property
    def desc(self) -> OperatorDesc:
        """Fluid's C++ description of this operator."""
        return OperatorDesc(self)

    def input(self, slot: str) -> list[str]:
        """Return the variables of an input slot; [] when there is no such slot."""
        return self.inputs.get(slot, [])

    def output(self, slot: str) -> list[str]:
        """Return the variables of an output slot; [] when there is no such slot."""
        return self.outputs.get(slot, [])

    def has_attr(self, name: str) -> bool:
        """Return whether the operator has that attribute."""
        return name in self.attrs

    def attr(self, name: str) -> Any:
        """Return the value of an attribute. Raises EnforceNotMet when there is none of that name."""
        try:
            return self.attrs[name]
        except KeyError:
            raise EnforceNotMet(
                f"operator {self.type!r} has no attribute {name!r}",
                hint=f"it has {', '.join(self.attrs) or 'none'}",
            ) from None

    def all_attrs(self) -> dict[str, Any]:
        """Return a copy of the attributes by name."""
        return dict(self.attrs)

    def attr_type(self, name: str) -> AttrType:
        """Return the type of an attribute. Raises EnforceNotMet when there is none of that name."""
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
        """Set an attribute, converted to its declared type. Raises EnforceNotMet for a wrong type."""
        self.attrs[name] = convert_attr(self.type, name, self._find_declared_type(name, value), value)
        self.block.program._note_change()

    def _remove_attr(self, name: str) -> None:
        """Remove an attribute. Scripts call it on ``op.desc`` without the underscore."""
        self.attrs.pop(name, None)
        self.block.program._note_change()

    remove_attr = _remove_attr

    def _find_declared_type(self, name: str, value: Any) -> AttrType:
        known = registry.find_or_none(self.type)
        if known is not None and name in known.attrs:
            return known.attrs[name].type
        return COMMON_ATTRS[name] if name in COMMON_ATTRS else infer_attr_type(value)

    def _rename_input(self, old: str, new: str) -> None:
        """Read variable ``new`` instead of ``old``, also where ``op_role_var`` names it, as Fluid does."""
        self._rename(self.inputs, old, new)

    def _rename_output(self, old: str, new: str) -> None:
        """Write variable ``new`` instead of ``old``, also where ``op_role_var`` names it."""
        self._rename(self.outputs, old, new)

    def _rename(self, slots: dict[str, list[str]], old: str, new: str) -> None:
        for slot, names in slots.items():
            slots[slot] = [new if name == old else name for name in names]
        if old in (named := self.attrs.get("op_role_var") or ()):
            self.attrs["op_role_var"] = [new if name == old else name for name in named]
        self.block.program._note_change()

    def sub_blocks(self) -> list[int]:
        """Return the indexes of the blocks that the operator's attributes name."""
        known = registry.find_or_none(self.type)
        if known is not None and self.attrs.keys() <= known.plain_attrs:
            return []
        found: list[Any] = []
        table = {} if known is None else known.attrs
        for name, value in self.attrs.items():
            if name in COMMON_ATTRS or type(value) not in (int, list):
                continue
            kind = table[name].type if name in table else self.attr_type(name)
            if kind == AttrType.BLOCK:
                found.append(value)
            elif kind == AttrType.BLOCKS:
                found += value
        return found

    def copy_into(self, block: Block) -> Operator:
        """Return a copy of this operator for another block; the block does not contain it yet."""
        copy = Operator(
            block,
            self.type,
            {slot: list(names) for slot, names in self.inputs.items()},
            {slot: list(names) for slot, names in self.outputs.items()},
            {n: list(v) if isinstance(v, list) else v for n, v in self.attrs.items()},
            self.line,
        )
        copy.is_target, copy.attr_passes = self.is_target, max(self.attr_passes, 1)
        copy.encoded, copy.encoded_types, copy.trusted = self.encoded, self.encoded_types, self.trusted
        return copy

    def set_is_target(self, is_target: bool) -> None:
        """Set whether pruning always keeps the operator."""
        self.is_target = is_target

    def check_attrs(self) -> None:
        """Do nothing: attributes are checked as they are set."""

    def infer_var_type(self, block: Block) -> None:
        """Do nothing: the outputs got their types when the operator was appended."""

    def infer_shape(self, block: Block) -> None:
        """Compute the shapes of the outputs again, for scripts that change shapes of inputs.

        Raises ShapeError and EnforceNotMet when the inputs do not fit, and for a type that is not known here.
        """
        block._infer_shape(self, registry.find(self.type))

    def to_string(self, throw_on_error: bool = True) -> str:
        """Return this operator as text."""
        return _format_operator.function(self)

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        return f"<{self.type} {self.inputs} -> {self.outputs}>"


def find_user_line() -> str | None:
    """Return the innermost calling line outside this package, as ``file:line in function``, or None without
    one.
    """
    frame = find_user_frame()
    if frame is None:
        return None
    code = frame.f_code
    return f"{code.co_filename}:{frame.f_lineno} in {code.co_name}"
