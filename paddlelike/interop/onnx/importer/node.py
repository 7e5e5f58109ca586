"""One node of an ONNX graph: its inputs and attributes, and the methods that translate it into operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from paddlelike.core import Array, VarType, convert_dtype, numpy_dtype
from paddlelike.errors import FormatError
from paddlelike.framework import Variable
from paddlelike.hooks import Hook
from paddlelike.interop.onnx.importer.graph import Given, Graph, Value
from paddlelike.interop.reader_tables import InexpressibleError, Table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike
    from onnx import NodeProto

    from paddlelike.core import DtypeLike

# Folding reads nodes, and a node asks it for what other nodes compute.
_compute: Final[Hook[[Node, str], Array | None]] = Hook("compute_onnx_value")

#: Stands for "to the end" in attributes of int32.
MOST: Final = np.iinfo(np.int32).max

#: The reason against an input whose value must be known when the program is built.
AT_RUN: Final = "is computed at run time"


class Node:
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

    def input(self, index: int = 0) -> str:
        """Return the name of an input's variable."""
        return self.value(index).name

    def inputs(self) -> list[str]:
        """Return the names of all inputs' variables."""
        return [self.input(index) for index in range(self.count)]

    def variable(self, index: int = 0) -> Variable:
        """Return an input's variable."""
        return self.graph.variable(self.input(index))

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
        """Return the value of an input that does not depend on feeds, or None."""
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

    def refuse(self, reason: str) -> NoReturn:
        """Raise InexpressibleError with a reason."""
        raise InexpressibleError(reason)

    def fail(self, reason: str) -> NoReturn:
        """Raise FormatError: the model is damaged."""
        raise FormatError(f"node {self.proto.name!r:.60} ({self.type}): {reason}")

    # Its operators

    def emit(
        self,
        kind: str,
        x: Given | Mapping[str, Given] | None = None,
        y: str | None = None,
        /,
        *,
        slot: Any = None,
        typed: Any = None,
        shaped: Any = None,
        **attrs: Any,
    ) -> str:
        """Append an operator of one output, and return its name; ``x`` and ``y`` are its inputs X and Y.

        ``slot`` is the output's, its first one if None; ``typed`` and ``shaped`` are the element type and the
        dims, where its shape rule cannot infer them.
        """
        given = _collect(x, y)
        return self.graph.emit(kind, given, attrs, slot=slot, typed=typed, shaped=shaped)[0]

    def split(self, x: Given | Mapping[str, Given], count: int, **attrs: Any) -> list[str]:
        """Append a split, and return the names of its outputs."""
        return self.graph.emit("split", _collect(x, None), attrs, count=count)

    def constant(self, value: ArrayLike, dtype: DTypeLike) -> str:
        """Return a constant with a given element type."""
        return self.graph.constant(np.asarray(value, dtype))

    def like(self, value: float, index: int = 0) -> str:
        """Return a constant of one element with the element type of an input."""
        return self.constant([value], self.dtype(index))

    def cast(self, name: str, dtype: DtypeLike) -> str:
        """Return a value as elements of another type."""
        source, target = self.graph.variable(name).dtype, convert_dtype(dtype)
        if source == target:
            return name
        return self.emit("cast", name, in_dtype=int(source), out_dtype=int(target))

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the dims of a variable."""
        return tuple(self.graph.variable(name).shape)

    def reshape(self, name: str, *dims: int) -> str:
        """Return a value in another shape; 0 copies a dim, -1 stands for the remaining size."""
        return self.emit("reshape2", name, shape=list(dims))

    def unsqueeze(self, name: str, *axes: int) -> str:
        """Return a value with dims of 1 at ``axes`` of the result."""
        return self.emit("unsqueeze2", name, axes=sorted(axes)) if axes else name

    def squeeze(self, name: str, *axes: int) -> str:
        """Return a value without the dims of 1 at ``axes``."""
        return self.emit("squeeze2", name, axes=sorted(axes)) if axes else name

    def transpose(self, name: str, perm: Sequence[int]) -> str:
        """Return a value with its dims in another order."""
        return name if list(perm) == sorted(perm) else self.emit("transpose2", name, axis=list(perm))

    def scale(self, name: str, scale: float = 1.0, bias: float = 0.0) -> str:
        """Return ``scale x + bias``."""
        return (
            name
            if (scale, bias) == (1, 0)
            else self.emit("scale", name, scale=float(scale), bias=float(bias))
        )

    def reduce(self, kind: str, x: str, *axes: int, keep: bool = True) -> str:
        """Return ``reduce_<kind>`` over some dims; over all dims the result has shape (1,), as in Fluid."""
        whole = len(axes) == len(self.shape(x))
        return self.emit(f"reduce_{kind}", x, dim=list(axes), keep_dim=keep, reduce_all=whole)

    def dims_at_run(self, name: str) -> str:
        """Return the dims of a value at run time, int64."""
        return self.cast(self.emit("shape", {"Input": name}), VarType.INT64)

    def slice(self, name: str, axis: int, start: int, end: int) -> str:
        """Return a part of one dim."""
        return self.emit("slice", {"Input": name}, axes=[axis], starts=[start], ends=[min(end, MOST)])

    def broadcast(self, *names: str) -> list[str]:
        """Return values broadcast to their common shape; -0.0 becomes 0.0."""
        shapes = {self.shape(name) for name in names}
        if len(shapes) == 1 and -1 not in next(iter(shapes))[1:]:
            return list(names)
        zero = None
        for name in names:
            number = self.cast(self.emit("fill_zeros_like", name), VarType.INT64)
            zero = number if zero is None else self.emit("elementwise_add", zero, number)
        assert zero is not None
        found = []
        for name in names:
            variable = self.graph.variable(name)
            if variable.dtype == VarType.BOOL:
                added = self.emit("elementwise_add", self.cast(name, VarType.INT64), zero)
            else:
                added = self.emit("elementwise_add", name, self.cast(zero, variable.dtype))
            found.append(self.cast(added, variable.dtype))
        return found

    def alias(self, value: Value, index: int = 0) -> None:
        """Use an existing value as an output."""
        if self.wants(index):
            self.graph.values[self.proto.output[index]] = value

    def give(self, name: str, index: int = 0) -> None:
        """Use a variable as an output, with the element type and dims that ONNX infers."""
        if not self.wants(index):
            return
        output = self.proto.output[index]
        typed = self.graph.typed.get(output)
        if typed is not None and typed.dtype is not None:
            name = self.cast(name, typed.dtype)
        scalar = typed is not None and typed.dims == ()
        variable = self.graph.variable(name)
        if scalar:
            if variable.shape != (1,):
                name = self.reshape(name, 1)
        elif typed is not None and typed.dims is not None and not variable.persistable:
            variable.shape = _merge(typed.dims, variable.shape)
        self.graph.values[output] = Value(name, scalar=scalar)


def _collect(x: Given | Mapping[str, Given] | None, y: str | None) -> dict[str, Given]:
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

#: A function that returns the name of the operator's first output.
Converter = Callable[[Node], str | None]

#: The domain of classic machine learning; its operators are in the table with this before their names.
ML: Final = "ai.onnx.ml."

_TABLE: Final = Table[Converter]("paddlelike.interop.onnx.importer.families")
reads = _TABLE.add
load_table = _TABLE.load
