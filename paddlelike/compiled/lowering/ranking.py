"""cvm: shows and clicks beside an embedding."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.lowering.fused import count_logarithms
from paddlelike.compiled.lowering.sequence.sequence import require_sequences, spread
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.values import Packed, Value, get_rows


@lowers("cvm")
def cvm(x: Array, counts: Array, *, use_cvm: bool) -> Array:
    return count_logarithms(x) if use_cvm else x[:, 2:]


@lowers("cvm_grad", sequences=True)
def cvm_grad(x: Array | Packed, counts: Array | Packed, d_out: Array | Packed, *, use_cvm: bool) -> Value:
    """Return the gradient. The two counts get CVM itself as their gradient, for the parameter server to add
    up.
    """
    if isinstance(counts, Packed):
        raise LoweringError("CVM has a LoD")
    columns = get_rows(d_out)
    columns = columns[:, 2:] if use_cvm else columns
    if not isinstance(x, Packed):
        return jnp.concatenate([counts[: x.shape[0]].astype(x.dtype), columns], 1)
    require_sequences(x)
    if len(x.offsets) > 1 or counts.shape[0] < x.count:
        raise LoweringError("its sequences are nested, or CVM lacks a row for each")
    rows = jnp.concatenate([spread(x, counts).astype(x.rows.dtype), columns], 1)
    return x.replace(x.mask(rows), shown=False)
