"""The function of CNTK while a program is translated, one operator (a step) at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike.core import Array, numpy_dtype
from paddlelike.formats.cntk.dictionary import Axis, Shape, SizeT
from paddlelike.formats.cntk.file import describe_variable
from paddlelike.framework import Operator, Variable
from paddlelike.interop import exporting
from paddlelike.interop.arithmetic import Exported
from paddlelike.interop.cntk.function import CONSTANT, INPUT, PARAMETER, PLACEHOLDER
from paddlelike.interop.cntk.operations import NUMBERS
from paddlelike.interop.reader_tables import InexpressibleError, Table
from paddlelike.ops.elementwise.names import UNARY_IN_CNTK

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike


BATCH: Final = Axis(2147483647, "defaultBatchAxis", ordered=False)
SEQUENCE: Final = Axis(2147483647, "defaultDynamicAxis", ordered=True)
ALL_STATIC: Final = Axis(2147483646, "AllStaticAxes", ordered=False)
ALL_AXES: Final = Axis(2147483643, "AllAxes", ordered=False)


@dataclass(frozen=True, eq=False)
class Ref(Exported):
    """A value of the function: its uid, static shape as numpy has it, and dynamic axes.

    A number beside a value stands for a constant of its type.
    """

    KINDS = MappingProxyType(
        {
            "add": "Plus",
            "subtract": "Minus",
            "multiply": "ElementTimes",
            "less": "Less",
            "less_equal": "LessEqual",
            "greater": "Greater",
            "greater_equal": "GreaterEqual",
        }
    )

    graph: Graph
    uid: str
    shape: tuple[int, ...]
    dynamic: bool
    sequence: bool
    dtype: np.dtype[Any]

    @property
    def rank(self) -> int:
        """The number of static dims."""
        return len(self.shape)

    def _join(self, kind: str, x: Ref | float, y: Ref | float) -> Ref:
        return (x if isinstance(x, Ref) else self.number(x)).binary(self.KINDS[kind], y)

    def __truediv__(self, other: Ref | float) -> Ref:
        """Return the quotient, which CNTK saves as a product."""
        return self * (other.unary("Reciprocal") if isinstance(other, Ref) else 1 / other)

    def __matmul__(self, other: Ref) -> Ref:
        """Return the product over the last dim and the first of ``other``; CNTK takes ``other`` first."""
        attributes = {"outputRank": SizeT(other.rank - 1), "inferInputRankToMap": -1}
        shape = [*self.shape[:-1], *other.shape[1:]]
        return self.graph.add("Times", [other, self], attributes, shape=shape)

    def __neg__(self) -> Ref:
        return self.unary("Negate")

    def __abs__(self) -> Ref:
        return self.unary("Abs")

    def clip(self, low: float, high: float) -> Ref:
        return self.graph.add("Clip", [self, self.number(low), self.number(high)], shape=self.shape)

    def choose(self, x: Ref, y: Ref) -> Ref:
        """Return ``x`` where this flag is not 0, else ``y``."""
        return self.graph.add("Select", [self, x, y], shape=self.shape)

    def apply(self, type: str) -> Ref:
        return self.unary(UNARY_IN_CNTK[type])

    def softplus(self) -> Ref:
        return self.binary("LogPlus", 0)

    def number(self, value: float) -> Ref:
        return self.graph.add_constant(value, self.dtype)

    def unary(self, kind: str, **attributes: Any) -> Ref:
        """Append a function that keeps the shape."""
        return self.graph.add(kind, [self], attributes, shape=self.shape)

    def binary(self, kind: str, other: Ref | float) -> Ref:
        """Append a function of this value and another one, which broadcast from the last dim."""
        pair = [self, other if isinstance(other, Ref) else self.number(other)]
        known = np.broadcast_shapes(*([max(size, 1) for size in ref.shape] for ref in pair))
        unknown = {dim - ref.rank for ref in pair for dim, size in enumerate(ref.shape) if size < 0}
        shape = [-1 if dim - len(known) in unknown else size for dim, size in enumerate(known)]
        return self.graph.add(kind, pair, shape=shape)

    def reshape(self, shape: Sequence[int]) -> Ref:
        """Return the value in another static shape. Raises InexpressibleError where it mixes samples."""
        wanted = tuple(int(dim) for dim in shape)
        if wanted == self.shape:
            return self
        if np.prod(wanted, dtype=int) != np.prod(self.shape, dtype=int):
            raise InexpressibleError(
                f"it mixes samples: the shape {list(self.shape)} of each becomes {list(wanted)}"
            )
        axes = {"beginAxis": Axis(0, "staticAxisIdx=0", ordered=True), "endAxis": static_axis(-1, self.rank)}
        return self.graph.add("Reshape", [self], {"newShape": Shape(wanted), **axes}, shape=wanted)

    def transpose(self, perm: Sequence[int]) -> Ref:
        """Return the value with its static dims in another order."""
        if list(perm) == sorted(perm):
            return self
        axes = [static_axis(dim, self.rank) for dim in perm][::-1]
        shape = [self.shape[dim] for dim in perm]
        return self.graph.add("TransposeAxes", [self], {"axisVec": axes}, shape=shape)

    def reduce(self, how: str, dims: Sequence[int], *, keep: bool = True) -> Ref:
        """Return a reduction over static dims, one after the other; means of means are right, as the counts
        are equal.
        """
        x = self
        for dim in sorted(dims):
            attributes = {
                "axis": static_axis(dim, x.rank),
                "reductionOpName": how,
                "reductionKeepDimensions": True,
            }
            shape = [1 if at == dim else size for at, size in enumerate(x.shape)]
            x = self.graph.add("ReduceElements", [x], attributes, shape=shape)
        return x if keep else x.reshape([size for at, size in enumerate(x.shape) if at not in set(dims)])

    def slice(self, dim: int, begin: int, end: int, stride: int = 1) -> Ref:
        """Return the part of a static dim from index ``begin`` up to ``end``, exclusive."""
        size = self.shape[dim]
        shape = [*self.shape[:dim], len(range(begin, end, stride)), *self.shape[dim + 1 :]]
        if (begin, end, stride) == (0, size, 1):
            return self
        attributes = {
            "axis": static_axis(dim, self.rank),
            "beginIndex": begin,
            "endIndex": 0 if end == size else end,
            "sliceStrides": stride,
        }
        return self.graph.add("Slice", [self], attributes, shape=shape)


def static_axis(dim: int, rank: int) -> Axis:
    """Return the axis of a static dim; CNTK counts from the last one.

    >>> static_axis(0, 3)
    Axis(static_index=2, name='staticAxisIdx=2', ordered=True)
    """
    index = rank - 1 - dim
    return Axis(index, f"staticAxisIdx={index}", ordered=True)


class Graph:
    """Leaves and primitive functions in order, and the current value of each variable.

    ``batch`` is the size of the minibatches for training, or None for prediction.
    """

    def __init__(self, taken: Sequence[str], batch: float | None = None) -> None:
        self.batch = batch
        self.leaves: list[dict[str, Any]] = []
        self.functions: list[dict[str, Any]] = []
        self.values: dict[str, Ref] = {}
        self._taken = set(taken)
        self._counts = 0

    def take_uid(self, kind: str) -> str:
        """Return an unused uid."""
        while True:
            self._counts += 1
            uid = f"{kind}{self._counts}"
            if uid not in self._taken:
                self._taken.add(uid)
                return uid

    def add_leaf(self, uid: str, kind: int, ref: Ref, **more: Any) -> Ref:
        """Add an input, a parameter, a constant or a placeholder."""
        axes = [SEQUENCE, BATCH] if ref.sequence else [BATCH] if ref.dynamic else []
        leaf = describe_variable(uid, kind, ref.dtype, ref.shape, dynamic_axis=axes, **more)
        self.leaves.append(leaf)
        return replace(ref, uid=uid)

    def add_input(self, name: str, like: Ref) -> Ref:
        """Add an input; integers are fed as real numbers."""
        return self.add_leaf(name, INPUT, replace(like, dtype=as_real(like.dtype)), name=name)

    def add_array(self, name: str, array: Array, *, trained: bool) -> Ref:
        """Add a parameter or a constant."""
        value = np.ascontiguousarray(array, as_real(array.dtype)).reshape(array.shape)
        ref = Ref(self, name, array.shape, dynamic=False, sequence=False, dtype=value.dtype)
        return self.add_leaf(name, PARAMETER if trained else CONSTANT, ref, name=name, value=value)

    def add_constant(self, value: ArrayLike, dtype: DTypeLike) -> Ref:
        """Add a constant without a name."""
        array = np.asarray(value, as_real(dtype))
        uid = self.take_uid("Constant")
        ref = Ref(self, uid, array.shape, dynamic=False, sequence=False, dtype=array.dtype)
        return self.add_leaf(uid, CONSTANT, ref, value=array)

    def add_placeholder(self, uid: str, like: Ref) -> Ref:
        """Add a placeholder for the value of a later function, which CNTK's loops through time need."""
        return self.add_leaf(uid, PLACEHOLDER, like)

    def add(
        self,
        kind: str,
        inputs: Sequence[Ref],
        attributes: Mapping[str, Any] | None = None,
        *,
        shape: Sequence[int],
        like: Ref | None = None,
        uid: str | None = None,
    ) -> Ref:
        """Append a function; return its output, which has a static shape and the dynamic axes of the
        inputs.
        """
        uid = self.take_uid(kind) if uid is None else uid
        self.functions.append({
            "version": SizeT(24),
            "type": "PrimitiveFunction",
            "uid": uid,
            "op": SizeT(NUMBERS[kind]),
            "attributes": dict(attributes or {}),
            "inputs": [ref.uid for ref in inputs],
        })  # fmt: skip
        lead = like or next((ref for ref in inputs if ref.dynamic), inputs[0])
        return replace(lead, uid=f"{uid}_Output_0", shape=tuple(shape))


def as_real(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the real type that stores elements of a type."""
    found = np.dtype(dtype)
    return found if found.name in ("float16", "float32", "float64") else np.dtype("float32")


class Step(exporting.Step):
    """One operator of the program, with its slots and attributes, and the methods that translate it into
    functions.
    """

    def __init__(self, graph: Graph, op: Operator) -> None:
        self.graph = graph
        self.op = op

    # The operator

    def ref(self, slot: str = "X") -> Ref:
        """Return the value of an input slot."""
        return self.refs(slot)[0]

    def refs(self, slot: str) -> list[Ref]:
        """Return the values of an input slot."""
        names = self.op.input(slot)
        missing = [name for name in names if name not in self.graph.values]
        if missing or not names:
            self.refuse(f"its input {', '.join(missing) or slot} is not there")
        return [self.graph.values[name] for name in names]

    def out(self, slot: str = "Out", index: int = 0) -> Variable:
        """Return an output variable."""
        return self.op.block.var(self.op.output(slot)[index])

    def is_real(self) -> bool:
        """Return whether the variable of slot X has real elements."""
        return numpy_dtype(self.op.block.var(self.op.input("X")[0]).dtype).kind == "f"

    def refuse_integers(self) -> None:
        """Raise InexpressibleError if the output holds integers, which CNTK would not round."""
        dtype = self.out().dtype
        if numpy_dtype(dtype).kind not in "fV":
            self.refuse(f"it computes with {dtype.name}, which CNTK does not have")

    def static_dim(self, dim: int, ref: Ref) -> int:
        """Return the static index of a dim. Raises InexpressibleError for the batch dim."""
        count = ref.rank + ref.dynamic
        found = dim % count - ref.dynamic
        if found < 0:
            self.refuse("it works along the samples")
        return found

    # Its functions

    def give(self, slot: str, ref: Ref, index: int = 0) -> None:
        """Set the value of an output variable, reshaped to its declared static shape."""
        if not self.op.output(slot):
            return
        name = self.op.output(slot)[index]
        declared = self.op.block.var(name).shape[ref.dynamic :]
        if (
            -1 not in declared
            and tuple(declared) != ref.shape
            and math.prod(declared) == math.prod(ref.shape)
        ):
            ref = ref.reshape(declared)
        self.graph.values[name] = ref
        owner = ref.uid.rpartition("_Output_")[0]
        last = self.graph.functions[-1] if self.graph.functions else {}
        if last.get("uid") == owner and "name" not in last:
            last["name"] = name


# The table of operators that CNTK's operations express: a function for each.

#: A function that returns the value of the operator's first output.
Writer = Callable[[Step], Ref | None]

_TABLE: Final = Table[Writer]("paddlelike.interop.cntk.writing")
writes = _TABLE.add
load_writers = _TABLE.load
