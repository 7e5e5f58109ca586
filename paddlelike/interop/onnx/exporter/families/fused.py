"""Fused operators."""

from __future__ import annotations

import numpy as np

from paddlelike.interop.onnx.exporter.graph import Step, converts
from paddlelike.interop.onnx.exporter.sequences import pad_rows


@converts("fused_embedding_seq_pool")
def _convert_embedding_pool(step: Step) -> str:
    lengths, width = step.lengths("Ids"), step.shape("W")[1]
    if step.attr("padding_idx", -1) != -1 or step.shape("Ids")[1] != 1:
        step.refuse("padding_idx is set, or a row has several ids")
    rows = step.add("Gather", step.input("W"), step.reshape(step.input("Ids"), -1), axis=0)
    batch = pad_rows(step.graph, rows, lengths, value=np.zeros((), step.dtype("W")))
    return step.reshape(step.reduce("ReduceSum", batch, [1], keep=False), -1, width)


@converts("fusion_seqpool_concat")
def _convert_pools(step: Step) -> str:
    """Concatenate the sums, or means, of the sequences of every input."""
    kind, parts = step.attr("pooltype"), []
    for name, rows in zip(step.op.input("X"), step.inputs("X"), strict=True):
        if kind not in ("SUM", "AVERAGE", "SQRT") or name not in step.graph.lengths:
            step.refuse(f"pooltype is {kind}, or {name} holds no sequences")
        lengths = step.graph.lengths[name]
        batch = pad_rows(step.graph, rows, lengths, value=np.zeros((), step.dtype()))
        out = step.reduce("ReduceSum", batch, [1], keep=False)
        count = step.unsqueeze(step.cast(lengths, step.dtype()), 1)
        if kind != "SUM":
            out = step.add("Div", out, count if kind == "AVERAGE" else step.add("Sqrt", count))
        parts.append(out)
    return step.add("Concat", *parts, axis=1)
