"""Lowerings of elementwise operators: broadcasting, functions that replace numpy's, clipping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.formulas import stands_for
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.values import SparseRows
from paddlelike.core import SelectedRows
from paddlelike.ops.elementwise import binary
from paddlelike.ops.kernels import broadcasting, special

stands_for(SelectedRows)(SparseRows)


@stands_for(binary.map_row_values)
def map_row_values(x: SparseRows, function: Callable[[Array], Array]) -> SparseRows:
    return SparseRows(x.rows, function(x.values), x.height)


@stands_for(broadcasting.apply)
def apply(function: Callable[[Array, Array], Array], x: Array, y: Array, axis: int) -> Array:
    return function(*broadcasting.align(x, y, axis))


@stands_for(broadcasting.sum_to)
def sum_to(shape: tuple[int, ...], gradient: Array, axis: int) -> Array:
    """Sum ``gradient`` over the dims along which a tensor was broadcast, to the tensor's own shape."""
    if shape == gradient.shape:
        return gradient
    dims = broadcasting.pad_dims(shape, gradient.ndim, axis)
    over = tuple(i for i, dim in enumerate(dims) if dim != gradient.shape[i])
    return gradient.sum(over).reshape(shape)


@stands_for(special.bound_below)
def bound_below(x: Array, bound: float) -> Array:
    return jnp.maximum(x, jnp.asarray(bound, x.dtype))


@stands_for(special.convert)
def convert(x: Array, dtype: np.dtype[Any]) -> Array:
    return special.convert_as_x86(x, dtype, jnp.where)


@stands_for(special.complement)
def complement(x: Array) -> Array:
    return 1 - x


@stands_for(special.softplus)
def softplus(x: Array) -> Array:
    return jnp.logaddexp(x, jnp.zeros((), x.dtype))


stands_for(special.sigmoid)(jax.nn.sigmoid)
stands_for(special.erf)(jax.scipy.special.erf)


@lowers("clip_by_norm")
def clip_by_norm(x: Array | SparseRows, *, max_norm: float) -> Array:
    dense = x.to_dense() if isinstance(x, SparseRows) else x
    length = jnp.sqrt(jnp.sum(dense * dense))
    scaled = dense * (max_norm / jnp.where(length == 0, 1, length))
    return jnp.where(length <= max_norm, dense, scaled).astype(dense.dtype)
