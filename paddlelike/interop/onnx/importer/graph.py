"""The program while an ONNX graph is read: its variables, and the known parts of their values."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from paddlelike.core import Array, VarType, convert_dtype
from paddlelike.framework import Program, Variable
from paddlelike.framework.opdef import registry
from paddlelike.interop.reader_tables import InexpressibleError

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike

#: An input of an operator: names of variables, or expressions.
Given = Any

_RESERVED: Final = ("feed", "fetch")


class Value(NamedTuple):
    """The variable that holds a value of the graph.

    A ``scalar`` does not have dims in ONNX; here it has one dim of 1, as everywhere in Fluid.
    """

    name: str
    scalar: bool = False


class Typed(NamedTuple):
    """The element type of a value and its dims: -1 for an unknown dim, None for an unknown number of dims."""

    dtype: VarType | None
    dims: tuple[int, ...] | None


class Graph:
    """A program, its parameters' values, and the variable of each value of ONNX by its name."""

    def __init__(self, program: Program, opsets: Mapping[str, int], typed: dict[str, Typed]) -> None:
        self.program = program
        self.opsets = opsets
        self.typed = typed
        self.values: ChainMap[str, Value] = ChainMap()
        self.known: ChainMap[str, Array] = ChainMap()  # values that do not depend on the inputs
        self.partial: ChainMap[str, Array] = ChainMap()  # float64, NaN where it depends on them
        self.parameters: dict[str, Array] = {}
        self.initializers: set[str] = set()
        self.producers: ChainMap[str, Any] = ChainMap()  # the node of each value
        self.trusted: set[str] = set()  # fed indices, which count from the start
        self._taken: set[str] = set(_RESERVED)
        self._stored: dict[int, tuple[Array, str]] = {}
        self._counts: dict[str, int] = {}  # by wanted name, the last number after it
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def push(self) -> None:
        """Enter a graph inside a node; it can read the values of this graph."""
        self.values = self.values.new_child()
        self.known, self.partial = self.known.new_child(), self.partial.new_child()
        self.producers = self.producers.new_child()

    def pop(self) -> None:
        """Leave the graph that :meth:`push` entered."""
        self.values = self.values.parents
        self.known, self.partial = self.known.parents, self.partial.parents
        self.producers = self.producers.parents

    def take_name(self, wanted: str) -> str:
        """Return a name for a variable: the wanted one without characters that file names forbid, numbered if
        taken.
        """
        plain = "".join("." if c in "/\\" else "_" if c == "@" or not c.isprintable() else c for c in wanted)
        plain = name = plain.strip(". ")[:200] or "value"
        count = self._counts.get(plain, 0)
        while name in self._taken:
            count += 1
            name = f"{plain}_{count}"
        self._counts[plain] = count
        self._taken.add(name)
        return name

    def variable(self, name: str) -> Variable:
        """Return a variable as the current block sees it."""
        return self.program.current_block()._var_recursive(name)

    def find(self, name: str) -> Value:
        """Return a value of ONNX; a known one becomes a parameter at its first use."""
        if name in self.values:
            return self.values[name]
        if name not in self.known:
            raise InexpressibleError(f"it reads {name!r:.80}, which could not be imported")
        array = self.known[name]
        if id(array) not in self._stored:  # known by another name, too
            trained = name in self.initializers and array.ndim > 0
            self._stored[id(array)] = array, self.add_parameter(name, array, trained=trained)
        return Value(self._stored[id(array)][1], scalar=not array.ndim)

    def add_parameter(self, wanted: str, array: Array, *, trained: bool = True) -> str:
        """Return the name of a persistable variable with this value; a parameter if it can be trained."""
        value = np.ascontiguousarray(array.reshape(array.shape or (1,)))
        name = self.take_name(wanted)
        block = self.program.global_block()
        options: dict[str, Any] = {"name": name, "shape": value.shape, "dtype": convert_dtype(value.dtype)}
        if trained and value.dtype.kind == "f" and value.size:
            block.create_parameter(**options)
        else:
            block.create_var(persistable=True, stop_gradient=True, **options)
        self.parameters[name] = value
        return name

    def constant(self, array: Array) -> str:
        """Return the name of a constant that this package adds; equal constants are stored once."""
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.add_parameter(
                f"constant_{len(self._constants)}", array, trained=False
            )
        return self._constants[key]

    def emit(
        self,
        kind: str,
        inputs: Mapping[str, Given],
        attrs: Mapping[str, Any] | None = None,
        *,
        slot: str | None = None,
        count: int = 1,
        typed: DtypeLike | None = None,
        shaped: Sequence[int] | None = None,
    ) -> list[str]:
        """Append an operator; return the names of its outputs in ``slot``, by default the first slot.

        ``typed`` and ``shaped`` are the dtype and the dims, if its shape rule cannot infer them.
        """
        block, op = self.program.current_block(), registry.find(kind)
        slot = op.output_slots[0].name if slot is None else slot
        given = {
            key: [str(x) for x in (xs if isinstance(xs, list | tuple) else [xs])]
            for key, xs in inputs.items()
        }
        first = next((names[0] for names in given.values() if names), None)
        source = None if first is None else self.variable(first)
        outputs: dict[str, list[Variable]] = {}
        for each in op.output_slots:
            if each.name != slot and each.optional:
                continue
            outputs[each.name] = [
                block.create_var(name=self.take_name(f"{kind}.out"), shape=(), dtype="float32")
                for _ in range(count if each.name == slot else 1)
            ]
        block.append_op(type=kind, inputs=given, outputs=outputs, attrs=dict(attrs or {}))
        for variable in outputs[slot]:
            if getattr(op, "infer", None) is None and source is not None:
                variable.shape, variable.dtype = source.shape, source.dtype
            if shaped is not None:
                variable.shape = tuple(shaped)
            if typed is not None:
                variable.dtype = convert_dtype(typed)
        self._last = outputs
        return [variable.name for variable in outputs[slot]]

    def last_output(self, slot: str) -> str:
        """Return the name of another output of the operator that was appended last."""
        return self._last[slot][0].name
