"""Rules of optimizers: each is one expression for an element, used by numpy, compiled loops and JAX.

    @Rule
    def momentum(p, g, v, /, lr, mu, *, use_nesterov):
        v = v * mu + g
        return p - lr * (g + mu * v if use_nesterov else v), v

The parameter, the gradient and the state are positional-only arrays of one shape; numbers follow, and flags
as keywords. The results are the new parameter and state. A call with numbers and flags gives a :class:`Step`.
:func:`apply` carries it out, block by block for large parameters, on some rows for sparse gradients.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from paddlelike.core import SelectedRows, row_changes
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast.sums import merge_rows
from paddlelike.ops.kernels.recording import LEAST, Recording, record

#: Elements per block: a rule's temporaries stay in the cache, small beside a large parameter.
#: Adam on 20 million elements: 60 ms at once, 33 ms in such blocks.
BLOCK: Final = 1 << 17

Blocks = Iterator[tuple[Array, ...]]


class Rows(enum.Enum):
    """How a sparse gradient affects the rows that it does not contain."""

    REFUSED = "there are no sparse gradients"
    KEPT = "they stay as they are"
    ZEROS = "their gradient is zero"
    SPARED = "their gradient is zero and is not added, so that an element of -0.0 stays -0.0"


class Rule:
    """An expression for one element, as the module describes.

    With ``is_linear``, repeated rows of a gradient need not be summed before they are applied.
    """

    def __init__(self, function: Callable[..., Any], *, is_linear: bool = False) -> None:
        self.function, self.is_linear = function, is_linear
        self._recordings: dict[Any, Recording] = {}

    def __call__(self, *numbers: Any, **flags: bool) -> Step:
        return Step(self, numbers, flags)

    def record(self, flags: Mapping[str, bool], *, gradient: bool = True) -> Recording:
        """Return the computation for numpy and numba; without ``gradient``, for rows that have none."""
        key = (gradient, *flags.values()) if flags else gradient
        found = self._recordings.get(key)
        if found is None:
            found = self._recordings[key] = record(self.function, flags, gradient=gradient)
        return found


class Step:
    """A rule with the numbers and the flags of one update."""

    def __init__(self, rule: Rule, numbers: tuple[Any, ...], flags: Mapping[str, bool]) -> None:
        self.rule, self.numbers, self.flags = rule, numbers, flags
        self._recording = rule.record(flags)
        self._operands: tuple[np.dtype[Any] | None, list[Array]] = (None, [])

    def update(self, *arrays: Array) -> None:
        """Write the results over the parameter and the state; the gradient is between them in the list."""
        if arrays[0].nbytes >= row_changes.LEAST:
            param, grad, *state = arrays
            param, *state = row_changes.note_rows((param, *state), None)
            arrays = (param, grad, *state)
        size, dtype = arrays[0].size, arrays[0].dtype
        recording = self._recording
        operands = self._operands[1] if self._operands[0] is dtype else self._make_operands(dtype)
        if size < LEAST:
            recording.evaluate(*arrays, *operands)
        elif recording.dense is not None and (kernel := recording.dense.choose(size, *arrays)) is not None:
            kernel(*(array.reshape(-1) for array in arrays), *map(dtype.type, operands))
        else:
            for block in _split_blocks(arrays):
                recording.evaluate(*block, *operands)

    def update_rows(self, rows: Array, values: Array, arrays: Sequence[Array]) -> None:
        """Update some distinct rows of the parameter and the state; ``values`` are their gradients."""
        arrays = row_changes.note_rows(arrays, rows)
        by_row = self._recording.by_row
        if by_row is not None and rows.dtype == np.int64 and rows.flags.carray:
            kernel = by_row.choose(values.size, values, *arrays)
            if kernel is not None:
                matrices = (array.reshape(len(array), -1) for array in (values, *arrays))
                kernel(rows, *matrices, *map(values.dtype.type, self._make_operands(values.dtype)))
                return
        param, *state = parts = [array[rows] for array in arrays]
        self.update(param, values, *state)
        for array, part in zip(arrays, parts, strict=True):
            array[rows] = part

    def update_spared(self, *arrays: Array) -> None:
        """Update the elements without a gradient."""
        recording = self.rule.record(self.flags, gradient=False)
        recording.evaluate(*arrays, *self._make_operands(arrays[0].dtype))

    def keeps_zeros(self, dtype: np.dtype[Any]) -> bool:
        """Return whether parameters and state keep their bits where the gradient and the state are 0.0."""
        arrays = np.zeros((self.rule.function.__code__.co_posonlyargcount, 2), dtype)
        arrays[0] = -0.0, 1.0
        before = arrays.tobytes()
        self._recording.evaluate(*arrays, *self._make_operands(dtype))
        return arrays.tobytes() == before

    def is_compiled(self, *arrays: Array) -> bool:
        """Return whether a compiled loop accepts these arrays."""
        dense = self._recording.dense
        return dense is not None and dense.choose(arrays[0].size, *arrays) is not None

    def _make_operands(self, dtype: np.dtype[Any]) -> list[Array]:
        """Return the numbers as arrays without dims: numpy takes half the time for these than for floats."""
        if self._operands[0] is not dtype:
            numbers = (*self.numbers, *self._recording.constants)
            self._operands = dtype, [np.array(number, dtype) for number in numbers]
        return self._operands[1]


def is_empty_sparse(grad: Array | SelectedRows) -> bool:
    """Return whether a gradient is sparse and has no rows."""
    return isinstance(grad, SelectedRows) and not grad.row_array.size


def apply(
    step: Step,
    param: Array,
    grad: Array | SelectedRows,
    *state: Array,
    rows: Rows = Rows.ZEROS,
    awake: Array | None = None,
) -> tuple[Array, ...]:
    """Update a parameter and its state in place, and return them.

    Outside the rows ``awake`` (sorted) the state and the sparse gradient are 0.0. Raises ShapeError when the
    shapes differ.
    """
    arrays = (param, *state)
    if awake is not None and isinstance(grad, SelectedRows) and step.keeps_zeros(param.dtype):
        held, values = _merge_rows(param, grad)
        if len(held) < len(awake):
            dense = np.zeros((len(awake), *param.shape[1:]), param.dtype)
            dense[awake.searchsorted(held)] = values
            values = dense
        step.update_rows(awake, values, arrays)
        return arrays
    if isinstance(grad, SelectedRows) and rows is not Rows.KEPT:
        param, *rest = row_changes.note_rows(arrays, None)
        state = tuple(rest)
    if not isinstance(grad, SelectedRows):
        if grad.shape != param.shape:
            raise ShapeError(f"Param has shape {param.shape} and Grad {grad.shape}; they must be equal")
        step.update(param, grad, *state)
    elif rows is Rows.KEPT:
        step.update_rows(*_merge_rows(param, grad), arrays)
    elif rows is Rows.SPARED and not step.is_compiled(*arrays):
        for held, values, *parts in _iterate_rows(param, grad, state):
            before = [part[held] for part in parts]
            step.update_spared(*parts)
            step.update(before[0], values, *before[1:])
            for part, new in zip(parts, before, strict=True):
                part[held] = new
    else:
        dense = np.empty((min(len(param), _count_rows(param)), *param.shape[1:]), param.dtype)
        for held, values, *parts in _iterate_rows(param, grad, state):
            block = dense[: len(parts[0])]
            block.fill(0)
            block[held] = values
            step.update(parts[0], block, *parts[1:])
    return arrays


def _split_blocks(arrays: tuple[Array, ...]) -> Blocks:
    if arrays[0].size <= BLOCK or not all(array.flags.c_contiguous for array in arrays):
        yield arrays
        return
    flat = [array.reshape(-1) for array in arrays]
    for start in range(0, flat[0].size, BLOCK):
        yield tuple(array[start : start + BLOCK] for array in flat)


def _iterate_rows(param: Array, grad: SelectedRows, state: tuple[Array, ...]) -> Blocks:
    """Return blocks ``(rows, values, param, *state)`` that cover the parameter.

    ``rows`` are the distinct rows of a block that the gradient holds, counted from the start of the block;
    ``values`` are their gradients.
    """
    rows, values = _merge_rows(param, grad)
    step = _count_rows(param)
    for start in range(0, len(param), step):
        first, last = np.searchsorted(rows, (start, start + step))
        block = (array[start : start + step] for array in (param, *state))
        yield (rows[first:last] - start, values[first:last], *block)


def _count_rows(param: Array) -> int:
    """Return the number of rows of a block."""
    return max(1, BLOCK // max(1, param[0].size))


def _merge_rows(param: Array, grad: SelectedRows) -> tuple[Array, Array]:
    """Return the sorted, distinct rows of a gradient, and their sums."""
    rows, values = merge_rows(grad)
    if values.shape[1:] != param.shape[1:] or (rows.size and not 0 <= rows[0] <= rows[-1] < len(param)):
        span = f"{rows[0]} to {rows[-1]}" if rows.size else "none"
        raise ShapeError(
            f"Param has shape {param.shape}; the sparse Grad holds rows {span} of shape {values.shape[1:]}",
            hint="ids of an embedding must be below its number of rows",
        )
    return rows, values
