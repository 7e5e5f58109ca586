"""Updates of optimizers. A sparse gradient is used as the dense one, except where its rows alone count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.refusals import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import SparseRows
from paddlelike.framework.quirks import follows_fluid
from paddlelike.ops.update.gradient_descent import draw_normal


def _scalar(x: Any, like: Any) -> Any:
    return x.reshape(()).astype(like.dtype)


def _dense(type: str, grad: Any) -> Any:
    if isinstance(grad, SparseRows):
        raise LoweringError(f"{type}: Grad is sparse")
    return grad


def _spread(grad: Any) -> Any:
    """Return a gradient as a dense array."""
    return grad.to_dense() if isinstance(grad, SparseRows) else grad


def _update_rows(update: Callable[..., Results], grad: Any, *arrays: Any) -> tuple[Any, ...]:
    """Return ``update(grad, *arrays)``; for a sparse gradient, of the rows that it holds alone.

    The others keep their values, and nobody reads them: a step does not depend on the height of a table.
    """
    if not isinstance(grad, SparseRows):
        return update(grad, *arrays)
    merged = grad.merge()
    rows, values = merged.rows, merged.values
    found = update(values, *(one.at[rows].get(mode="clip") for one in arrays))
    return tuple(one.at[rows].set(new, mode="drop") for one, new in zip(arrays, found, strict=True))


def _spoil_others(ctx: OpContext, param: Any, grad: Any, lr: Any) -> Any:
    """Return a table of which some rows were updated. If its gradient is dense, others may be NaN as well.

    They are for a learning rate that is not finite: ``0 * lr`` is NaN. A loop, of one step at most, needs no
    copy of the table; a choice does.
    """
    if not isinstance(grad, SparseRows) or id(ctx.op) not in ctx.plan.row_updates:
        return param

    def spoil(state: tuple[Any, Any]) -> tuple[Any, Any]:
        others = jnp.ones(grad.height, bool).at[grad.rows].set(False, mode="drop")
        others = others.reshape(-1, *[1] * (param.ndim - 1))
        return jnp.zeros((), bool), jnp.where(others, jnp.nan, state[1]).astype(param.dtype)

    return lax.while_loop(lambda state: state[0], spoil, (~jnp.isfinite(lr), param))[1]


def _average(mean: Any, decay: Any, x: Any) -> Any:
    return mean * decay + (1 - decay) * x


def _norm(x: Any) -> Any:
    return jnp.sqrt(jnp.vdot(x, x))


def _shrink(p: Any, l1: Any, l2: Any) -> Any:
    return jnp.copysign(jnp.maximum(jnp.abs(p) - l1, 0), p) / (1 + l2)


@lowers("dpsgd", draws=True)
def dpsgd(
    param: Any,
    grad: Any,
    rate: Any,
    *,
    clip: float,
    batch_size: float,
    sigma: float,
    seed: int,
    ctx: OpContext,
) -> Any:
    grad = _dense("dpsgd", grad)
    share = sigma / batch_size
    if follows_fluid("dpsgd_noise"):  # all elements share one noise
        noise = share * ctx.draw(seed, (1,), np.float64, lambda random, _: np.array([draw_normal(random)]))
    else:
        noise = ctx.draw(
            seed,
            param.shape,
            param.dtype,
            lambda random, count: random.gaussian((count,), 0.0, share, param.dtype),
        )
    scale = jnp.maximum(1.0, _norm(grad) / clip)
    return param - _scalar(rate, param) * (grad / scale + noise.astype(param.dtype)).astype(param.dtype)


@lowers("sgd")
def sgd(param: Any, rate: Any, grad: Any, *, ctx: OpContext) -> Any:
    lr = _scalar(rate, param)
    if isinstance(grad, SparseRows):
        return _spoil_others(ctx, param.at[grad.rows].add(-lr * grad.values), grad, lr)
    return param - lr * grad


@lowers("momentum")
def momentum(param: Any, grad: Any, velocity: Any, rate: Any, *, mu: float, use_nesterov: bool) -> Results:
    lr = _scalar(rate, param)
    if isinstance(grad, SparseRows) and grad.has_few_rows:  # without a dense gradient: see adam
        velocity = (velocity * mu).at[grad.rows].add(grad.values)
        if not use_nesterov:
            return param - lr * velocity, velocity
        return (param - lr * mu * velocity).at[grad.rows].add(-lr * grad.values), velocity
    grad = _spread(grad)
    velocity = velocity * mu + grad
    return param - lr * (grad + mu * velocity if use_nesterov else velocity), velocity


@lowers("lars_momentum")
def lars_momentum(
    param: Any, grad: Any, velocity: Any, rate: Any, *, mu: float, lars_coeff: float, lars_weight_decay: float
) -> Results:
    grad, lr = _dense("lars_momentum", grad), _scalar(rate, param)
    p_norm, g_norm = _norm(param), _norm(grad)
    both = (p_norm > 0) & (g_norm > 0)
    below = jnp.where(both, g_norm + lars_weight_decay * p_norm, 1)
    local = jnp.where(both, lr * lars_coeff * p_norm / below, lr)
    velocity = velocity * mu + local * (grad + lars_weight_decay * param)
    return param - velocity, velocity


@lowers("proximal_gd")
def proximal_gd(param: Any, grad: Any, rate: Any, *, l1: float, l2: float) -> Any:
    lr = _scalar(rate, param)
    return _shrink(param - lr * _dense("proximal_gd", grad), lr * l1, lr * l2)


@lowers("adam")
def adam(
    param: Any, grad: Any, rate: Any, moment1: Any, moment2: Any, beta1_pow: Any, beta2_pow: Any,
    beta1_tensor: Any, beta2_tensor: Any, *, beta1: float, beta2: float, epsilon: float, lazy_mode: bool,
    ctx: OpContext,
) -> Results:  # fmt: skip
    b1 = beta1 if beta1_tensor is None else _scalar(beta1_tensor, param)
    b2 = beta2 if beta2_tensor is None else _scalar(beta2_tensor, param)
    pow1, pow2 = beta1_pow, beta2_pow
    next1, next2 = beta1_pow * b1, beta2_pow * b2
    is_sparse = isinstance(grad, SparseRows) and id(ctx.op) not in ctx.plan.row_updates
    if is_sparse and follows_fluid("adam_sparse_correction"):
        pow1, pow2 = next1, next2
    # In float64, as the kernel of numpy computes this factor with Python's numbers.
    wide = [jnp.reshape(x, ()).astype(jnp.float64) for x in (rate, pow1, pow2)]
    lr = (wide[0] * jnp.sqrt(1 - wide[2]) / (1 - wide[1])).astype(param.dtype)

    def move(param: Any, m1: Any, m2: Any) -> Any:
        return param - lr * (m1 / (jnp.sqrt(m2) + epsilon))

    def update(g: Any, param: Any, moment1: Any, moment2: Any) -> Results:
        m1, m2 = _average(moment1, b1, g), _average(moment2, b2, g * g)
        return move(param, m1, m2), m1, m2

    if is_sparse and lazy_mode:
        return (*_update_rows(update, grad, param, moment1, moment2), next1, next2)
    if isinstance(grad, SparseRows) and grad.has_few_rows:
        # A dense gradient of a tall table is one pass to fill it with zeros and two to read it.
        grad = grad.merge()
        rows, values = grad.rows, grad.values
        m1 = (moment1 * b1).at[rows].add((1 - b1) * values, mode="drop")
        m2 = (moment2 * b2).at[rows].add((1 - b2) * (values * values), mode="drop")
        return move(param, m1, m2), m1, m2, next1, next2
    return (*update(_spread(grad), param, moment1, moment2), next1, next2)


@lowers("adamax")
def adamax(
    param: Any, grad: Any, rate: Any, moment: Any, inf_norm: Any, beta1_pow: Any,
    *, beta1: float, beta2: float, epsilon: float,
) -> Results:  # fmt: skip
    grad = _dense("adamax", grad)
    lr = _scalar(rate, param) / (1 - _scalar(beta1_pow, param))
    moment = _average(moment, beta1, grad)
    inf_norm = jnp.maximum(jnp.abs(grad), inf_norm * beta2 + epsilon)
    return param - lr * (moment / inf_norm), moment, inf_norm


@lowers("lamb")
def lamb(
    param: Any, grad: Any, rate: Any, moment1: Any, moment2: Any, beta1_pow: Any, beta2_pow: Any,
    *, weight_decay: float, beta1: float, beta2: float, epsilon: float,
) -> Results:  # fmt: skip
    grad = _spread(grad)
    m1, m2 = _average(moment1, beta1, grad), _average(moment2, beta2, grad * grad)
    first, second = m1, m2
    if not follows_fluid("lamb_correction"):
        first = m1 / (1 - _scalar(beta1_pow, param))
        second = m2 / (1 - _scalar(beta2_pow, param))
    step = first / (jnp.sqrt(second) + epsilon) + weight_decay * param
    p_norm, r_norm = _norm(param), _norm(step)
    both = (p_norm > 0) & (r_norm > 0)
    ratio = jnp.where(both, p_norm / jnp.where(both, r_norm, 1), 1)
    return param - step * (_scalar(rate, param) * ratio), m1, m2


@lowers("adagrad")
def adagrad(param: Any, grad: Any, moment: Any, rate: Any, *, epsilon: float, ctx: OpContext) -> Results:
    lr = _scalar(rate, param)

    def update(g: Any, param: Any, moment: Any) -> Results:
        moment = moment + g * g
        return param - lr * g / (jnp.sqrt(moment) + epsilon), moment

    param, moment = _update_rows(update, grad, param, moment)
    return _spoil_others(ctx, param, grad, lr), moment


@lowers("decayed_adagrad")
def decayed_adagrad(
    param: Any, grad: Any, moment: Any, rate: Any, *, decay: float, epsilon: float
) -> Results:
    grad = _dense("decayed_adagrad", grad)
    moment = _average(moment, decay, grad * grad)
    return param - _scalar(rate, param) * grad / (jnp.sqrt(moment) + epsilon), moment


@lowers("proximal_adagrad")
def proximal_adagrad(param: Any, moment: Any, grad: Any, rate: Any, *, l1: float, l2: float) -> Results:
    grad, lr = _dense("proximal_adagrad", grad), _scalar(rate, param)
    moment = moment + grad * grad
    return _shrink(param - lr * grad / jnp.sqrt(moment), lr * l1, lr * l2), moment


@lowers("adadelta")
def adadelta(
    param: Any, grad: Any, squared_grad: Any, squared_update: Any, *, rho: float, epsilon: float
) -> Results:
    grad = _dense("adadelta", grad)
    square = grad * grad
    a = _average(squared_grad, rho, square)
    ratio = (squared_update + epsilon) / (a + epsilon)
    b = _average(squared_update, rho, ratio * square)
    ratio = (b + epsilon) / (a + epsilon) if follows_fluid("adadelta_step") else ratio
    return param - jnp.sqrt(ratio) * grad, a, b


@lowers("rmsprop")
def rmsprop(
    param: Any, mean_square: Any, mean_grad: Any, rate: Any, grad: Any, moment: Any,
    *, epsilon: float, decay: float, momentum: float, centered: bool,
) -> Results:  # fmt: skip
    grad, lr = _spread(grad), _scalar(rate, param)
    mean_square = _average(mean_square, decay, grad * grad)
    spread = mean_square + epsilon
    if centered and mean_grad is not None:
        mean_grad = _average(mean_grad, decay, grad)
        spread = spread - mean_grad * mean_grad
    moment = moment * momentum + lr * grad / jnp.sqrt(spread)
    return param - moment, moment, mean_square, mean_grad


@lowers("ftrl")
def ftrl(
    param: Any, squared: Any, linear: Any, grad: Any, rate: Any, *, l1: float, l2: float, lr_power: float
) -> Results:
    lr = _scalar(rate, param)
    l1, l2 = l1 + 1e-10, l2 + 1e-10  # as Paddle: never exactly zero

    def update(g: Any, param: Any, squared: Any, linear: Any) -> Results:
        total = squared + g * g
        before, after = squared**-lr_power, total**-lr_power
        z = linear + g - (after - before) / lr * param
        new = (jnp.copysign(l1, z).astype(z.dtype) - z) / (after / lr + 2 * l2)
        return jnp.where(jnp.abs(z) > l1, new, 0), total, z

    return _update_rows(update, grad, param, squared, linear)


@lowers("average_accumulates")
def average_accumulates(
    param: Any, sum_1: Any, sum_2: Any, sum_3: Any, accumulated: Any, old_accumulated: Any, updates: Any,
    *, average_window: float, max_average_window: int, min_average_window: int,
) -> Results:  # fmt: skip
    accumulated, updates = accumulated + 1, updates + 1
    sum_1 = sum_1 + param
    count, done = updates.reshape(()), accumulated.reshape(())
    full = count % 16384 == 0
    sum_2 = jnp.where(full, sum_2 + sum_1, sum_2)
    sum_1 = jnp.where(full, 0, sum_1)
    longest = jnp.minimum(max_average_window, (count * average_window).astype(jnp.int64))
    ends = done >= jnp.maximum(min_average_window, longest)
    sum_3 = jnp.where(ends, sum_1 + sum_2, sum_3)
    old_accumulated = jnp.where(ends, accumulated, old_accumulated)
    sum_1, sum_2, accumulated = (jnp.where(ends, 0, x) for x in (sum_1, sum_2, accumulated))
    return sum_1, sum_2, sum_3, accumulated, old_accumulated, updates
