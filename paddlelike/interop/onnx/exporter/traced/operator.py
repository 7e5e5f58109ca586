"""Operators without a converter of their own, translated by their lowering for the compiled engine.

The lowering is traced with the operator's declared shapes, for several sizes of the unknown dims, and each
primitive of JAX becomes nodes of ONNX. Conditions on values, such as labels within their range, are not
checked.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from paddlelike.core import VarType, convert_dtype, numpy_dtype
from paddlelike.framework import Operator
from paddlelike.framework.opdef import OpDef, registry
from paddlelike.interop.onnx.exporter.graph import Converter, Step, Value, load_table
from paddlelike.interop.onnx.exporter.traced.sizes import Sizes
from paddlelike.interop.reader_tables import InexpressibleError

if TYPE_CHECKING:
    from paddlelike.compiled.lowerings import Lowering
    from paddlelike.compiled.tracing.context import OpContext

_ROWS = "rows"  # the symbol of first dims that are not known: one for all inputs, as of a batch


def can_trace(type_: str, version: int) -> bool:
    """Return whether an operator has a lowering, and JAX is installed."""
    return importlib.util.find_spec("jax") is not None and _has_lowering(type_, version)


@functools.cache
def _has_lowering(type_: str, version: int) -> bool:
    cls = registry.find_for_version(type_, version)
    if cls is None:
        return False
    from paddlelike.compiled.lowerings import find_lowering

    row = find_lowering(cls)
    return row is not None and not row.by_vjp


def is_traceable(op: Operator) -> bool:
    """Return whether an operator reads and writes only tensors, so that it can be traced."""
    variables = map(op.block._find_var_recursive, (*op.input_arg_names, *op.output_arg_names))
    if any(one is not None and one.type not in (VarType.LOD_TENSOR, VarType.RAW) for one in variables):
        return False
    return can_trace(op.type, op.block.program.paddle_version)


def convert_traced(step: Step) -> None:
    """Translate an operator. Raises InexpressibleError if ONNX lacks a node that its lowering needs."""
    from paddlelike.compiled.backend import wide_types
    from paddlelike.compiled.lowerings import find_lowering
    from paddlelike.compiled.packing import LoweringError

    cls = registry.find_for_version(step.op.type, step.op.block.program.paddle_version)
    assert cls is not None
    row = find_lowering(cls)
    assert row is not None
    if any(step.has_lengths(slot.name) for slot in cls.input_slots):
        step.refuse("it takes sequences")
    with wide_types():
        try:
            try:
                _convert(step, cls, row, shared=False)
            except InexpressibleError:
                raise
            except Exception:  # of shapes that do not fit each other
                _convert(step, cls, row, shared=True)
        except InexpressibleError:
            raise
        except Exception as error:  # a lowering and JAX may raise any error
            known = isinstance(error, LoweringError)
            reason = str(error) if known else f"it cannot be traced with shapes alone: {type(error).__name__}"
            raise InexpressibleError(reason) from error


def _convert(step: Step, cls: type[OpDef], row: Lowering, *, shared: bool) -> None:
    """Translate an operator. If ``shared``, unknown first dims are the same in all inputs."""
    import jax

    from paddlelike.interop.onnx.exporter.traced.translation import Translation

    values = [value for slot in cls.input_slots for value in step.inputs(slot.name)]
    known = [step.graph.constants.get(value.name) if row.takes_constants else None for value in values]
    names = [name for slot in cls.input_slots for name in step.op.input(slot.name)]
    free = [(name, value) for name, value, one in zip(names, values, known, strict=True) if one is None]
    shapes, symbols = _declare(step, free, shared=shared)
    sizes = Sizes(list(symbols))
    tree: list[Any] = []

    def call(*flat: Any) -> list[Any]:
        traced = iter(flat)
        given = iter([next(traced) if one is None else one for one in known])
        args: list[Any] = []
        for slot in cls.input_slots:
            items = [next(given) for _ in step.op.input(slot.name)]
            args.append(items if slot.several else items[0] if items else None)
        results = row.function(_make_context(step), args, cls, step.op.attrs)
        tree[:] = [results] if len(cls.output_slots) == 1 else results
        leaves: list[Any] = jax.tree_util.tree_leaves([_get_array(step, one) for one in tree])
        return leaves

    traces = [
        jax.make_jaxpr(call)(*(
            jax.ShapeDtypeStruct([given.get(dim, dim) for dim in shape], dtype) for shape, dtype in shapes
        ))
        for given in sizes.traces
    ]  # fmt: skip
    held = {symbol: value.dims(axis, axis + 1) for symbol, (value, axis) in symbols.items()}
    leaves = iter(Translation(step, sizes, held).run(traces, [value for _, value in free]))
    for slot, result in zip(cls.output_slots, tree, strict=True):
        several = list(result) if slot.several and result is not None else [result]
        for index, (name, one) in enumerate(zip(step.op.output(slot.name), several, strict=False)):
            value = None if one is None else next(leaves)
            if value is not None and name in step.graph.read:
                step.give(slot.name, _finish(step, name, value, one), index)


def _get_array(step: Step, result: Any) -> Any:
    """Return a result, or a list of a slot's results. Raises InexpressibleError for results other than
    arrays.
    """
    import jax
    import numpy as np

    if isinstance(result, (list, tuple)):
        return [_get_array(step, one) for one in result]
    if result is not None and not isinstance(result, jax.Array | np.ndarray):
        step.refuse("its results are sequences, or other than arrays")
    if result is not None and result.dtype.kind == "c":
        step.refuse("its results are complex")
    return result


def _finish(step: Step, name: str, value: Value, array: Any) -> Value:
    """Return a result with the declared element type, as a scalar if its variable is one."""
    variable = step.op.block._var_recursive(name)
    if step.graph.later and variable.shape == () and array.ndim:
        value = value.reshape()
    wanted = numpy_dtype(variable.dtype)
    if wanted.kind != array.dtype.kind:  # Paddle declares another type than it computes
        step.graph.types[name] = convert_dtype(array.dtype)
        return value
    return value if array.dtype == wanted else value.cast(wanted)


#: The dim that the inputs of an operator have in common, where it is not the first one.
_BATCHES: Final = {"cudnn_lstm": 1}


def _declare(
    step: Step, inputs: Sequence[tuple[str, Value]], *, shared: bool
) -> tuple[list[tuple[list[Any], Any]], dict[str, tuple[Value, int]]]:
    """Return the shapes and types of inputs, and for each symbol an input and the axis that has that size."""
    shapes: list[tuple[list[Any], Any]] = []
    symbols: dict[str, tuple[Value, int]] = {}
    batch = _BATCHES.get(step.op.type, 0 if shared else -1)
    variables = [step.op.block._var_recursive(name) for name, _ in inputs]
    known = [
        one.shape[batch] for one in variables if batch > 0 and len(one.shape) > 2 and one.shape[batch] > 0
    ]
    for number, (variable, (_, value)) in enumerate(zip(variables, inputs, strict=True)):
        dims: list[Any] = list(variable.shape)
        for axis in [axis for axis, dim in enumerate(dims) if dim < 0]:
            if axis == batch and known:
                dims[axis] = known[0]
                continue
            dims[axis] = _ROWS if axis == batch else f"d{number}_{axis}"
            symbols.setdefault(dims[axis], (value, axis))
        shapes.append((dims, numpy_dtype(variable.dtype)))
    return shapes, symbols


def _make_context(step: Step) -> OpContext:
    """Return the context of a lowering, without checks or random numbers."""
    from types import SimpleNamespace

    from paddlelike.compiled.tracing.context import OpContext

    class Context(OpContext):
        @property
        def plan(self) -> Any:
            return SimpleNamespace(program=step.op.block.program, row_updates={})

        def check(self, holds: Any, message: str) -> None:
            """Do nothing."""

        def require(self, holds: Any, reason: str) -> None:
            step.refuse(f"it can be written only if {reason} does not occur")

        def draw(self, *_: Any, **__: Any) -> NoReturn:
            step.refuse("it draws random values")

        draw_seed = draw_by = draw

        def bound(self, *_: Any, **__: Any) -> None:
            """Do nothing."""

        def find_greatest(self, slot: int) -> None:
            """Return None: the upper bound is not known."""

    return Context(None, step.op)  # type: ignore[arg-type]


def find_converter(op: Operator) -> Converter | None:
    """Return the converter of an operator: its own, or one that traces its lowering."""
    return load_table().get(op.type) or (convert_traced if is_traceable(op) else None)
