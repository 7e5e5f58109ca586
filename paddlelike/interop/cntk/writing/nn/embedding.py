"""Rows of tables by ids."""

from __future__ import annotations

from paddlelike.interop.cntk.writing.graph import Step
from paddlelike.interop.cntk.writing.tensor.gather import gather_rows
from paddlelike.interop.cntk.writing.writers import writes


@writes("lookup_table", "lookup_table_v2")
def _write_embedding(step: Step) -> None:
    ids, table = step.ref("Ids"), step.ref("W")
    static = ids.shape[:-1] if step.op.type == "lookup_table" else ids.shape
    wide = ids if ids.rank else step.reshape(ids, [1])
    out = step.reshape(gather_rows(step, wide, table), [*static, table.shape[1]])
    padding = step.attr("padding_idx", -1)
    if padding != -1:
        row = padding % table.shape[0]
        others = step.binary("NotEqual", step.reshape(ids, [*static, 1]), step.number(row, ids))
        out = step.binary("ElementTimes", out, others)
    step.give("Out", out)
