"""Activations whose kernels write into their own intermediate results."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from paddlelike.compiled.table import lowers
from paddlelike.compiled.values import SparseRows


@lowers("relu")
def relu(x: Any) -> Any:
    return jnp.maximum(x, jnp.zeros((), x.dtype))


@lowers("sigmoid")
def sigmoid(x: Any) -> Any:
    return jax.nn.sigmoid(x)


@lowers("tanh_grad")
def tanh_grad(out: Any, d_out: Any) -> Any:
    return d_out * (1 - out * out)


@lowers("logsigmoid")
def logsigmoid(x: Any) -> Any:
    return jax.nn.log_sigmoid(x)


@lowers("softplus")
def softplus(x: Any) -> Any:
    return jnp.logaddexp(x, jnp.zeros((), x.dtype))


@lowers("soft_relu")
def soft_relu(x: Any, *, threshold: float) -> Any:
    return jnp.logaddexp(jnp.clip(x, -threshold, threshold), jnp.zeros((), x.dtype))


@lowers("swish")
def swish(x: Any, *, beta: float) -> Any:
    return x * jax.nn.sigmoid(beta * x)


@lowers("mish")
def mish(x: Any, *, threshold: float) -> Any:
    plus = jnp.where(
        x > threshold, x, jnp.where(x < -threshold, jnp.exp(x), jnp.log1p(jnp.exp(jnp.minimum(x, threshold))))
    )
    return x * jnp.tanh(plus)


@lowers("erf")
def erf(x: Any) -> Any:
    return jax.scipy.special.erf(x)


@lowers("gelu")
def gelu(x: Any, *, approximate: bool) -> Any:
    if approximate:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + jnp.tanh(inner))
    return 0.5 * x * (1 + jax.scipy.special.erf(x * math.sqrt(0.5)))


@lowers("clip_by_norm")
def clip_by_norm(x: Any, *, max_norm: float) -> Any:
    if isinstance(x, SparseRows):
        x = x.to_dense()
    length = jnp.sqrt(jnp.sum(x * x))
    scaled = x * (max_norm / jnp.where(length == 0, 1, length))
    return jnp.where(length <= max_norm, x, scaled).astype(x.dtype)
