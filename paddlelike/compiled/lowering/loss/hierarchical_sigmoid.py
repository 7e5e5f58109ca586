"""The hierarchical sigmoid."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import SparseRows


def _find_paths(
    label: Array, table: Array | None, code: Array | None, num_classes: int, ctx: OpContext | None
) -> tuple[Array, Array, Array]:
    """Return the inner nodes on the path of each row, the branches taken, and a mask of the nodes that are on
    it.
    """
    if table is not None and code is not None:
        on_path = jnp.cumprod(table >= 0, axis=1).astype(bool)
        return jnp.where(on_path, table, 0), on_path & (code != 0), on_path
    label = label.reshape(-1, 1)
    if ctx is not None:
        ctx.check_below(label, num_classes, "Label holds a value")
    leaf = label + num_classes
    bits = np.arange((num_classes - 1).bit_length())
    nodes = (leaf >> (bits + 1)) - 1
    on_path = nodes >= 0
    return jnp.where(on_path, nodes, 0), on_path & ((leaf >> bits) & 1 == 1), on_path


@lowers("hierarchical_sigmoid")
def hierarchical_sigmoid(
    x: Array,
    w: Array | SparseRows,
    label: Array,
    table: Array,
    code: Array,
    bias: Array | None,
    *,
    num_classes: int,
    ctx: OpContext,
) -> Results:
    if isinstance(w, SparseRows):
        raise LoweringError("the weight holds only some rows")
    nodes, right, on_path = _find_paths(label, table, code, num_classes, ctx)
    z = jnp.einsum("nd,nkd->nk", x, jnp.take(w, nodes, axis=0, mode="clip"))
    if bias is not None:
        z = z + bias.reshape(-1)[nodes]
    z = jnp.clip(z * on_path, -40, 40)
    soft = jnp.log1p(jnp.exp(z))
    return (soft - right * z).sum(1, keepdims=True), soft, None


@lowers("hierarchical_sigmoid_grad")
def hierarchical_sigmoid_grad(
    x: Array, w: Array, label: Array, table: Array, code: Array,
    bias: Array | None, soft: Array, d_out: Array,
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
