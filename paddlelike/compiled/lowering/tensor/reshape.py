"""Shapes of tensors."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.values import Packed, Value


@lowers("shape", sequences=True, constants=True)
def shape(x: jax.Array | Packed) -> Value | np.ndarray[Any, Any]:
    if not isinstance(x, Packed) or x.full:
        return np.array(x.rows.shape if isinstance(x, Packed) else x.shape, np.int32)
    dims = jnp.array(x.rows.shape, jnp.int32)
    return dims.at[0].set(x.total.astype(jnp.int32))
