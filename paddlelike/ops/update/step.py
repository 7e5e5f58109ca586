"""The shape rule of optimizer updates, and iteration over parameter and state in blocks.

Every update writes into the arrays it is given (``inplace``) and returns them. A rule is written
once, for one block of elements; :func:`iterate_blocks` and :func:`iterate_touched` apply it to the parameter,
for dense and for sparse gradients alike.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.core.tensor import SelectedRows
from paddlelike.errors import ShapeError, UnsupportedError
from paddlelike.framework.opdef import Array, OpDef, Spec
from paddlelike.ops.kernels.fast.updates import Rule

__all__ = [
    "BLOCK",
    "Update",
    "average",
    "is_empty_sparse",
    "iterate_blocks",
    "iterate_touched",
    "norm",
    "quotient",
    "read_scalar",
    "require_dense",
    "shrink",
]

#: Elements per block: a rule's temporaries stay in the cache, small beside a large parameter.
#: Adam on 20 million elements: 60 ms at once, 33 ms in such blocks.
BLOCK = 1 << 17

Blocks = Iterator[tuple[Array, ...]]


class Update(OpDef):
    """An operator whose outputs are some of its inputs, changed in place."""

    @classmethod
    def infer(cls, *specs: Spec | None) -> Spec | tuple[Spec | None, ...]:
        """Return the spec of each output: that of the input it overwrites."""
        given = {slot.name: spec for slot, spec in zip(cls.input_slots, specs, strict=True)}
        _check_shapes(cls.type, given)
        sources = [given[cls.inplace[slot.name]] for slot in cls.output_slots]
        results = tuple(None if spec is None else Spec(spec.shape, spec.dtype) for spec in sources)
        first = results[0]
        return first if len(results) == 1 and first is not None else results


def _check_shapes(type: str, given: dict[str, Spec | None]) -> None:
    param, grad, rate = given.get("Param"), given.get("Grad"), given.get("LearningRate")
    if rate is not None and -1 not in rate.shape and int(np.prod(rate.shape)) != 1:
        raise ShapeError(f"{type}: LearningRate has shape {rate.shape}; it must hold one number")
    if param is None or grad is None or VarType.SELECTED_ROWS in (param.kind, grad.kind):
        return
    if len(param.shape) != len(grad.shape) or any(
        a != b and -1 not in (a, b) for a, b in zip(param.shape, grad.shape, strict=True)
    ):
        raise ShapeError(f"{type}: Param has shape {param.shape} and Grad {grad.shape}; they must be equal")


def read_scalar(array: Array) -> float:
    """Return the value of a learning rate, or of a power of beta, as a float."""
    return float(array.item())


def is_empty_sparse(grad: Array | SelectedRows) -> bool:
    """Return whether a gradient is sparse and holds nothing."""
    return isinstance(grad, SelectedRows) and not grad.row_array.size


def require_dense(type: str, grad: Array | SelectedRows) -> Array:
    """Return the gradient; raise UnsupportedError when it is sparse."""
    if isinstance(grad, SelectedRows):
        raise UnsupportedError(
            f"{type}: Grad is sparse ({grad.row_array.size} rows of {grad.height()})",
            hint="build the embedding with is_sparse=False, or use sgd, momentum, adagrad or adam",
        )
    return grad


def iterate_blocks(
    param: Array, grad: Array | SelectedRows, *state: Array, rule: Rule | None = None
) -> Blocks:
    """Return blocks ``(param, grad, *state)`` that cover the parameter; rows without gradient see zeros.

    A sparse gradient that holds no rows at all gives no blocks: nothing changes. Blocks to which ``rule``, a
    compiled one, could be applied are left out.

    Raises ShapeError when the shapes differ.
    """
    if isinstance(grad, SelectedRows):
        blocks = iter(()) if is_empty_sparse(grad) else _split_dense_blocks(param, grad, state)
    elif grad.shape != param.shape:
        raise ShapeError(f"Param has shape {param.shape} and Grad {grad.shape}; they must be equal")
    else:
        blocks = _split_blocks((param, grad, *state))
    return blocks if rule is None else (block for block in blocks if not rule.update(block))


def iterate_touched(
    param: Array, grad: Array | SelectedRows, *state: Array, rule: Rule | None = None
) -> Blocks:
    """Like :func:`iterate_blocks`, but of a sparse gradient only the rows that it holds."""
    if isinstance(grad, SelectedRows):
        return _yield_held_rows(param, grad, state, rule)
    return iterate_blocks(param, grad, *state, rule=rule)


def _split_blocks(arrays: tuple[Array, ...]) -> Blocks:
    size = arrays[0].size
    if size <= BLOCK or not all(array.flags.c_contiguous for array in arrays):
        yield arrays
        return
    flat = [array.reshape(-1) for array in arrays]
    for start in range(0, size, BLOCK):
        yield tuple(array[start : start + BLOCK] for array in flat)


def _split_dense_blocks(param: Array, grad: SelectedRows, state: tuple[Array, ...]) -> Blocks:
    rows, values = _merge_rows(param, grad)
    height = len(param)
    step = min(height, max(1, BLOCK // max(1, param[0].size)))
    dense = np.empty((step, *param.shape[1:]), param.dtype)
    for start in range(0, height, step):
        first, last = np.searchsorted(rows, (start, start + step))
        part = dense[: min(step, height - start)]
        part.fill(0)
        part[rows[first:last] - start] = values[first:last]
        block = slice(start, start + step)
        yield (param[block], part, *(array[block] for array in state))


def _yield_held_rows(param: Array, grad: SelectedRows, state: tuple[Array, ...], rule: Rule | None) -> Blocks:
    if is_empty_sparse(grad):
        return
    rows, values = _merge_rows(param, grad)
    whole = (param, *state)
    if rule is not None and rule.update_rows(rows, values, whole):
        return
    param_rows, *state_rows = parts = [array[rows] for array in whole]
    yield (param_rows, values, *state_rows)
    for array, part in zip(whole, parts, strict=True):
        array[rows] = part


def _merge_rows(param: Array, grad: SelectedRows) -> tuple[Array, Array]:
    """Return the sorted rows of a gradient, each once, and their sums."""
    merged = grad.merge()
    rows, values = merged.row_array, merged.array
    assert values is not None
    if values.shape[1:] != param.shape[1:] or (rows.size and not 0 <= rows[0] <= rows[-1] < len(param)):
        span = f"{rows[0]} to {rows[-1]}" if rows.size else "none"
        raise ShapeError(
            f"Param has shape {param.shape}; the sparse Grad holds rows {span} of shape {values.shape[1:]}",
            hint="ids of an embedding must be below its number of rows",
        )
    return rows, values


def norm(x: Array) -> float:
    """Return the Euclidean norm of all elements."""
    return float(np.sqrt(np.vdot(x, x)))


def shrink(p: Array, l1: float, l2: float) -> None:
    """``p = sign(p) max(|p| - l1, 0) / (1 + l2)``, in place."""
    if l1 > 0:
        np.copysign(np.maximum(np.abs(p) - l1, 0), p, out=p)
    p /= 1 + l2


def average(mean: Array, decay: float, x: Array) -> None:
    """``mean = decay mean + (1 - decay) x``, in place."""
    mean *= decay
    mean += (1 - decay) * x


def quotient(x: Array, square: Array, epsilon: float) -> Array:
    """``x / (sqrt(square) + epsilon)``, a new array."""
    root = np.sqrt(square)
    root += epsilon
    return np.divide(x, root, out=root)
