"""Products with their biases and activations, and a sum or product with a function of each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowering.elementwise.binary import sum_to
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.refusals import LoweringError
from paddlelike.framework.quirks import follows_fluid
from paddlelike.ops.kernels.broadcasting import align


@lowers("fusion_repeated_fc_relu")
def fusion_repeated_fc_relu(
    x: jax.Array, weights: list[jax.Array], biases: list[jax.Array]
) -> tuple[list[jax.Array], jax.Array]:
    outs = []
    for weight, bias in zip(weights, biases, strict=True):
        x = jnp.maximum(x @ weight + bias.reshape(-1), 0)
        outs.append(x)
    return outs[:-1], outs[-1]


@lowers("fusion_squared_mat_sub")
def fusion_squared_mat_sub(
    x: jax.Array, y: jax.Array, *, scalar: float
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    squared_x, squared_y, product = x * x, y * y, jnp.square(x @ y)
    out = (product - squared_x @ squared_y) * jnp.asarray(scalar, x.dtype)
    return squared_x, squared_y, product, out


#: Value, and slope in terms of the number, its value and ``scale``.
_UNARY: Final[dict[str, tuple[Callable[..., jax.Array], Callable[..., jax.Array]]]] = {
    "relu": (lambda x, _: jnp.maximum(x, 0), lambda x, y, _: (y > 0).astype(y.dtype)),
    "scale": (lambda x, s: x * s, lambda x, y, s: jnp.full_like(y, s)),
    "tanh": (lambda x, _: jnp.tanh(x), lambda x, y, _: 1 - y * y),
    "sigmoid": (lambda x, _: jax.nn.sigmoid(x), lambda x, y, _: y * (1 - y)),
}


def _read_functors(
    functors: list[str],
) -> tuple[tuple[Callable[..., jax.Array], Callable[..., jax.Array]], bool, bool]:
    """Return the function of elements, whether it joins a sum, and whether it is applied to Y first."""
    names = [name.removesuffix("_grad").partition(",")[0] for name in functors]
    on_y = names[0].startswith("elementwise_")
    binary, unary = names if on_y else reversed(names)
    if unary not in _UNARY:
        raise LoweringError(f"functor_list is {functors}")
    return _UNARY[unary], binary == "elementwise_add", on_y


@lowers("fused_elemwise_activation")
def fused_elemwise_activation(
    x: jax.Array,
    y: jax.Array,
    *,
    axis: int,
    scale: float,
    save_intermediate_out: bool,
    functor_list: list[str],
) -> tuple[jax.Array, jax.Array | None]:
    (value, _), is_sum, on_y = _read_functors(functor_list)
    first = value(y, scale) if on_y else y
    a, b = align(x, first, axis)
    joined = a + b if is_sum else a * b
    out, kept = (joined, first) if on_y else (value(joined, scale), joined)
    return out, kept if save_intermediate_out else None


@lowers("fused_elemwise_activation_grad")
def fused_elemwise_activation_grad(
    x: jax.Array,
    y: jax.Array,
    out: jax.Array,
    kept: jax.Array | None,
    d_out: jax.Array,
    *,
    axis: int,
    scale: float,
    functor_list: list[str],
) -> tuple[jax.Array, jax.Array, None]:
    (value, slope), is_sum, on_y = _read_functors(functor_list)
    first = value(y, scale) if on_y else y
    a, b = align(x, first, axis)
    d_joined = d_out if on_y else d_out * slope(a, out, scale)
    d_x = sum_to(x, d_joined if is_sum else d_joined * b, axis)
    d_first = sum_to(y, d_joined if is_sum else d_joined * a, axis)
    if kept is None and follows_fluid("fused_activation_gradient"):
        first = y
    return d_x, d_first * slope(y, first, scale) if on_y else d_first, None
