"""Constants with the size of another tensor."""

from __future__ import annotations

import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.values import Packed, Value
from paddlelike.core.dtypes import numpy_dtype


@lowers("fill_constant_batch_size_like", sequences=True)
def fill_constant_batch_size_like(
    x: Value,
    *,
    shape: list[int],
    value: float,
    str_value: str,
    dtype: int,
    input_dim_idx: int,
    output_dim_idx: int,
) -> Value:
    sizes = list(shape)
    if not isinstance(x, Packed):
        like = x.shape
    elif x.live is not None and x.offsets:
        raise LoweringError("some sequences of a batch")
    else:  # of sequences their count
        like = (x.count, *x.rows.shape[1:]) if x.offsets else x.rows.shape
    sizes[output_dim_idx] = like[input_dim_idx]
    out = jnp.full(sizes, float(str_value) if str_value else value, numpy_dtype(dtype))
    by_row = input_dim_idx == output_dim_idx == 0
    return x.replace(out) if isinstance(x, Packed) and not x.offsets and by_row else out
