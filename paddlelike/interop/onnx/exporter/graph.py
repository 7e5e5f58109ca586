"""The nodes and constants of an ONNX graph while a program is translated, one operator (a step) at a time."""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from paddlelike.core import Array, VarType, dtype_row, numpy_dtype
from paddlelike.framework import Operator, Variable
from paddlelike.framework.environment import PADDLE2_VERSION
from paddlelike.framework.opdef import OpDef, registry
from paddlelike.interop import exporting
from paddlelike.interop.arithmetic import Exported
from paddlelike.interop.reader_tables import InexpressibleError, Table
from paddlelike.ops.elementwise.names import UNARY_IN_ONNX

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
#: The end of a slice that has none.
MOST: Final = np.iinfo(np.int64).max


#: An operand of a value.
Operand: TypeAlias = "Value | float"


class RankTable(NamedTuple):
    """The sequences of a batch, the longest first; all values are int64 ``(N,)``."""

    order: Value  # which sequences
    longest: Value  # their lengths in that order
    lengths: Value  # in the order of the batch


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
        self.lengths: dict[str, Value] = {}  # variable with a LoD -> the lengths of its sequences, int64 (N,)
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

    def add(self, kind: str, *inputs: Value | str, **attrs: Any) -> Value:
        """Append a node of one output, and return it; an input ``""`` is left out."""
        return self._append(kind, inputs, 1, attrs)[0]

    def add_several(self, kind: str, *inputs: Value | str, count: int, **attrs: Any) -> list[Value]:
        """Append a node of several outputs, and return them."""
        return self._append(kind, inputs, count, attrs)

    def _append(
        self, kind: str, inputs: Sequence[Value | str], count: int, attrs: dict[str, Any]
    ) -> list[Value]:
        from onnx import helper  # an extra

        names = [one if isinstance(one, str) else one.name for one in inputs]
        kind, names, attrs = self._adapt(kind, names, attrs)
        outputs = [self.take_name(f"{kind}.{len(self.nodes)}" + f".{i}" * (i > 0)) for i in range(count)]
        self.nodes.append(helper.make_node(kind, names, outputs, **attrs))
        dtype = next((one.dtype for one in inputs if isinstance(one, Value)), None)
        return [Value(self, name, dtype) for name in outputs]

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
            parts = [self.add(each, *inputs).name for each in (_STRICT[kind], "Equal")]
            return "Or", parts, {}
        if self.opset < 12 and kind in _CHOICES and len(inputs) == 2:  # of whole numbers since then
            return "Where", [self.add(_CHOICES[kind], *inputs).name, *inputs], {}
        if self.opset < _SINCE.get(kind, 0):
            raise InexpressibleError(f"{kind} needs opset {_SINCE[kind]}")
        if self.opset < 11:
            inputs, attrs = self._adapt_early(kind, inputs, attrs)
        return kind, inputs, attrs

    def _adapt_early(
        self, kind: str, inputs: list[str], attrs: dict[str, Any]
    ) -> tuple[list[str], dict[str, Any]]:
        """Return an operator in its form of versions 9 and 10. Raises InexpressibleError for attributes that
        those versions lack.
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

    def constant(self, value: ArrayLike, dtype: DTypeLike) -> Value:
        """Return a constant of an element type; equal ones are kept once."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._shared:
            self._shared[key] = self.take_name(f"constant.{len(self._shared)}")
            self.constants[self._shared[key]] = array
        return Value(self, self._shared[key], array.dtype)

    def ints(self, *values: int) -> Value:
        """Return a constant row of int64, such as axes or sizes."""
        return self.constant(values, np.int64)

    def scalar(self, value: int) -> Value:
        """Return a constant of int64 without dims."""
        return self.constant(value, np.int64)

    def concat(self, *parts: Value, axis: int = 0) -> Value:
        """Return values joined along a dim."""
        return self.add("Concat", *parts, axis=axis)


class Value(Exported):
    """A value of the graph. Its operators and methods append nodes, and mean the same as numpy's.

    A whole number beside a value stands for an array of one int64, a real number for an array of one
    ``dtype``.
    """

    KINDS = MappingProxyType(
        {
            "add": "Add",
            "subtract": "Sub",
            "multiply": "Mul",
            "divide": "Div",
            "less": "Less",
            "less_equal": "LessOrEqual",
            "greater": "Greater",
            "greater_equal": "GreaterOrEqual",
            "equal": "Equal",
            "minimum": "Min",
            "maximum": "Max",
        }
    )

    def __init__(self, graph: Graph, name: str, dtype: DtypeLike | None = None) -> None:
        self.graph = graph
        self.name = name
        self.dtype = dtype

    def _join(self, kind: str, x: Operand, y: Operand) -> Value:
        return self.graph.add(self.KINDS[kind], self._lift(x), self._lift(y))

    def _lift(self, other: Operand) -> Value:
        if isinstance(other, Value):
            return other
        return self.number(other) if isinstance(other, float) else self.graph.ints(other)

    def number(self, value: float) -> Value:
        assert self.dtype is not None
        return self.graph.constant(value, numpy_dtype(self.dtype))

    def apply(self, type: str) -> Value:
        return self.graph.add(UNARY_IN_ONNX[type], self)

    def clip(self, low: float, high: float) -> Value:
        return self.graph.add("Clip", self, self.number(low), self.number(high))

    def softplus(self) -> Value:
        return self.graph.add("Softplus", self)

    def __matmul__(self, other: Value) -> Value:
        return self.graph.add("MatMul", self, other)

    def __and__(self, other: Value) -> Value:
        return self.graph.add("And", self, other)

    def __or__(self, other: Value) -> Value:
        return self.graph.add("Or", self, other)

    def __invert__(self) -> Value:
        return self.graph.add("Not", self)

    def __neg__(self) -> Value:
        return self.graph.add("Neg", self)

    def __abs__(self) -> Value:
        return self.graph.add("Abs", self)

    def __getitem__(self, rows: slice | Value) -> Value:
        """Return the rows from a start to an end, or those at which a mask is True."""
        if isinstance(rows, Value):
            return self.graph.add("Compress", self, rows, axis=0)
        bounds = (0 if rows.start is None else rows.start, MOST if rows.stop is None else rows.stop)
        return self.graph.add("Slice", self, *map(self._lift, bounds))

    def where(self, one: Operand, other: Operand) -> Value:
        """Return the elements of one value where this one is True, else those of another."""
        like = one if isinstance(one, Value) else other if isinstance(other, Value) else self
        return self.graph.add("Where", self, like._lift(one), like._lift(other))

    def take(self, places: Value, axis: int = 0) -> Value:
        """Return the elements of a dim at the given positions."""
        return self.graph.add("Gather", self, places, axis=axis)

    def range(self) -> Value:
        """Return the int64 numbers 0, 1, ... below this one, which has no dims."""
        return self.graph.add("Range", self.graph.scalar(0), self, self.graph.scalar(1))

    def cast(self, dtype: DtypeLike) -> Value:
        """Return the value as elements of another type."""
        out = self.graph.add("Cast", self, to=dtype_row(dtype).onnx)
        out.dtype = dtype
        return out

    def reshape(self, *dims: Any) -> Value:
        """Return the value in another shape, dims or a row; 0 copies a dim, -1 takes what is left."""
        row = dims[0] if dims and isinstance(dims[0], Value) else self.graph.ints(*dims)
        return self.graph.add("Reshape", self, row)

    def expand(self, shape: Value) -> Value:
        """Return the value repeated along its dims of 1."""
        return self.graph.add("Expand", self, shape)

    def unsqueeze(self, *axes: int) -> Value:
        """Return the value with dims of 1 at ``axes`` of the result."""
        return self.graph.add("Unsqueeze", self, self.graph.ints(*axes)) if axes else self

    def squeeze(self, *axes: int) -> Value:
        """Return the value without the dims of 1 at ``axes``."""
        return self.graph.add("Squeeze", self, self.graph.ints(*axes)) if axes else self

    def transpose(self, perm: Sequence[int]) -> Value:
        """Return the value with its dims in another order."""
        return self if list(perm) == sorted(perm) else self.graph.add("Transpose", self, perm=list(perm))

    def dims(self, start: int = 0, end: int | None = None) -> Value:
        """Return the dims of the value, or some of them, as a row of int64."""
        shape = self.graph.add("Shape", self)
        return shape if end is None else shape[start:end]

    def reduce(self, kind: str, *axes: int, keep: bool = False) -> Value:
        """Return a reduction over dims, which are an input since opset 18 (for ReduceSum since 13)."""
        if kind == "ReduceSum" or self.graph.opset >= 18:
            return self.graph.add(kind, self, self.graph.ints(*axes), keepdims=int(keep))
        return self.graph.add(kind, self, axes=list(axes), keepdims=int(keep))


def _find_first(kind: str) -> int:
    """Return the version that introduced an operator."""
    from onnx import defs

    return min(one.since_version for one in defs.get_all_schemas_with_history() if one.name == kind)


class Step(exporting.Step):
    """One operator of the program, with its slots and attributes, and the methods that translate it into
    nodes.
    """

    def __init__(self, graph: Graph, op: Operator) -> None:
        self.graph = graph
        self.op = op
        self._start = len(graph.nodes)
        self.add, self.add_several = graph.add, graph.add_several
        self.constant, self.ints, self.scalar = graph.constant, graph.ints, graph.scalar
        self.concat = graph.concat

    # The operator

    def inputs(self, slot: str) -> list[Value]:
        """Return the values of an input slot. Raises InexpressibleError when no node computes one of them."""
        missing = [name for name in self.op.input(slot) if name not in self.graph.values]
        if missing:
            self.refuse(f"it reads {missing[0]}, which no operator that ONNX can express computes")
        graph, find = self.graph, self.op.block._var_recursive
        return [
            Value(graph, graph.values[name], graph.types.get(name, find(name).dtype))
            for name in self.op.input(slot)
        ]

    def input(self, slot: str = "X") -> Value:
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

    def like(self, value: ArrayLike, slot: str = "X") -> Value:
        """Return a constant with the element type of a slot."""
        return self.constant(value, self.dtype(slot))

    def numbers(self, attr: str, tensor: str = "", tensors: str = "") -> Value:
        """Return int64 numbers from a list of tensors, else from one tensor, else from the attribute."""
        if tensors and self.has(tensors):
            rows = [one.reshape(1).cast("int64") for one in self.inputs(tensors)]
            return self.add("Concat", *rows, axis=0)
        if tensor and self.has(tensor):
            return self.input(tensor).reshape(-1).cast("int64")
        return self.ints(*self.attr(attr, []))

    def has_lengths(self, slot: str = "X") -> bool:
        """Return whether the variable of a slot holds sequences."""
        return self.has(slot) and self.op.input(slot)[0] in self.graph.lengths

    def lengths(self, slot: str = "X") -> Value:
        """Return the lengths of a slot's sequences. Raises InexpressibleError when the slot has none."""
        if not self.has_lengths(slot):
            self.refuse(f"{self.op.input(slot)[0]} holds no sequences; its lod_level must be 1")
        return self.graph.lengths[self.op.input(slot)[0]]

    def is_read(self, slot: str) -> bool:
        """Return whether a slot's first output is read."""
        return any(name in self.graph.read for name in self.op.output(slot))

    def give(self, slot: str, value: Value, index: int = 0, *, lengths: Value | None = None) -> None:
        """Set the value of an output variable; a value that this step computed is renamed to the variable.

        ``lengths`` are the lengths of its sequences; by default they come from the input whose LoD Paddle
        passes on.
        """
        if not self.op.output(slot):
            return
        name = self.op.output(slot)[index]
        self._note_lengths(slot, name, lengths)
        self._pass_type_on(name)
        own, given = self.graph.nodes[self._start :], value.name
        if any(given in node.output for node in own):
            named = self.graph.take_name(name)
            for node in own:
                _rename(node.output, given, named)
                _rename(node.input, given, named)
            given = named
        self.graph.values[name] = given

    def _pass_type_on(self, name: str) -> None:
        """Record an output's real type if the program declares an input's dtype for it and the input has
        another type.
        """
        find = self.op.block._var_recursive
        for one in self.op.input_arg_names:
            if one in self.graph.types and find(one).dtype == find(name).dtype:
                self.graph.types.setdefault(name, self.graph.types[one])

    def _note_lengths(self, slot: str, name: str, lengths: Value | None) -> None:
        known = self._find_definition()
        source = None if known is None else known.find_lod_source(slot)
        if lengths is None and source is not None and self.has_lengths(source):
            assert known is not None
            if self.op.block._var_recursive(name).lod_level or not known.regroups:
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
Converter = Callable[[Step], Value | None]

_TABLE: Final = Table[Converter]("paddlelike.interop.onnx.exporter.families")
converts = _TABLE.add
load_table = _TABLE.load
