"""Fused operators."""

from __future__ import annotations

import numpy as np

from paddlelike.interop.onnx.exporter.graph import Step, Value, converts
from paddlelike.interop.onnx.exporter.sequences import pad_rows


@converts("fused_embedding_seq_pool")
def _convert_embedding_pool(step: Step) -> Value:
    lengths, width = step.lengths("Ids"), step.shape("W")[1]
    if step.attr("padding_idx", -1) != -1 or step.shape("Ids")[1] != 1:
        step.refuse("padding_idx is set, or a row has several ids")
    rows = step.input("W").take(step.input("Ids").reshape(-1))
    batch = pad_rows(rows, lengths, value=np.zeros((), step.dtype("W")))
    return batch.reduce("ReduceSum", 1).reshape(-1, width)


@converts("fusion_seqpool_concat")
def _convert_pools(step: Step) -> Value:
    """Concatenate the sums, or means, of the sequences of every input."""
    kind, parts = step.attr("pooltype"), []
    for name, rows in zip(step.op.input("X"), step.inputs("X"), strict=True):
        if kind not in ("SUM", "AVERAGE", "SQRT") or name not in step.graph.lengths:
            step.refuse(f"pooltype is {kind}, or {name} holds no sequences")
        lengths = step.graph.lengths[name]
        batch = pad_rows(rows, lengths, value=np.zeros((), step.dtype()))
        out = batch.reduce("ReduceSum", 1)
        count = lengths.cast(step.dtype()).unsqueeze(1)
        if kind != "SUM":
            out = out / (count if kind == "AVERAGE" else step.add("Sqrt", count))
        parts.append(out)
    return step.concat(*parts, axis=1)
