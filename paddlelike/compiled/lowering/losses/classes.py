"""Losses over classes that pick or weigh them: nll, focal, center, hierarchical sigmoid."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.refusals import LoweringError
from paddlelike.compiled.table import lowers
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import SparseRows

Results = tuple[Any, ...]


def _check(label: Any, count: int, ctx: OpContext) -> None:
    ctx.check((label >= 0) & (label < count), f"Label holds a value outside of 0 to {count - 1}")


@lowers("nll_loss")
def nll_loss(
    x: Any, label: Any, weight: Any, *, ignore_index: int, reduction: str, ctx: OpContext
) -> Results:
    flat = label.reshape(-1)
    ignored = flat == ignore_index
    safe = jnp.where(ignored, 0, flat)
    _check(safe, x.shape[1], ctx)
    weights = jnp.ones(x.shape[1], x.dtype) if weight is None else weight
    weights = jnp.where(ignored, 0, jnp.take(weights, safe, mode="clip")).astype(x.dtype)
    rows = jnp.moveaxis(x, 1, -1).reshape(-1, x.shape[1])
    loss = -weights * jnp.take_along_axis(rows, safe[:, None], 1, mode="clip")[:, 0]
    if reduction == "none":
        return loss.reshape(label.shape), jnp.zeros(1, x.dtype)
    total = weights.sum()
    out = loss.sum()
    if reduction == "mean":
        out = jnp.where(total != 0, out / jnp.where(total != 0, total, 1), out)
    return out.reshape(1), total.reshape(1)


@lowers("sigmoid_focal_loss")
def sigmoid_focal_loss(x: Any, label: Any, fg_num: Any, *, gamma: float, alpha: float) -> Any:
    classes = jnp.arange(1, x.shape[1] + 1)
    positive = label == classes
    negative = (label != -1) & ~positive
    count = jnp.maximum(fg_num.reshape(-1)[0], 1).astype(jnp.float64)
    up = positive * (alpha / count).astype(x.dtype)
    down = negative * ((1 - alpha) / count).astype(x.dtype)
    p, log_p = jax.nn.sigmoid(x), -jnp.logaddexp(jnp.zeros((), x.dtype), -x)
    return -up * (1 - p) ** gamma * log_p - down * p**gamma * (log_p - x)


@lowers("center_loss")
def center_loss(x: Any, label: Any, centers: Any, rate: Any, *, need_update: bool, ctx: OpContext) -> Results:
    flat = label.reshape(-1)
    _check(flat, centers.shape[0], ctx)
    difference = x - jnp.take(centers, flat, axis=0, mode="clip")
    loss = (difference * difference).sum(1, keepdims=True) / 2
    if not need_update:
        return centers, difference, loss
    count = 1 + jnp.zeros(centers.shape[0], jnp.int32).at[flat].add(1)
    total = jnp.zeros_like(centers).at[flat].add(difference)
    step = total * (rate[0] / count[:, None]).astype(x.dtype)
    return jax.lax.stop_gradient(centers + step), difference, loss


# The hierarchical sigmoid


def _find_paths(
    label: Any, table: Any, code: Any, num_classes: int, ctx: OpContext | None
) -> tuple[Any, Any, Any]:
    """Return the inner nodes on the path of each row, the branches taken, and which of them are on it."""
    if table is not None and code is not None:
        on_path = jnp.cumprod(table >= 0, axis=1).astype(bool)
        return jnp.where(on_path, table, 0), on_path & (code != 0), on_path
    label = label.reshape(-1, 1)
    if ctx is not None:
        _check(label, num_classes, ctx)
    leaf = label + num_classes
    bits = np.arange((num_classes - 1).bit_length())
    nodes = (leaf >> (bits + 1)) - 1
    on_path = nodes >= 0
    return jnp.where(on_path, nodes, 0), on_path & ((leaf >> bits) & 1 == 1), on_path


@lowers("hierarchical_sigmoid")
def hierarchical_sigmoid(
    x: Any, w: Any, label: Any, table: Any, code: Any, bias: Any, *, num_classes: int, ctx: OpContext
) -> Results:
    if isinstance(w, SparseRows):
        raise LoweringError("the weight holds some rows only")
    nodes, right, on_path = _find_paths(label, table, code, num_classes, ctx)
    z = jnp.einsum("nd,nkd->nk", x, jnp.take(w, nodes, axis=0, mode="clip"))
    if bias is not None:
        z = z + bias.reshape(-1)[nodes]
    z = jnp.clip(z * on_path, -40, 40)
    soft = jnp.log1p(jnp.exp(z))
    return (soft - right * z).sum(1, keepdims=True), soft, None


@lowers("hierarchical_sigmoid_grad")
def hierarchical_sigmoid_grad(
    x: Any, w: Any, label: Any, table: Any, code: Any, bias: Any, soft: Any, d_out: Any,
    *, num_classes: int, is_sparse: bool,
) -> Results:  # fmt: skip
    nodes, right, on_path = _find_paths(label, table, code, num_classes, None)
    d_z = (1 - jnp.exp(-soft) - right) * d_out * on_path
    rows = nodes.reshape(-1)
    d_x = jnp.einsum("nk,nkd->nd", d_z, jnp.take(w, nodes, axis=0, mode="clip"))
    values = (d_z[..., None] * x[:, None]).reshape(rows.shape[0], -1).astype(w.dtype)
    # Where a path is shorter than the longest one, the row of the root gets zeros.
    d_w = SparseRows(rows, values, w.shape[0])
    d_bias = None
    if bias is not None:
        d_bias = jnp.zeros(bias.size, d_z.dtype).at[rows].add(d_z.reshape(-1)).reshape(bias.shape)
    return d_x.astype(x.dtype), d_w if is_sparse else d_w.to_dense(), d_bias
