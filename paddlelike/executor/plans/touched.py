"""Keep gradients of embeddings as rows, although they are declared dense, if the update can use rows.

``embedding(is_sparse=False)`` has a gradient of the size of its table, zero except in the rows of the batch.
If only an update reads it, it stays a set of rows from the lookup to the update; the result has the same
bits. An update that leaves rows with zero gradient unchanged then works only on the rows of the batch. One
that changes them still writes all rows, but skips the passes over zeros.
"""

from __future__ import annotations

import math
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import Array, LoDTensor, SelectedRows, VarType
from paddlelike.executor.plans.binding import make_taker
from paddlelike.executor.plans.frame import Frame, Step, flatten_positions
from paddlelike.framework import Block, Operator
from paddlelike.framework.opdef import OpDef, registry
from paddlelike.framework.passes.views import collect_reads, collect_writes

ROWS: Final = "rows"  # kernel name of a step that works only on rows
_LEAST: Final = 1 << 16  # elements of a table; a smaller one is updated faster than its rows are found


class RowGradients(NamedTuple):
    """Indexes of the operators whose result remains rows, and of the updates that accept rows."""

    producers: frozenset[int]
    updates: frozenset[int]


def find_row_gradients(block: Block, ops: Sequence[Operator], keep: Iterable[str]) -> RowGradients:
    """Return the operators whose dense gradients may remain rows.

    Such a gradient is written once, by a lookup or as the sum of several of them, and read once, by an
    update. ``keep`` are the variables that are fed or fetched.
    """
    classes = [registry.find_for_version(op.type, block.program.paddle_version) for op in ops]
    if not any(cls is not None and _makes_rows(cls, op) for cls, op in zip(classes, ops, strict=True)):
        return RowGradients(frozenset(), frozenset())
    readers, writers = defaultdict(list), defaultdict(list)
    for index, op in enumerate(ops):
        for name in collect_reads(op):
            readers[name].append(index)
        for name in collect_writes(op):
            writers[name].append(index)
    kept = set(keep)

    def find_producers(name: str, reader: int) -> set[int] | None:
        """Return the operators that compute the rows of a gradient, or None if it must be dense."""
        variable = block._find_var_recursive(name)
        if name in kept or variable is None or variable.persistable or variable.type != VarType.LOD_TENSOR:
            return None
        if readers[name] != [reader] or len(writers[name]) != 1 or writers[name][0] >= reader:
            return None
        index = writers[name][0]
        op, cls = ops[index], classes[index]
        if cls is None or not _makes_rows(cls, op):
            return None
        found = {index}
        for part in () if "W" in op.inputs else op.input("X"):
            inner = find_producers(part, index)
            if inner is None:
                return None
            found |= inner
        return found

    producers: set[int] = set()
    updates: set[int] = set()
    for index, (op, cls) in enumerate(zip(ops, classes, strict=True)):
        if cls is None or not _updates_large_table(cls, op, block):
            continue
        found = find_producers(op.input("Grad")[0], index)
        if found is not None:
            producers |= found
            updates.add(index)
    return RowGradients(frozenset(producers), frozenset(updates))


def _makes_rows(cls: type[OpDef], op: Operator) -> bool:
    if cls.make_rows_kernel.__func__ is OpDef.make_rows_kernel.__func__:  # type: ignore[attr-defined]
        return False
    return cls.make_rows_kernel(cls.make_forward_keywords(op.attrs, op.outputs)) is not None


def _updates_large_table(cls: type[OpDef], op: Operator, block: Block) -> bool:
    """Return whether an update of a large table accepts rows."""
    if cls.get_row_update.__func__ is OpDef.get_row_update.__func__:  # type: ignore[attr-defined]
        return False
    param = block._find_var_recursive(op.input("Param")[0])
    if param is None or param.type != VarType.LOD_TENSOR or math.prod(param.shape) < _LEAST:
        return False
    rule = cls.get_row_update(cls.make_forward_keywords(op.attrs, op.outputs))
    if rule is None or rule.forward is None:
        return rule is not None
    return all(op.outputs.get(out) == op.inputs.get(source) for out, source in cls.inplace.items())


def update_touched(step: Step) -> Step:
    """Return the step of an update whose gradient may come as rows. Each run decides by the learning rate and
    the optimizer's state whether to make the gradient dense.
    """
    binding = step.binding
    assert binding is not None
    rule = binding.cls.get_row_update(binding.keywords)
    assert rule is not None
    slots = [slot.name for slot in binding.cls.input_slots]
    take = make_taker(binding.inputs)
    param_index, grad_index = slots.index("Param"), slots.index("Grad")
    grad_at = binding.inputs[grad_index]
    assert isinstance(grad_at, int)
    checks = []
    for index in rule.unsigned:
        position = binding.inputs[index]
        assert isinstance(position, int)
        checks.append((index, position, _UnsignedCheck()))
    written = [at for at in flatten_positions(binding.outputs) if at >= 0]

    def run_rows(frame: Frame, inputs: Sequence[Any]) -> None:
        if rule.forward is None:
            step.run(frame)
            return
        rule.forward(*inputs)
        for position in written:
            frame.holders[position]._value.version += 1
        for position in binding.dead:
            frame.values[position] = None

    def run(frame: Frame) -> None:
        inputs = take(frame.values)
        grad = inputs[grad_index]
        is_sparse = isinstance(grad, SelectedRows)
        if isinstance(grad, SelectedRows):
            arrays = [inputs[param_index], *(inputs[index] for index, _, _ in checks)]
            is_sparse = (
                _fit(grad, arrays)
                and rule.holds(*inputs)
                and all(check.holds(frame, position) for _, position, check in checks)
                and (rule.forward is None or all(_is_in_scope(frame, at) for at in written))
            )
            if not is_sparse:
                frame.values[grad_at] = grad.to_dense()
        if is_sparse:
            run_rows(frame, inputs)
        else:
            step.run(frame)
        for _, position, check in checks if is_sparse else ():
            check.remember(frame, position)

    return step._replace(run=run, kernel=ROWS, parts=(step,))


def _fit(grad: SelectedRows, arrays: Sequence[Any]) -> bool:
    """Return whether the parameter and its state are float arrays with the shape of the gradient."""
    values, shape = grad.held_array, getattr(arrays[0], "shape", None)
    return values is not None and all(
        type(array) is np.ndarray
        and array.dtype == values.dtype
        and array.dtype.kind == "f"
        and array.shape == shape == (grad.height(), *values.shape[1:])
        for array in arrays
    )


def _is_in_scope(frame: Frame, position: int) -> bool:
    """Return whether a value is the array of a variable of the scope."""
    holder = frame.holders.get(position)
    tensor = None if holder is None else holder._value
    array = frame.values[position]
    return type(tensor) is LoDTensor and tensor._array is array is not None


class _UnsignedCheck:
    """Whether an array of the scope has no NaN and no sign bits; checked again only after other writes."""

    def __init__(self) -> None:
        self._known: tuple[Callable[[], Any], int] | None = None  # a weak reference, the version

    def holds(self, frame: Frame, position: int) -> bool:
        """Return whether the array has no NaN and no sign bits now."""
        if not _is_in_scope(frame, position):
            return False
        tensor, array = frame.holders[position]._value, frame.values[position]
        known, version = self._known or (lambda: None, 0)
        is_known: bool = known() is array and version == tensor.version
        return is_known or is_unsigned(array)

    def remember(self, frame: Frame, position: int) -> None:
        """Record that the array still has no NaN and no sign bits after a step."""
        if _is_in_scope(frame, position):
            self._known = weakref.ref(frame.values[position]), frame.holders[position]._value.version


def is_unsigned(array: Array) -> bool:
    """Return whether no element is NaN or has a sign bit. As integers, such elements are at most infinity.

    >>> [is_unsigned(np.array([x])) for x in (0.0, np.inf, -0.0, np.nan)]
    [True, True, False, False]
    """
    if not array.size:
        return True
    as_int = np.dtype(f"=i{array.dtype.itemsize}")
    infinity = np.array(np.inf, array.dtype).view(as_int)
    bits = array.view(as_int)
    return bool(bits.min() >= 0 and bits.max() <= infinity)
