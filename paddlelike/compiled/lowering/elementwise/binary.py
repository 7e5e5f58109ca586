"""Broadcasting of two tensors, and the sums that undo it, in the place of numpy's."""

from __future__ import annotations

from collections.abc import Callable

import jax

from paddlelike.compiled.formulas import stands_for
from paddlelike.compiled.values import SparseRows
from paddlelike.core.tensor import SelectedRows
from paddlelike.ops.elementwise import binary
from paddlelike.ops.kernels import broadcasting

stands_for(SelectedRows)(SparseRows)


@stands_for(binary.map_row_values)
def map_row_values(x: SparseRows, function: Callable[[jax.Array], jax.Array]) -> SparseRows:
    return SparseRows(x.rows, function(x.values), x.height)


@stands_for(broadcasting.apply)
def apply(
    function: Callable[[jax.Array, jax.Array], jax.Array], x: jax.Array, y: jax.Array, axis: int
) -> jax.Array:
    return function(*broadcasting.align(x, y, axis))


@stands_for(broadcasting.sum_to)
def sum_to(shape: tuple[int, ...], gradient: jax.Array, axis: int) -> jax.Array:
    """Return the gradient of a tensor that was broadcast to the shape of ``gradient``."""
    if shape == gradient.shape:
        return gradient
    dims = broadcasting.pad_dims(shape, gradient.ndim, axis)
    over = tuple(i for i, dim in enumerate(dims) if dim != gradient.shape[i])
    return gradient.sum(over).reshape(shape)
