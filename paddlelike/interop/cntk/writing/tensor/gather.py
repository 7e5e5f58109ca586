"""Rows by number, classes, and places of extremes. CNTK has whole numbers as real ones."""

from __future__ import annotations

from paddlelike.formats.cntk.dictionary import SizeT
from paddlelike.interop.cntk.writing.graph import Ref, Step, static_axis
from paddlelike.interop.cntk.writing.writers import writes


def gather_rows(step: Step, ids: Ref, table: Ref) -> Ref:
    return step.graph.add("Gather", [ids, table], shape=[*ids.shape, *table.shape[1:]], like=ids)


@writes("one_hot", "one_hot_v2")
def _write_one_hot(step: Step) -> None:
    step.refuse_inputs("depth_tensor")
    ids, depth = step.ref(), int(step.attr("depth"))
    shape = list(ids.shape)
    if step.op.type == "one_hot" and shape[-1:] == [1]:
        ids = step.reshape(ids, shape[:-1] or [1])
    wide = ids if ids.rank else step.reshape(ids, [1])
    attributes = {
        "numClass": SizeT(depth),
        "oneHotOutputSparse": False,
        "onehotAxis": static_axis(wide.rank, wide.rank + 1),
    }
    out = step.graph.add("OneHot", [wide], attributes, shape=[*wide.shape, depth])
    static = shape[:-1] if step.op.type == "one_hot" and shape[-1:] == [1] else shape
    step.give("Out", step.reshape(out, [*static, depth]))


@writes("gather")
def _write_gather(step: Step) -> None:
    step.refuse_inputs("Axis")
    table, ids = step.ref(), step.ref("Index")
    if table.dynamic:
        step.refuse("it gathers samples")
    wide = ids if ids.rank else step.reshape(ids, [1])
    out = gather_rows(step, wide, table)
    static = ids.shape if ids.rank < 2 else ids.shape[:-1]  # (rows, 1) are as many as (rows)
    step.give("Out", step.reshape(out, [*([] if ids.dynamic else static), *table.shape[1:]]))


@writes("where")
def _write_where(step: Step) -> None:
    flag, x, y = step.ref("Condition"), step.ref(), step.ref("Y")
    step.give("Out", step.graph.add("Select", [flag, x, y], shape=x.shape, like=x))
