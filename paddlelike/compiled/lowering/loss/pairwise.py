"""Losses of pairs."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers


@lowers("rank_loss")
def rank_loss(label: Any, left: Any, right: Any) -> Any:
    gap = left - right
    return jnp.logaddexp(0, gap) - label * gap
