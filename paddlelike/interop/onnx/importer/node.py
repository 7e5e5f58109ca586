"""One node of an ONNX graph: its inputs and attributes, and the methods that translate it into operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from paddlelike.core import Array, VarType, numpy_dtype
from paddlelike.errors import FormatError
from paddlelike.framework import Variable
from paddlelike.hooks import Hook
from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.graph import Given, Graph, Value
from paddlelike.interop.reader_tables import Table, Translation

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike
    from onnx import NodeProto

    from paddlelike.core import DtypeLike


# A hook, since folding imports this module.
_compute: Final[Hook[[Node, str], Array | None]] = Hook("compute_onnx_value")

#: The reason against an input whose value must be known when the program is built.
AT_RUN: Final = "is computed at run time"


class Node(Translation):
    """An operator of ONNX. Its inputs are counted from 0; a missing input is ``""``."""

    def __init__(self, graph: Graph, proto: NodeProto) -> None:
        self.graph = graph
        self.proto = proto
        self.type: str = proto.op_type
        self.opset = graph.opsets.get(proto.domain, 1)
        self._attrs = {attr.name: attr for attr in proto.attribute}

    # The node

    @property
    def count(self) -> int:
        """The number of inputs."""
        return len(self.proto.input)

    def has(self, index: int) -> bool:
        """Return whether an input is given."""
        return index < len(self.proto.input) and bool(self.proto.input[index])

    def wants(self, index: int) -> bool:
        """Return whether an output may be read."""
        return index < len(self.proto.output) and bool(self.proto.output[index])

    def value(self, index: int = 0) -> Value:
        """Return an input. Raises InexpressibleError when it is missing."""
        if not self.has(index):
            self.refuse(f"it has no input {index}")
        return self.graph.find(self.proto.input[index])

    def input(self, index: int = 0) -> Expression:
        """Return an input as an expression."""
        return Expression(self.graph, self.value(index).name)

    def inputs(self) -> list[Expression]:
        """Return all inputs."""
        return [self.input(index) for index in range(self.count)]

    def variable(self, index: int = 0) -> Variable:
        """Return an input's variable."""
        return self.input(index).variable

    def rank(self, index: int = 0) -> int:
        """Return the number of dims of an input, as ONNX counts them."""
        return len(self.dims(index))

    def dims(self, index: int = 0) -> tuple[int, ...]:
        """Return the dims of an input, -1 for unknown ones. Raises InexpressibleError if their number is
        unknown.
        """
        value = self.value(index)
        if value.scalar:
            return ()
        shape = self.graph.variable(value.name).shape
        if not shape:
            self.refuse(f"the number of dims of {self.proto.input[index]!r:.60} is not known")
        return tuple(shape)

    def find_output_dims(self) -> tuple[int, ...] | None:
        """Return the dims of the first output, -1 for unknown ones, or None if the model declares none."""
        typed = self.graph.typed.get(self.proto.output[0])
        return None if typed is None else typed.dims

    def dtype(self, index: int = 0) -> np.dtype[Any]:
        """Return the element type of an input."""
        return numpy_dtype(self.variable(index).dtype)

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute; texts are str."""
        if name not in self._attrs:
            return default
        from onnx import helper  # an extra

        found = helper.get_attribute_value(self._attrs[name])
        if isinstance(found, bytes):
            return found.decode("utf-8", "replace")
        if isinstance(found, list) and found and isinstance(found[0], bytes):
            return [text.decode("utf-8", "replace") for text in found]
        return found

    def axis(self, default: int, rank: int | None = None) -> int:
        """Return the attribute ``axis``, counted from 0. Raises InexpressibleError when there is no such
        dim.
        """
        return self.normalize(self.attr("axis", default), self.rank() if rank is None else rank)

    def normalize(self, axis: int, rank: int) -> int:
        """Return an axis counted from 0. Raises InexpressibleError when there is no such dim."""
        if not -rank <= axis < rank:
            self.refuse(f"axis {axis} of {rank} dims")
        return axis % rank

    def find_known(self, index: int) -> Array | None:
        """Return the value of an input, or None if it depends on feeds."""
        name = self.proto.input[index] if self.has(index) else ""
        if name in self.graph.known:
            return self.graph.known[name]
        partial = self.graph.partial.get(name)
        return None if partial is None or np.isnan(partial).any() else partial.astype(np.int64)

    def known(self, index: int) -> Array:
        """Return the value of an input. Raises InexpressibleError when it is computed from feeds."""
        found = self.find_known(index)
        if found is None and self.has(index):
            found = _compute.function(self, self.proto.input[index])
        if found is None and self.has(index) and 0 in self.dims(index):
            found = np.zeros([max(dim, 0) for dim in self.dims(index)], self.dtype(index))
        if found is None:
            self.refuse(f"input {index}, {self.proto.input[index]!r:.60}, {AT_RUN}")
        return found

    def numbers(self, index: int, attr: str = "") -> list[int] | None:
        """Return integers from an input, or from an attribute in older versions; None if not given."""
        if self.has(index):
            return [int(number) for number in self.known(index).reshape(-1)]
        found = self.attr(attr) if attr else None
        return None if found is None else list(found)

    def row(self, index: int, dtype: DtypeLike = VarType.INT64) -> Expression:
        """Return an input as an expression of one dim."""
        return self.input(index).reshape(-1).cast(dtype)

    def size(self, axis: int) -> Expression:
        """Return the size of a dim of the first input, int64."""
        dims = self.dims()
        if dims[axis] >= 0:
            return self.constant([dims[axis]], np.int64)
        return self.input().dims_at_run().slice(0, axis, axis + 1)

    def find_axes(self, index: int, count: int) -> Sequence[int] | Expression:
        """Return the axes of an input, which may be left out or computed."""
        if not self.has(index):
            return range(count if count > 0 else self.rank())
        known = self.find_known(index)
        if known is None:
            return self.row(index)
        return [self.normalize(int(axis), self.rank()) for axis in known.reshape(-1)]

    def fail(self, reason: str) -> NoReturn:
        """Raise FormatError: the model is damaged."""
        raise FormatError(f"node {self.proto.name!r:.60} ({self.type}): {reason}")

    # Its operators

    def emit(
        self,
        kind: str,
        x: Given = None,
        y: Given = None,
        /,
        *,
        slot: Any = None,
        typed: Any = None,
        shaped: Any = None,
        **attrs: Any,
    ) -> Expression:
        """Append an operator, and return its output; ``x`` and ``y`` are its inputs X and Y.

        ``slot`` is the output slot, by default the first; ``typed`` and ``shaped`` are the dtype and the
        dims, if its shape rule cannot infer them.
        """
        given = _collect(x, y)
        found = self.graph.emit(kind, given, attrs, slot=slot, typed=typed, shaped=shaped)
        return Expression(self.graph, found[0])

    def split(self, x: Given, count: int, **attrs: Any) -> list[Expression]:
        """Append a split, and return its outputs."""
        names = self.graph.emit("split", _collect(x, None), attrs, count=count)
        return [Expression(self.graph, name) for name in names]

    def parameter(self, wanted: str, value: Array) -> Expression:
        """Return a parameter with a value; its name is ``wanted`` if that is free."""
        return Expression(self.graph, self.graph.add_parameter(wanted, value))

    def last_output(self, slot: str) -> Expression:
        """Return another output of the operator that was appended last."""
        return Expression(self.graph, self.graph.last_output(slot))

    def constant(self, value: ArrayLike, dtype: DTypeLike) -> Expression:
        """Return a constant with a given element type."""
        return Expression(self.graph, self.graph.constant(np.asarray(value, dtype)))

    def like(self, value: float, index: int = 0) -> Expression:
        """Return a constant of one element with the element type of an input."""
        return self.constant([value], self.dtype(index))

    def broadcast(self, *values: Expression) -> list[Expression]:
        """Return values broadcast to their common shape; -0.0 becomes 0.0."""
        shapes = {one.shape for one in values}
        if len(shapes) == 1 and -1 not in next(iter(shapes))[1:]:
            return list(values)
        zero = None
        for one in values:
            number = one.zeros().cast(VarType.INT64)
            zero = number if zero is None else zero.make("elementwise_add", number)
        assert zero is not None
        found = []
        for one in values:
            dtype = one.variable.dtype
            if dtype == VarType.BOOL:
                added = one.cast(VarType.INT64).make("elementwise_add", zero)
            else:
                added = one.make("elementwise_add", zero.cast(dtype))
            found.append(added.cast(dtype))
        return found

    def alias(self, value: Value, index: int = 0) -> None:
        """Use an existing value as an output."""
        if self.wants(index):
            self.graph.values[self.proto.output[index]] = value

    def give(self, value: Expression, index: int = 0) -> None:
        """Make a value an output, of the element type and the dims that ONNX infers."""
        if not self.wants(index):
            return
        output = self.proto.output[index]
        typed = self.graph.typed.get(output)
        if typed is not None and typed.dtype is not None:
            value = value.cast(typed.dtype)
        scalar = typed is not None and typed.dims == ()
        variable = value.variable
        if scalar:
            if variable.shape != (1,):
                value = value.reshape(1)
        elif typed is not None and typed.dims is not None and not variable.persistable:
            variable.shape = _merge(typed.dims, variable.shape)
        self.graph.values[output] = Value(value.name, scalar=scalar)


def _collect(x: Given, y: Given) -> dict[str, Given]:
    if isinstance(x, Mapping):
        return dict(x)
    given: dict[str, Given] = {} if x is None else {"X": x}
    return given if y is None else given | {"Y": y}


def _merge(dims: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Merge two partly known shapes."""
    if len(dims) != len(shape):
        return dims
    return tuple(other if dim < 0 else dim for dim, other in zip(dims, shape, strict=True))


# The table of ONNX's operators that a program can express: a function for each.

#: A function that returns the operator's first output.
Converter = Callable[[Node], Expression | None]

#: The domain of classic machine learning; its operators are in the table with this before their names.
ML: Final = "ai.onnx.ml."

_TABLE: Final = Table[Converter]("paddlelike.interop.onnx.importer.families")
reads = _TABLE.add
load_table = _TABLE.load
