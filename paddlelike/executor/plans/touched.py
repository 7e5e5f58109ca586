"""Keep gradients of embeddings as rows, although they are declared dense, if the update can use rows.

``embedding(is_sparse=False)`` has a gradient of the size of its table, zero except in the rows of the batch.
If only an update reads it, the gradient remains a set of rows from the lookup to the update; the result has
the same bits. An update that leaves rows with zero gradient unchanged then works only on the rows of the
batch. An update with moments also changes the rows that had a gradient before. It works on these as long as
they are few, then on all rows, but skips the passes over zeros.
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
_FEW: Final = 4  # rows of a table for each that an update should take alone


class RowGradients(NamedTuple):
    """Indexes of the operators with gradients that stay sparse, and of the updates that accept them."""

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
    """Return whether an operator updates a large table by a rule that accepts gradients as rows."""
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
    checks = [(index, _Known([binding.inputs[index]], is_unsigned)) for index in rule.unsigned]
    awake = _Known([binding.inputs[index] for index in rule.state], _find_awake) if rule.state else None
    known = [check for _, check in checks] + ([] if awake is None else [awake])
    written = [at for at in flatten_positions(binding.outputs) if at >= 0]

    def run_rows(frame: Frame, inputs: Sequence[Any]) -> None:
        if rule.forward is None:
            step.run(frame)
            return
        if awake is None:
            rule.forward(*inputs)
        else:
            rule.forward(*inputs, awake=_add_rows(awake.find(frame), inputs[grad_index]))
        for position in written:
            frame.holders[position]._value.version += 1
        for position in binding.dead:
            frame.values[position] = None

    def run(frame: Frame) -> None:
        inputs = take(frame.values)
        grad = inputs[grad_index]
        is_sparse = isinstance(grad, SelectedRows)
        if isinstance(grad, SelectedRows):
            arrays = [inputs[param_index], *(inputs[index] for index, _ in checks)]
            is_sparse = (
                _fit(grad, arrays)
                and rule.holds(*inputs)
                and all(check.find(frame) for _, check in checks)
                and (rule.forward is None or all(_is_in_scope(frame, at) for at in written))
            )
            if not is_sparse:
                frame.values[grad_at] = grad.to_dense()
        if is_sparse:
            run_rows(frame, inputs)
        else:
            step.run(frame)
        for check in known if is_sparse else ():
            check.remember(frame)

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


class _Known:
    """The cached result of a function of some arrays in the scope.

    The function is called again only after other writes to the arrays; never, if it returned None.
    """

    def __init__(self, positions: Sequence[object], look: Callable[..., Array | bool | None]) -> None:
        self._positions, self._look = [at for at in positions if isinstance(at, int)], look
        # What was found, weak references to the arrays, and their versions. They are replaced together,
        # because other threads may run the same plan in other scopes.
        self._kept: tuple[Array | bool | None, list[Callable[[], Any]], list[int]] = None, [], []

    def find(self, frame: Frame) -> Array | bool | None:
        """Return the function's result for the current arrays, or None if an array is not in the scope."""
        if not all(_is_in_scope(frame, at) for at in self._positions):
            return None
        (found, arrays, known), versions = self._kept, self._get_versions(frame)
        if not self._are_of(frame, arrays) or (found is not None and known != versions):
            held = [frame.values[at] for at in self._positions]
            found = self._look(*held)
            self._kept = found, [weakref.ref(array) for array in held], versions
        return found

    def remember(self, frame: Frame) -> None:
        """Record that the result still holds after a step has written the arrays."""
        found, arrays, _ = self._kept
        if self._are_of(frame, arrays):
            self._kept = found, arrays, self._get_versions(frame)

    def _get_versions(self, frame: Frame) -> list[int]:
        return [frame.holders[at]._value.version for at in self._positions]

    def _are_of(self, frame: Frame, arrays: list[Callable[[], Any]]) -> bool:
        return bool(arrays) and all(
            seen() is frame.values[at] for seen, at in zip(arrays, self._positions, strict=True)
        )


def _find_awake(*state: Array) -> Array | None:
    """Return a mask of the rows whose state has a nonzero bit, or None if many elements have one."""
    rows = np.zeros(len(state[0]), np.bool_)
    for array in state:
        bits = array.reshape(-1).view(f"u{array.itemsize}")
        if np.count_nonzero(bits) * _FEW > bits.size:
            return None
        rows[np.flatnonzero(bits != 0) // (bits.size // len(rows))] = True
    return rows


def _add_rows(awake: object, grad: SelectedRows) -> Array | None:
    """Mark the rows of a gradient as awake; return all awake rows, or None if they are many."""
    if not isinstance(awake, np.ndarray):
        return None
    awake[grad.row_array] = True
    return np.flatnonzero(awake) if np.count_nonzero(awake) * _FEW <= len(awake) else None


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
