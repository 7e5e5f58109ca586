"""segment_pool: reduce the rows of each id to one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from paddlelike.framework.opdef import Array, String
from paddlelike.ops.later import register_kernel

_REDUCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "SUM": np.sum, "MEAN": np.mean, "MAX": np.max, "MIN": np.min
}  # fmt: skip


@register_kernel("segment_pool", "X SegmentIds -> Out SummedIds?", {"pooltype": String("SUM")})
def _segment_pool(x: Array, ids: Array, *, pooltype: str) -> tuple[Array, None]:
    """Rows of one id made one: their sum, mean, maximum or minimum; zeros for ids that do not occur."""
    out = np.zeros((int(ids[-1]) + 1 if ids.size else 0, *x.shape[1:]), x.dtype)
    starts = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    for rows in np.split(np.arange(len(ids)), starts):
        if rows.size:
            out[ids[rows[0]]] = _REDUCTIONS[pooltype](x[rows], 0)
    return out, None
