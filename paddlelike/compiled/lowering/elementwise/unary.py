"""Functions of each element."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers


@lowers("relu")
def relu(x: jax.Array) -> jax.Array:
    return jnp.maximum(x, jnp.zeros((), x.dtype))


@lowers("sigmoid")
def sigmoid(x: jax.Array) -> jax.Array:
    return jax.nn.sigmoid(x)


@lowers("tanh_grad")
def tanh_grad(out: jax.Array, d_out: jax.Array) -> jax.Array:
    return d_out * (1 - out * out)


@lowers("logsigmoid")
def logsigmoid(x: jax.Array) -> jax.Array:
    return jax.nn.log_sigmoid(x)


@lowers("softplus")
def softplus(x: jax.Array) -> jax.Array:
    return jnp.logaddexp(x, jnp.zeros((), x.dtype))


@lowers("soft_relu")
def soft_relu(x: jax.Array, *, threshold: float) -> jax.Array:
    return jnp.logaddexp(jnp.clip(x, -threshold, threshold), jnp.zeros((), x.dtype))


@lowers("swish")
def swish(x: jax.Array, *, beta: float) -> jax.Array:
    return x * jax.nn.sigmoid(beta * x)


@lowers("mish")
def mish(x: jax.Array, *, threshold: float) -> jax.Array:
    plus = jnp.where(
        x > threshold, x, jnp.where(x < -threshold, jnp.exp(x), jnp.log1p(jnp.exp(jnp.minimum(x, threshold))))
    )
    return x * jnp.tanh(plus)


@lowers("erf")
def erf(x: jax.Array) -> jax.Array:
    return jax.scipy.special.erf(x)


@lowers("gelu")
def gelu(x: jax.Array, *, approximate: bool) -> jax.Array:
    if approximate:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + jnp.tanh(inner))
    return 0.5 * x * (1 + jax.scipy.special.erf(x * math.sqrt(0.5)))
