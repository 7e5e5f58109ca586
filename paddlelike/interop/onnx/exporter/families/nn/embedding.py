"""Rows of tables by ids."""

from __future__ import annotations

from paddlelike.interop.onnx.exporter.converters import converts
from paddlelike.interop.onnx.exporter.graph import Step

_NO_PADDING = -1


@converts("lookup_table", "lookup_table_v2")
def _convert_lookup(step: Step) -> None:
    ids, rank, padding = step.input("Ids"), step.rank("Ids"), step.attr("padding_idx")
    if step.op.type == "lookup_table":
        ids = step.squeeze(ids, rank - 1)
    if padding == _NO_PADDING:
        step.give("Out", step.add("Gather", step.input("W"), ids, axis=0))
        return
    padded = step.add("Equal", ids, step.like(padding, "Ids"))
    rows = step.add("Where", padded, step.like(0, "Ids"), ids)  # the padding may be none of the rows
    out = step.add("Gather", step.input("W"), rows, axis=0)
    mask = step.add("Unsqueeze", padded, step.ints(-1))
    step.give("Out", step.add("Where", mask, step.like(0, "W"), out))
