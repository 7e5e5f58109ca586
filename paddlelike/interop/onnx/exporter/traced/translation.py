"""A traced function of JAX as nodes: variables, dims, and functions that call others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from paddlelike.interop.onnx.exporter.graph import Step, Value
from paddlelike.interop.onnx.exporter.traced.sizes import Sizes, Sum, Unknown
from paddlelike.interop.reader_tables import Table

_MOST_STEPS: Final = 256  # of a loop that is unrolled
_MOST_FOLDED: Final = 1 << 16  # elements of what is computed now
_MOST_NUMBERS: Final = 64  # of a constant that depends on the sizes
_UNSIGNED: Final = {"uint32": 12, "uint64": 13}  # ONNX's numbers of these types
_FUNCTIONS_OF_JAX: Final = ("copysign",)  # simpler than their primitives
_CALLS: Final = ("jaxpr", "call_jaxpr", "fun_jaxpr")  # parameters that are functions
_INNER: Final = (*_CALLS, "branches", "cond_jaxpr", "body_jaxpr", "update_jaxpr", "jvp_jaxpr_fun")


class Equation:
    """One primitive of JAX with its operands, which are values of the graph.

    ``equations`` holds this equation in each of the traces.
    """

    def __init__(
        self, translation: Translation, inputs: list[Value], equations: Sequence[Any], name: str
    ) -> None:
        self.translation = translation
        self.step = translation.step
        self.inputs = inputs
        first = equations[0]
        merge = translation.sizes.merge
        self.params: dict[str, Any] = {
            key: merge([one.params[key] for one in equations]) for key in first.params if key not in _INNER
        }
        self.shapes: list[tuple[Any, ...]] = [
            merge([one.invars[index].aval.shape for one in equations]) for index in range(len(first.invars))
        ]
        self.dtypes = [np.dtype(var.aval.dtype) for var in first.invars]
        self.shape: tuple[Any, ...] = merge([one.outvars[0].aval.shape for one in equations])
        self.dtype = np.dtype(first.outvars[0].aval.dtype)
        self.name = name

    @property
    def x(self) -> Value:
        """The first operand."""
        return self.inputs[0]

    def add(self, kind: str, *inputs: Value | str, **attrs: Any) -> Value:
        """Append a node of one output, and return its name."""
        return self.step.add(kind, *inputs, **attrs)

    def like(self, value: Any) -> Value:
        """Return a constant of the element type of the first operand."""
        return self.step.constant(value, self.dtypes[0])

    def choose(self, chosen: Value, one: Value, other: Value) -> Value:
        """Select elements of one value or of another, in the type of the result."""
        if self.dtype.kind != "b":
            return self.add("Where", chosen, one, other)
        kept = self.add("And", self.add("Not", chosen), other)  # onnxruntime has no Where of booleans
        return self.add("Or", self.add("And", chosen, one), kept)

    def cast(self, value: Value, dtype: Any) -> Value:
        """Return a value as elements of another type."""
        from onnx import helper

        return self.add("Cast", value, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def row(self, dims: Sequence[Any]) -> Value:
        """Return dims as a row of int64."""
        return self.translation.row(dims)

    def reshape(self, value: Value, dims: Sequence[Any]) -> Value:
        """Return a value in another shape."""
        return self.add("Reshape", value, self.row(dims))


Function = Callable[[Equation], Any]
_TABLE: Final = Table[Function](__package__)
translates = _TABLE.add


class Translation:
    """The nodes of one traced operator.

    Parameters
    ----------
    sizes
        The sizes of each trace.
    symbols
        For each symbol of an unknown size, the value that holds it, int64 of shape (1,).
    """

    def __init__(self, step: Step, sizes: Sizes, symbols: dict[str, Value]) -> None:
        self.step = step
        self.sizes = sizes
        self._symbols = symbols
        self._table = _TABLE.load()

    def run(self, traces: Sequence[Any], inputs: Sequence[Value]) -> list[Value]:
        """Translate a function that was traced for each of the sizes; return its results for these inputs."""
        first = traces[0].jaxpr
        if any(
            [one.primitive for one in each.jaxpr.eqns] != [one.primitive for one in first.eqns]
            for each in traces
        ):
            self.step.refuse("its result depends on a size that is not known")
        names: dict[Any, Value] = dict(zip(first.invars, inputs, strict=True))
        for index, var in enumerate(first.constvars):
            names[var] = self._hold([np.asarray(one.consts[index]) for one in traces], var.aval.dtype)

        def read(several: Sequence[Any]) -> Value:
            if isinstance(several[0], Literal):
                return self._hold([one.val for one in several], several[0].aval.dtype)
            return names[several[0]]

        for equations in zip(*(one.jaxpr.eqns for one in traces), strict=True):
            given = [read(several) for several in zip(*(one.invars for one in equations), strict=True)]
            results = self._translate(equations, given)
            names.update(zip(equations[0].outvars, results, strict=True))
        return [read(several) for several in zip(*(one.jaxpr.outvars for one in traces), strict=True)]

    def _hold(self, values: Sequence[Any], dtype: Any) -> Value:
        """Return the node for a value that is constant in each trace: a constant, or a sum of sizes."""
        first, kind = np.asarray(values[0]), np.dtype(dtype)
        if any(np.shape(one) != first.shape for one in values):
            self.step.refuse("it holds constants of a size that is not known")
        same = all(np.array_equal(one, first, equal_nan=kind.kind == "f") for one in values)
        if first.ndim and not same and first.size > _MOST_NUMBERS:
            self.step.refuse("it holds constants that depend on a size that is not known")
        if first.ndim and not same:
            rows = zip(*(np.asarray(one).reshape(-1) for one in values), strict=True)
            numbers = [self._hold(several, dtype).reshape(1) for several in rows]
            return self.step.concat(*numbers).reshape(*first.shape)
        if same:
            if kind.name in _UNSIGNED:  # a model file holds no constants of this type
                whole = self.step.constant(first, np.int64)
                return self.step.add("Cast", whole, to=_UNSIGNED[kind.name])
            return self.step.constant(first, kind)
        merged = self.sizes.merge([np.asarray(one).item() for one in values])
        if isinstance(merged, Unknown) and kind.kind == "f":  # a mean multiplies by one over the size
            merged = self.sizes.merge([1 / np.asarray(one, np.float64).item() for one in values])
            if isinstance(merged, Sum):
                merged = Sum(round(merged.number, 6), {key: round(n, 6) for key, n in merged.factors.items()})
                return self.step.add("Reciprocal", self._compute(merged, kind))
        return self._compute(merged, kind)

    def _compute(self, total: Any, dtype: Any) -> Value:
        """Return a sum of sizes as a number of an element type."""
        if isinstance(total, Unknown):
            self.step.refuse("a number in it depends on a size that is not known")
        out = self.step.constant(total.number, dtype)
        for symbol, factor in total.factors.items():
            size = self._symbols[symbol].reshape().cast(dtype)
            out = out + size * self.step.constant(factor, dtype)
        return out

    def row(self, dims: Sequence[Any]) -> Value:
        """Return dims as a row of int64: numbers, or sums of sizes."""
        if all(isinstance(dim, int | np.integer) for dim in dims):
            return self.step.ints(*(int(dim) for dim in dims))
        return self.step.concat(*(self.dim(dim) for dim in dims))

    def dim(self, dim: Any) -> Value:
        """Return a dim, int64 of shape (1,)."""
        if isinstance(dim, int | np.integer):
            return self.step.ints(int(dim))
        return self._compute(dim, np.dtype(np.int64)).reshape(1)

    def _translate(self, equations: Sequence[Any], inputs: list[Value]) -> list[Value]:
        equation = equations[0]
        name, params = equation.primitive.name, equation.params
        inner = next((key for key in _CALLS if params.get(key) is not None), None)
        if name == "scan":
            return self._write_out(equations, inputs)
        if name == "cond":
            several = [one.params["branches"] for one in equations]
            return self._choose(list(zip(*several, strict=True)), inputs)
        if params.get("name") in _FUNCTIONS_OF_JAX:
            name, inner = params["name"], None
        if inner is not None and name != "while":
            called = [one.params[inner] for one in equations]
            return self.run(
                [one if hasattr(one, "consts") else ClosedJaxpr(one, ()) for one in called], inputs
            )
        if name not in self._table:
            self.step.refuse(f"its lowering uses JAX's {name}, which has no node")
        merged = Equation(self, inputs, equations, name)
        folded = self._fold(equations, inputs)
        if folded is not None:
            return folded
        results = self._table[name](merged)
        return results if isinstance(results, list) else [results]

    def _fold(self, equations: Sequence[Any], inputs: list[Value]) -> list[Value] | None:
        """Return the value of an equation of constants, or None if nodes compute it."""
        held, outs = self.step.graph.constants, equations[0].outvars
        if not all(one.name in held for one in inputs):
            return None
        if any(np.prod(one.aval.shape) > _MOST_FOLDED for one in outs):
            return None
        arrays = [jax.numpy.asarray(held[one.name]) for one in inputs]
        traced: list[list[Any]] = []
        for equation in equations:
            results = equation.primitive.bind(*arrays, **equation.params)
            several = results if equation.primitive.multiple_results else [results]
            traced.append([np.asarray(one) for one in several])
        for each in traced[1:]:
            if not all(np.array_equal(one, first) for one, first in zip(each, traced[0], strict=True)):
                return None
        return [self._hold([one], one.dtype) for one in traced[0]]

    def _choose(self, branches: Sequence[Sequence[Any]], inputs: list[Value]) -> list[Value]:
        """Compute all branches, which have no side effects, and select the results of one."""
        step, (index, *operands) = self.step, inputs
        results = self.run(branches[0], operands)
        for number, branch in enumerate(branches[1:], 1):
            chosen = index.cast("int64").equals(step.scalar(number))
            others = self.run(branch, operands)
            results = [chosen.where(one, old) for one, old in zip(others, results, strict=True)]
        return results

    def _write_out(self, equations: Sequence[Any], inputs: list[Value]) -> list[Value]:
        """Unroll a loop."""
        step, params = self.step, equations[0].params
        length = self.sizes.merge([one.params["length"] for one in equations])
        if not isinstance(length, int) or not 0 < length <= _MOST_STEPS:
            known = length if isinstance(length, int) else "an unknown number of"
            step.refuse(f"its loop has {known} steps; up to {_MOST_STEPS} are written out")
        constants, carried = params["num_consts"], params["num_carry"]
        fixed, state = inputs[:constants], inputs[constants : constants + carried]
        rows = inputs[constants + carried :]
        collected: list[list[Value]] = []
        for index in range(length - 1, -1, -1) if params["reverse"] else range(length):
            given = [one.take(step.scalar(index)) for one in rows]
            results = self.run([one.params["jaxpr"] for one in equations], [*fixed, *state, *given])
            state = results[:carried]
            collected.append([one.unsqueeze(0) for one in results[carried:]])
        if params["reverse"]:
            collected.reverse()
        return [*state, *(step.concat(*parts) for parts in zip(*collected, strict=True))]
