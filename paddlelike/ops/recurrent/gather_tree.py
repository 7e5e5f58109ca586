"""gather_tree: the sequences that a beam search chose, traced back through its steps."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, OpDef, Spec, register


@register
class GatherTree(OpDef):
    """``Out[t, n, b]``: step t of the sequence that ends in beam b, found backwards through Parents.

    Ids and Parents are (T, N, beams); Parents[t] says from which beam of step t - 1 each one comes.
    """

    type = "gather_tree"
    inputs = ("Ids", "Parents")

    @staticmethod
    def infer(ids: Spec, parents: Spec) -> Spec:
        if len(ids.shape) != 3 or len(parents.shape) != 3:
            raise ShapeError(
                f"gather_tree: Ids has shape {ids.shape}, Parents {parents.shape}; expected (T, N, beams)"
            )
        return Spec(ids.shape, ids.dtype)

    @staticmethod
    def forward(ids: Array, parents: Array) -> Array:
        out = np.empty_like(ids)
        beams = np.broadcast_to(np.arange(ids.shape[2]), ids.shape[1:])
        for step in range(len(ids) - 1, -1, -1):
            out[step] = np.take_along_axis(ids[step], beams, axis=1)
            beams = np.take_along_axis(parents[step], beams, axis=1)
        return out
