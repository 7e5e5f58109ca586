"""Losses, where ONNX does not define them by other operators."""

from __future__ import annotations

import numpy as np

from paddlelike.core import VarType
from paddlelike.interop.onnx.importer.families.elementwise.binary import compare
from paddlelike.interop.onnx.importer.node import Node, reads


@reads("NegativeLogLikelihoodLoss")
def _read_nll(node: Node) -> None:
    """Compute the negative element of the true class times its weight."""
    rank, classes, reduction = node.rank(), node.dims()[1], node.attr("reduction", "mean")
    if classes < 0:
        node.refuse("the number of classes is not known")
    x = node.input().transpose([0, *range(2, rank), 1])
    label, ignored = node.input(1).cast(VarType.INT64), node.attr("ignore_index")
    options = {"depth": classes, "dtype": int(VarType.FP32), "allow_out_of_range": True}
    share = node.emit("one_hot_v2", label, **options).cast(node.dtype())
    if node.has(2):
        share = share * node.input(2)
    if ignored is not None:
        counts = compare(node, "not_equal", label, node.constant([ignored], np.int64))
        share = share * counts.cast(node.dtype()).unsqueeze(rank - 1)
    loss = (x * share).reduce("sum", rank - 1, keep=False).scale(-1.0)
    if reduction == "none":
        node.give(loss)
        return
    total = node.emit("reduce_sum", loss, reduce_all=True, keep_dim=False)
    if reduction == "mean":
        weight = node.emit("reduce_sum", share, reduce_all=True, keep_dim=False)
        total = total / weight
    node.give(total)
