"""Arithmetic of two tensors, element by element, and its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.values import SparseRows
from paddlelike.ops.kernels.broadcasting import align, pad_dims
from paddlelike.ops.operands import check_same_dtype

Function = Callable[..., Any]


def _is_float(x: jax.Array) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.floating))


def _floor_quotient(x: jax.Array, y: jax.Array) -> jax.Array:
    return (x - jnp.fmod(x, y)) // y  # as in C: the fraction is cut off


def _power(x: jax.Array, y: jax.Array) -> jax.Array:
    return x**y if _is_float(x) else (x * 1.0) ** y


#: Type: value, and what d_out is multiplied by for the gradients of X and of Y.
_ROWS: Final[dict[str, tuple[Function, Function | None, Function | None]]] = {
    "elementwise_add": (jnp.add, lambda d, x, y: d, lambda d, x, y: d),
    "elementwise_sub": (jnp.subtract, lambda d, x, y: d, lambda d, x, y: -d),
    "elementwise_mul": (jnp.multiply, lambda d, x, y: d * y, lambda d, x, y: d * x),
    "elementwise_div": (
        lambda x, y: x / y if _is_float(x) else _floor_quotient(x, y),
        lambda d, x, y: d / y,
        lambda d, x, y: -d * (x / y) / y,
    ),
    "elementwise_max": (jnp.maximum, lambda d, x, y: d * (x > y), lambda d, x, y: d * (x <= y)),
    "elementwise_min": (jnp.minimum, lambda d, x, y: d * (x < y), lambda d, x, y: d * (x >= y)),
    "elementwise_pow": (
        lambda x, y: _power(x, y).astype(x.dtype),
        lambda d, x, y: d * y * x ** (y - 1),
        lambda d, x, y: d * jnp.log(x) * x**y,
    ),
    "elementwise_mod": (lambda x, y: jnp.mod(x, y) if _is_float(x) else jnp.fmod(x, y), None, None),
    "elementwise_floordiv": (_floor_quotient, None, None),
}


def _register(type: str, value: Function, d_x: Function | None, d_y: Function | None) -> None:
    def forward(x: jax.Array | SparseRows, y: jax.Array, *, axis: int) -> jax.Array | SparseRows:
        if isinstance(x, SparseRows):  # a sparse gradient times one number, as clipping does
            return SparseRows(x.rows, value(x.values, y), x.height)
        check_same_dtype(type, x, [y])
        return value(*align(x, y, axis))

    def backward(
        d_out: jax.Array, x: jax.Array, y: jax.Array, *_: Any, axis: int
    ) -> tuple[jax.Array, jax.Array]:
        assert d_x is not None
        assert d_y is not None
        a, b = align(x, y, axis)
        return sum_to(x, d_x(d_out, a, b), axis), sum_to(y, d_y(d_out, a, b), axis)

    lowers(type)(forward)
    if d_x is not None:
        lowers(f"{type}_grad")(backward)


def sum_to(like: jax.Array, gradient: jax.Array, axis: int) -> jax.Array:
    """Return the gradient of a tensor that was broadcast to the shape of ``gradient``."""
    if like.shape == gradient.shape:
        return gradient
    dims = pad_dims(like.shape, gradient.ndim, axis)
    over = tuple(i for i, dim in enumerate(dims) if dim != gradient.shape[i])
    return gradient.sum(over).reshape(like.shape)


for _type, _row in _ROWS.items():
    _register(_type, *_row)
