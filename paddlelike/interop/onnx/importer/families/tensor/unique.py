"""Unique: distinct elements, their first indexes and counts."""

from __future__ import annotations

from paddlelike.core import VarType
from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.node import Node, reads


@reads("Unique")
def _read_unique(node: Node) -> None:
    if node.attr("axis") is not None and node.rank() > 1:
        node.refuse("it compares parts along an axis")
    flat, graph = node.input().reshape(-1), node.graph
    (ranked,) = graph.emit("argsort", {"X": flat}, {"axis": 0}, slot="Out")
    order = node.last_output("Indices")
    attrs = {"return_inverse": True, "return_counts": True, "dtype": int(VarType.INT64)}
    block = graph.program.current_block()
    outputs = {
        slot: block.create_var(name=graph.take_name("unique.out"), shape=(-1,), dtype=dtype)
        for slot, dtype in (("Out", node.dtype()), ("Index", "int64"), ("Counts", "int64"))
    }
    block.append_op(type="unique_consecutive", inputs={"X": [ranked]}, outputs=outputs, attrs=attrs)
    values, group, counts = (Expression(graph, one.name) for one in outputs.values())
    first = node.emit(
        "segment_pool", {"X": order, "SegmentIds": group}, pooltype="MIN", typed="int64", shaped=(-1,)
    )
    nothing = order.zeros()
    inverse = node.emit("scatter", {"X": nothing, "Ids": order, "Updates": group}, overwrite=True)
    if not node.attr("sorted", 1):  # in the order in which they come
        graph.emit("argsort", {"X": first}, {"axis": 0}, slot="Out")
        coming = node.last_output("Indices")
        graph.emit("argsort", {"X": coming}, {"axis": 0}, slot="Out")
        rank = node.last_output("Indices")
        values, first, counts = (one.gather(coming) for one in (values, first, counts))
        inverse = rank.gather(inverse)
    for index, one in enumerate((values, first, inverse, counts)):
        node.give(one, index)
