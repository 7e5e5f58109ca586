"""The nodes and constants of an ONNX graph while a program is translated, one operator (a step) at a time."""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import numpy as np

from paddlelike.core import Array, VarType, dtype_row, numpy_dtype
from paddlelike.framework import Operator, Variable
from paddlelike.framework.environment import PADDLE2_VERSION
from paddlelike.framework.opdef import OpDef, registry
from paddlelike.interop.exporting import read_attr
from paddlelike.interop.reader_tables import InexpressibleError, Table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from paddlelike.core import DtypeLike


#: Attributes that became an input in version 13.
_ATTRIBUTES: Final = {"ReduceSum": "axes", "Split": "split", "Squeeze": "axes", "Unsqueeze": "axes"}
_STRICT: Final = {"GreaterOrEqual": "Greater", "LessOrEqual": "Less"}  # which came with version 12
_CHOICES: Final = {"Max": "Greater", "Min": "Less"}
_SINCE: Final = {
    "Col2Im": 18,
    "BitwiseAnd": 18,
    "BitwiseNot": 18,
    "BitwiseOr": 18,
    "BitwiseXor": 18,
    "Celu": 12,
    "Einsum": 12,
    "GridSample": 16,
    "Trilu": 14,
}
#: Attributes that became inputs in versions 10 and 11, in their order.
_EARLY: Final[dict[str, tuple[int, tuple[str, ...]]]] = {
    "Clip": (11, ("min", "max")),
    "Pad": (11, ("pads", "value")),
    "Slice": (10, ("starts", "ends", "axes", "steps")),
    "TopK": (10, ("k",)),
}
#: Operators that pass a LoD on only if the declared first dim stays.
_REGROUPING: Final = ("flatten", "reshape", "squeeze", "transpose", "unsqueeze")


class RankTable(NamedTuple):
    """The sequences of a batch, the longest first; all values are int64 ``(N,)``."""

    order: str  # which sequences
    longest: str  # their lengths in that order
    lengths: str  # in the order of the batch


class Graph:
    """Nodes in order, constants, and the name of each variable's current value.

    A variable that is written twice has two values: every value of an ONNX graph is written once.
    """

    def __init__(self, opset: int, version: int) -> None:
        self.opset = opset
        self.later = version >= PADDLE2_VERSION  # a program of Paddle 2.x, whose scalars have no dims
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}
        self.values: dict[str, str] = {}  # variable -> its present value
        self.taken: set[str] = set()
        self.lengths: dict[str, str] = {}  # variable with a LoD -> the lengths of its sequences, int64 (N,)
        self.tables: dict[str, RankTable] = {}  # variable -> its rank table
        self.types: dict[str, VarType] = {}  # of variables that the program declares otherwise
        self.read: set[str] = set()  # variables that operators of the program read, and fetches
        self._shared: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def take_name(self, wanted: str) -> str:
        """Return ``wanted``, with a number if a value has that name already."""
        name, count = wanted, 0
        while name in self.taken:
            count += 1
            name = f"{wanted}@{count}"
        self.taken.add(name)
        return name

    def add(self, kind: str, inputs: Sequence[str], *, count: int = 1, **attrs: Any) -> list[str]:
        """Append a node and return the names of its outputs."""
        from onnx import helper  # an extra

        kind, inputs, attrs = self._adapt(kind, list(inputs), attrs)
        outputs = [self.take_name(f"{kind}.{len(self.nodes)}" + f".{i}" * (i > 0)) for i in range(count)]
        self.nodes.append(helper.make_node(kind, list(inputs), outputs, **attrs))
        return outputs

    def _adapt(
        self, kind: str, inputs: list[str], attrs: dict[str, Any]
    ) -> tuple[str, list[str], dict[str, Any]]:
        """Return an operator in its form before version 13, in which axes and sizes are attributes."""
        if self.opset < 13 and kind in _ATTRIBUTES and len(inputs) > 1:
            if inputs[1] not in self.constants:
                raise InexpressibleError(
                    f"{kind} needs opset 13: its {_ATTRIBUTES[kind]} are only known at run time"
                )
            attrs = attrs | {_ATTRIBUTES[kind]: self.constants[inputs[1]].tolist()}
            inputs = inputs[:1]
        if self.opset < 12 and kind in _STRICT:
            parts = [self.add(each, inputs)[0] for each in (_STRICT[kind], "Equal")]
            return "Or", parts, {}
        if self.opset < 12 and kind in _CHOICES and len(inputs) == 2:  # of whole numbers since then
            return "Where", [self.add(_CHOICES[kind], inputs)[0], *inputs], {}
        if self.opset < _SINCE.get(kind, 0):
            raise InexpressibleError(f"{kind} needs opset {_SINCE[kind]}")
        if self.opset < 11:
            inputs, attrs = self._adapt_early(kind, inputs, attrs)
        return kind, inputs, attrs

    def _adapt_early(
        self, kind: str, inputs: list[str], attrs: dict[str, Any]
    ) -> tuple[list[str], dict[str, Any]]:
        """Return an operator in its form of versions 9 and 10. Raises InexpressibleError for attributes they
        lack.
        """
        from onnx import defs, helper

        newest = defs.get_schema(kind)
        if not defs.has(kind, max_inclusive_version=self.opset):
            raise InexpressibleError(f"{kind} needs opset {_find_first(kind)}")
        before, names = _EARLY.get(kind, (0, ()))
        if self.opset < before:
            for name, value in zip(names, inputs[1:], strict=False):
                if value and value not in self.constants:
                    raise InexpressibleError(
                        f"{kind} needs opset {before}: its {name} are only known at run time"
                    )
                held = self.constants[value] if value else None
                if held is not None and not (name == "steps" and (held == 1).all()):
                    attrs = attrs | {name: held.item() if held.ndim == 0 or name == "k" else held.tolist()}
            inputs = inputs[:1]
        schema = defs.get_schema(kind, self.opset)
        for name in [name for name in attrs if name not in schema.attributes]:
            declared = newest.attributes.get(name)
            default = None if declared is None else helper.get_attribute_value(declared.default_value)
            if attrs[name] != default and not (name == "dilations" and set(attrs[name]) == {1}):
                raise InexpressibleError(f"{kind} has no {name} in opset {self.opset}")
            del attrs[name]
        if any(np.min(attrs[name]) < 0 for name in ("axis", "axes") if name in attrs):
            raise InexpressibleError(f"{kind} with a negative axis needs opset 11")
        if len(inputs) > schema.max_input:
            raise InexpressibleError(f"{kind} has {schema.max_input} inputs in opset {self.opset}")
        return inputs, attrs

    def add_constant(self, value: Array) -> str:
        """Return the name of a constant; equal constants are stored once."""
        key = (value.dtype.str, value.shape, value.tobytes())
        if key not in self._shared:
            self._shared[key] = self.take_name(f"constant.{len(self._shared)}")
            self.constants[self._shared[key]] = value
        return self._shared[key]


def _find_first(kind: str) -> int:
    """Return the version that introduced an operator."""
    from onnx import defs

    return min(one.since_version for one in defs.get_all_schemas_with_history() if one.name == kind)


class Step:
    """One operator of the program, with its slots and attributes, and the methods that translate it into
    nodes.
    """

    def __init__(self, graph: Graph, op: Operator) -> None:
        self.graph = graph
        self.op = op
        self._start = len(graph.nodes)

    # The operator

    def has(self, slot: str) -> bool:
        """Return whether an input slot has a variable."""
        return bool(self.op.input(slot))

    def inputs(self, slot: str) -> list[str]:
        """Return the values of an input slot. Raises InexpressibleError when no node computes one of them."""
        missing = [name for name in self.op.input(slot) if name not in self.graph.values]
        if missing:
            self.refuse(f"it reads {missing[0]}, which no operator that ONNX can express computes")
        return [self.graph.values[name] for name in self.op.input(slot)]

    def input(self, slot: str = "X") -> str:
        """Return the value of an input slot."""
        return self.inputs(slot)[0]

    def variable(self, slot: str = "X") -> Variable:
        """Return the variable of an input or output slot."""
        return self.op.block._var_recursive((self.op.input(slot) or self.op.output(slot))[0])

    def shape(self, slot: str = "X") -> tuple[int, ...]:
        """Return the declared shape of a slot's variable, -1 where a dim is not known."""
        return self.variable(slot).shape

    def rank(self, slot: str = "X") -> int:
        """Return the number of dims of a slot's variable."""
        return len(self.shape(slot))

    def dtype(self, slot: str = "X") -> np.dtype[Any]:
        """Return the element type of a slot's variable."""
        variable = self.variable(slot)
        return numpy_dtype(self.graph.types.get(variable.name, variable.dtype))

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or its default in Paddle, or ``default``."""
        return read_attr(self.op, name, default)

    def refuse(self, reason: str) -> NoReturn:
        """Raise InexpressibleError with a reason."""
        raise InexpressibleError(reason)

    def refuse_inputs(self, *slots: str) -> None:
        """Raise InexpressibleError if one of these slots has a variable."""
        for slot in slots:
            if self.has(slot):
                self.refuse(f"input {slot} is computed at run time")

    # Its nodes

    def convert(self, converter: Converter) -> None:
        """Translate the operator. The converter returns the value of its first output."""
        value = converter(self)
        if value is not None:
            known = self._find_definition()
            assert known is not None
            self.give(known.output_slots[0].name, value)

    def _find_definition(self) -> type[OpDef] | None:
        return registry.find_for_version(self.op.type, self.op.block.program.paddle_version)

    def add(self, kind: str, *inputs: str, **attrs: Any) -> str:
        """Append a node of one output, and return its name."""
        return self.graph.add(kind, inputs, **attrs)[0]

    def add_several(self, kind: str, *inputs: str, count: int, **attrs: Any) -> list[str]:
        """Append a node of several outputs, and return their names."""
        return self.graph.add(kind, inputs, count=count, **attrs)

    def constant(self, value: ArrayLike, dtype: DTypeLike) -> str:
        """Return a constant with a given element type."""
        return self.graph.add_constant(np.asarray(value, dtype))

    def like(self, value: ArrayLike, slot: str = "X") -> str:
        """Return a constant with the element type of a slot."""
        return self.constant(value, self.dtype(slot))

    def ints(self, *values: int) -> str:
        """Return a constant row of int64, such as axes or sizes."""
        return self.constant(values, np.int64)

    def cast(self, value: str, dtype: DtypeLike) -> str:
        """Return a value as elements of another type."""
        return self.add("Cast", value, to=dtype_row(dtype).onnx)

    def reshape(self, value: str, *dims: int) -> str:
        """Return a value in another shape; 0 copies a dim, -1 stands for the remaining size."""
        return self.add("Reshape", value, self.ints(*dims))

    def unsqueeze(self, value: str, *axes: int) -> str:
        """Return a value with dims of 1 at ``axes`` of the result."""
        return self.add("Unsqueeze", value, self.ints(*axes)) if axes else value

    def squeeze(self, value: str, *axes: int) -> str:
        """Return a value without the dims of 1 at ``axes``."""
        return self.add("Squeeze", value, self.ints(*axes)) if axes else value

    def transpose(self, value: str, perm: Sequence[int]) -> str:
        """Return a value with its dims in another order."""
        return value if list(perm) == sorted(perm) else self.add("Transpose", value, perm=list(perm))

    def dims(self, value: str, start: int, end: int) -> str:
        """Return some dims of a value, as a row of int64."""
        return self.add("Slice", self.add("Shape", value), self.ints(start), self.ints(end))

    def reduce(self, kind: str, value: str, axes: Sequence[int], *, keep: bool) -> str:
        """Return a reduction over dims, which are an input since opset 18 (for ReduceSum since 13)."""
        if kind == "ReduceSum" or self.graph.opset >= 18:
            return self.add(kind, value, self.ints(*axes), keepdims=int(keep))
        return self.add(kind, value, axes=list(axes), keepdims=int(keep))

    def numbers(self, attr: str, tensor: str = "", tensors: str = "") -> str:
        """Return int64 numbers from a list of tensors, else from one tensor, else from the attribute."""
        if tensors and self.has(tensors):
            rows = [self.cast(self.reshape(one, 1), "int64") for one in self.inputs(tensors)]
            return self.add("Concat", *rows, axis=0)
        if tensor and self.has(tensor):
            return self.cast(self.reshape(self.input(tensor), -1), "int64")
        return self.ints(*self.attr(attr, []))

    def has_lengths(self, slot: str = "X") -> bool:
        """Return whether the variable of a slot holds sequences."""
        return self.has(slot) and self.op.input(slot)[0] in self.graph.lengths

    def lengths(self, slot: str = "X") -> str:
        """Return the lengths of a slot's sequences. Raises InexpressibleError when the slot has none."""
        if not self.has_lengths(slot):
            self.refuse(f"{self.op.input(slot)[0]} holds no sequences; its lod_level must be 1")
        return self.graph.lengths[self.op.input(slot)[0]]

    def is_read(self, slot: str) -> bool:
        """Return whether a slot's first output is read."""
        return any(name in self.graph.read for name in self.op.output(slot))

    def give(self, slot: str, value: str, index: int = 0, *, lengths: str | None = None) -> None:
        """Set the value of an output variable; a value that this step computed is renamed to the variable.

        ``lengths`` are the lengths of its sequences. None: the lengths of the input whose LoD Paddle passes
        on.
        """
        if not self.op.output(slot):
            return
        name = self.op.output(slot)[index]
        self._note_lengths(slot, name, lengths)
        self._pass_type_on(name)
        own = self.graph.nodes[self._start :]
        if any(value in node.output for node in own):
            named = self.graph.take_name(name)
            for node in own:
                _rename(node.output, value, named)
                _rename(node.input, value, named)
            value = named
        self.graph.values[name] = value

    def _pass_type_on(self, name: str) -> None:
        """Record the type of an output declared with the type of an input whose value has another type."""
        find = self.op.block._var_recursive
        for one in self.op.input_arg_names:
            if one in self.graph.types and find(one).dtype == find(name).dtype:
                self.graph.types.setdefault(name, self.graph.types[one])

    def _note_lengths(self, slot: str, name: str, lengths: str | None) -> None:
        known = self._find_definition()
        source = None if known is None else known.find_lod_source(slot)
        kept = self.op.block._var_recursive(name).lod_level or self.op.type.rstrip("2") not in _REGROUPING
        if lengths is None and kept and source is not None and self.has_lengths(source):
            lengths = self.lengths(source)
        if lengths is None:
            self.graph.lengths.pop(name, None)
        else:
            self.graph.lengths[name] = lengths


def _rename(names: MutableSequence[str], old: str, new: str) -> None:
    for index, name in enumerate(names):
        if name == old:
            names[index] = new


# The table of operators that ONNX can express: a function for each, in the modules of the families.

#: A function that returns the value of the operator's first output.
Converter = Callable[[Step], str | None]

_TABLE: Final = Table[Converter]("paddlelike.interop.onnx.exporter.families")
converts = _TABLE.add
load_table = _TABLE.load
