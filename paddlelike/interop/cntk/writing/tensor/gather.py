"""Rows by number, classes, and places of extremes. CNTK has whole numbers as real ones."""

from __future__ import annotations

from paddlelike.formats.cntk.dictionary import SizeT
from paddlelike.interop.cntk.writing.graph import Ref, Step, static_axis
from paddlelike.interop.cntk.writing.writers import writes


def _gather(step: Step, ids: Ref, table: Ref) -> Ref:
    return step.graph.add("Gather", [ids, table], shape=[*ids.shape, *table.shape[1:]], like=ids)


@writes("lookup_table", "lookup_table_v2")
def _write_embedding(step: Step) -> None:
    ids, table = step.ref("Ids"), step.ref("W")
    static = ids.shape[:-1] if step.op.type == "lookup_table" else ids.shape
    wide = ids if ids.rank else step.reshape(ids, [1])
    out = step.reshape(_gather(step, wide, table), [*static, table.shape[1]])
    padding = step.attr("padding_idx", -1)
    if padding != -1:
        row = padding % table.shape[0]
        others = step.binary("NotEqual", step.reshape(ids, [*static, 1]), step.number(row, ids))
        out = step.binary("ElementTimes", out, others)
    step.give("Out", out)


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


@writes("arg_max", "arg_min")
def _write_arg(step: Step) -> None:
    step.refuse_inputs("Axis")
    if step.attr("flatten", False):
        step.refuse("it flattens its input")
    x = step.ref()
    dim = step.static_dim(step.attr("axis"), x)
    how = "Argmax" if step.op.type == "arg_max" else "Argmin"
    step.give("Out", step.reduce(x, how, [dim], keep=bool(step.attr("keepdims", False))))


@writes("top_k")
def _write_top_k(step: Step) -> None:
    step.refuse_inputs("K")
    x, k = step.ref(), int(step.attr("k"))
    attributes = {"axis": static_axis(x.rank - 1, x.rank), "numItems": SizeT(k)}
    best = step.graph.add("TopK", [x], attributes, shape=[*x.shape[:-1], k])
    step.give("Out", best)
    step.give("Indices", best._replace(uid=best.uid.replace("_Output_0", "_Output_1")))


@writes("gather")
def _write_gather(step: Step) -> None:
    step.refuse_inputs("Axis")
    table, ids = step.ref(), step.ref("Index")
    if table.dynamic:
        step.refuse("it gathers samples")
    wide = ids if ids.rank else step.reshape(ids, [1])
    out = _gather(step, wide, table)
    static = ids.shape if ids.rank < 2 else ids.shape[:-1]  # (rows, 1) are as many as (rows)
    step.give("Out", step.reshape(out, [*([] if ids.dynamic else static), *table.shape[1:]]))
