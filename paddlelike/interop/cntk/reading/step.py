"""One operation of a CNTK function while it is turned into operators: its values, axes and attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from paddlelike import unique_name
from paddlelike.core import VarType, convert_dtype
from paddlelike.errors import FormatError
from paddlelike.formats.cntk.dictionary import Axis
from paddlelike.framework import Variable
from paddlelike.interop.cntk.function import Node
from paddlelike.interop.cntk.operations import NUMBERS, name_operation
from paddlelike.interop.reader_tables import Table, Translation
from paddlelike.layers.emit import emit, emit_all

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike

DYNAMIC: Final = 2147483647
ALL_STATIC: Final = DYNAMIC - 1
ALL_AXES: Final = DYNAMIC - 4
_LAST_STATIC: Final = DYNAMIC - 16  # larger numbers are marks, not axes

#: Element types by CNTK's number.
DATA_TYPES: Final = {1: "float32", 2: "float64", 4: "float16", 5: "int8", 6: "int16"}


class Value(NamedTuple):
    """A value of the function: a variable, and the dims that CNTK has for it.

    Attributes
    ----------
    dynamic
        Whether its first dim is not a static dim of CNTK, but the samples or, with a LoD, the steps of
        all sequences.
    sequence
        Whether its rows are the steps of sequences.
    rank
        The number of static dims, which are the last ones. A value without dims is a variable of shape [1].
    padding
        The padding number, if the first static dim in CNTK holds padded steps. Here the steps stay a sequence
        until an operation needs that dim; ``rank`` does not count it.
    """

    variable: Variable
    dynamic: bool
    sequence: bool
    rank: int
    padding: float | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The static dims."""
        return tuple(self.variable.shape[-self.rank :]) if self.rank else ()


class Step(Translation):
    """An operation with its inputs as values, and the functions that append operators for it."""

    def __init__(self, node: Node, values: Sequence[Value], *, batch: float | None) -> None:
        self.node = node
        self.values = values
        self.batch = batch  # the samples of a minibatch; None: the program is for prediction

    @property
    def training(self) -> bool:
        """Whether the program is for training."""
        return self.batch is not None

    # The operation

    @property
    def kind(self) -> str:
        """CNTK's name of the operation."""
        return name_operation(self.node.op)

    def value(self, index: int = 0) -> Value:
        """Return an input. Raises FormatError when the operation has too few."""
        if index >= len(self.values):
            raise FormatError(f"{self.node.uid} ({self.kind}) has {len(self.values)} inputs")
        return self.values[index]

    def attr(self, name: str, kind: type, default: Any = None) -> Any:
        """Return an attribute, or its default. Raises FormatError for a value of another type."""
        found = self.node.attributes.get(name, default)
        if not isinstance(found, kind) and not (found is None and name not in self.node.attributes):
            raise FormatError(f"{self.node.uid} ({self.kind}): its attribute {name} is {found!r:.80}")
        if found is None and default is None:
            raise FormatError(f"{self.node.uid} ({self.kind}) has no attribute {name}")
        return found

    def axes(self, *names: str) -> list[Axis]:
        """Return the axes of the first existing attribute, as a list."""
        for name in names:
            found = self.node.attributes.get(name)
            axes = found if isinstance(found, list) else [found]
            known = [axis for axis in axes if isinstance(axis, Axis)]
            if known and len(known) == len(axes):
                return known
        raise FormatError(f"{self.node.uid} ({self.kind}) has no axis")

    def static_dim(self, axis: Axis, rank: int) -> int:
        """Return the static dim of an axis, counted from the first. Refuses axes of other kinds."""
        index = axis.static_index
        if index > _LAST_STATIC:
            self.refuse(f"it works along the axis {axis.name}")
        dim = rank - 1 - index if index >= 0 else -1 - index
        if not 0 <= dim < rank:
            raise FormatError(f"{self.node.uid} ({self.kind}): a value of {rank} dims has no axis {index}")
        return dim

    # Its operators

    def give(self, variable: Variable, like: Value | None = None, rank: int | None = None) -> Value:
        """Return a variable as a value that has the dynamic axes of ``like``, by default the first input."""
        like = self.value() if like is None else like
        return like._replace(variable=variable, rank=like.rank if rank is None else rank)

    def emit(
        self,
        type_: str,
        inputs: Mapping[str, Any],
        attrs: Mapping[str, Any] | None = None,
        *,
        slot: str = "Out",
        dtype: DtypeLike | None = None,
    ) -> Variable:
        """Append an operator, and return its output."""
        return emit(type_, inputs, attrs, slot=slot, dtype=dtype)

    def transpose(self, x: Variable, perm: Sequence[int]) -> Variable:
        """Return a variable with its dims in another order."""
        outputs = {"Out": x.dtype, "XShape": x.dtype}
        return emit_all("transpose2", {"X": x}, outputs, {"axis": list(perm)})[0]

    def create(self, name: str, dtype: DtypeLike) -> Variable:
        """Return a new variable in the block of the first input."""
        return self.value().variable.block.create_var(name=unique_name.generate(name), dtype=dtype)

    def unary(self, type_: str, x: Variable, **attrs: Any) -> Variable:
        """Append an operator of one input, and return its output."""
        return self.emit(type_, {"X": x}, attrs)

    def binary(self, type_: str, x: Variable, y: Variable, *, dtype: DtypeLike | None = None) -> Variable:
        """Append an operator of two inputs that broadcast from the last dim, and return its output."""
        return self.emit(type_, {"X": x, "Y": y}, {"axis": -1}, dtype=dtype)

    def reduce(self, kind: str, x: Variable, *dims: int, keep: bool = True) -> Variable:
        """Return a reduction by its CNTK name, such as ``"Sum"``, over some dims, by default all."""
        attrs = {"dim": list(dims) or [0], "keep_dim": keep, "reduce_all": not dims}
        return self.unary(f"reduce_{kind.lower()}", x, **attrs)

    def scale(self, x: Variable, by: float = 1.0, plus: float = 0.0) -> Variable:
        """Return ``by * x + plus``."""
        return self.unary("scale", x, scale=float(by), bias=float(plus))

    def fill_rows(self, value: Value, number: float) -> Variable:
        """Return one int64 for each sample of a value, all equal."""
        attrs: dict[str, Any] = {"shape": [-1], "value": float(number), "dtype": int(VarType.INT64)}
        attrs |= {"input_dim_idx": 0, "output_dim_idx": 0}
        return self.emit("fill_constant_batch_size_like", {"Input": value.variable}, attrs, dtype="int64")

    def repeat(self, value: Value, other: Value) -> Variable:
        """Repeat a value without samples for each sample or step of another value."""
        rank = max(value.rank, 1)
        flat = other._replace(variable=self.reshape(other, [-1]), rank=1)
        zeros = self.unary("fill_zeros_like", self.cast(flat.variable, value.variable.dtype))
        row = self.reduce("Sum", zeros, 1)
        column = self.reshape(flat._replace(variable=row), [1] * rank)
        made = other._replace(variable=self.binary("elementwise_add", column, value.variable), rank=rank)
        return self.reshape(made, value.shape)

    def cast(self, x: Variable, dtype: DtypeLike) -> Variable:
        """Return a variable as elements of another type."""
        wanted = convert_dtype(dtype)
        if x.dtype == wanted:
            return x
        return self.emit("cast", {"X": x}, {"in_dtype": int(x.dtype), "out_dtype": int(wanted)}, dtype=wanted)

    def pool_sequence(self, x: Variable, how: str) -> Variable:
        """Return one row for each sequence: "SUM", "AVERAGE", "MAX", "FIRST" or "LAST"."""
        outputs = {"Out": x.dtype, "MaxIndex": "int32"}
        return emit_all("sequence_pool", {"X": x}, outputs, {"pooltype": how})[0]

    def add_up(self, counts: Variable) -> Variable:
        """Return the offsets of the sequences, int64, from their lengths."""
        ends = self.unary("cumsum", counts, axis=0, exclusive=False, reverse=False)
        zero: dict[str, Any] = {"shape": [1], "value": 0.0, "dtype": int(VarType.INT64)}
        parts = [self.emit("fill_constant", {}, zero, dtype="int64"), ends]
        return self.emit("concat", {"X": parts}, {"axis": 0}, dtype="int64")

    def pad_steps(self, value: Value) -> tuple[Variable, Variable]:
        """Return sequences as rows of padded steps ``(sequences, steps, ...)``, and their lengths."""
        attrs = {"shape": [1], "value": float(value.padding or 0.0), "dtype": int(value.variable.dtype)}
        fill = self.emit("fill_constant", {}, attrs, dtype=value.variable.dtype)
        outputs = {"Out": value.variable.dtype, "Length": VarType.INT64}
        inputs = {"X": value.variable, "PadValue": fill}
        out, lengths = emit_all("sequence_pad", inputs, outputs, {"padded_length": -1})
        return self.reshape_all(out, [0, -1, *value.shape]), lengths

    def log_sum(self, x: Variable, dims: Sequence[int]) -> Variable:
        """Return ``log(sum(e^x))`` over some dims, which stay as 1; the largest element is subtracted
        first.
        """
        largest = self.reduce("Max", x, *dims)
        largest.stop_gradient = True  # it cancels out
        moved = self.unary("exp", self.binary("elementwise_sub", x, largest))
        total = self.unary("log", self.reduce("Sum", moved, *dims))
        return self.binary("elementwise_add", total, largest)

    def reshape(self, value: Value, shape: Sequence[int]) -> Variable:
        """Return the variable of a value with other static dims; -1 stands for the remaining size."""
        lead = [0 if -1 in shape else -1] if value.dynamic else []
        wanted = [*lead, *shape] or [1]
        if list(value.variable.shape[len(lead) :]) == wanted[len(lead) :]:
            return value.variable
        return self.reshape_all(value.variable, wanted)

    def reshape_all(self, x: Variable, shape: Sequence[int]) -> Variable:
        """Return a variable in another shape, its first dim included."""
        attrs = {"shape": [int(dim) for dim in shape]}
        return emit_all("reshape2", {"X": x}, {"Out": x.dtype, "XShape": x.dtype}, attrs)[0]

    def widen(self, value: Value, rank: int, *, dynamic: bool) -> Variable:
        """Return a variable with dims of 1 before its static ones, so that it broadcasts to ``rank``."""
        if value.rank >= rank or (not value.dynamic and not dynamic):
            return value.variable
        return self.reshape(value, [1] * (rank - value.rank) + list(value.shape))

    def align(self, *values: Value) -> tuple[list[Variable], Value]:
        """Return variables that can be broadcast, and a value with the dynamic axes and rank of the
        result.
        """
        rank = max(value.rank for value in values)
        lead = next((value for value in values if value.dynamic), values[0])
        widened = [self.widen(value, rank, dynamic=value.dynamic) for value in values]
        return widened, lead._replace(rank=rank)


# The table of CNTK's operations that a program can express: a function for each.

Reader = Callable[[Step], "Value | tuple[Value, ...]"]

_TABLE: Final = Table[Reader]("paddlelike.interop.cntk.reading")
reads = _TABLE.add


@cache
def load_readers() -> dict[int, Reader]:
    """Return the function of each operation, by its number."""
    return {NUMBERS[name]: function for name, function in _TABLE.load().items()}
