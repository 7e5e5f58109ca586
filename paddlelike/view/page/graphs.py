"""Programs as a page shows them: every block with its operators, and their positions at each level of
detail.
"""

from __future__ import annotations

from typing import Any, Final

from paddlelike.framework import Block, Operator, Program, variable_kind
from paddlelike.framework.graph.variable import TENSOR_LIKE
from paddlelike.inspection.flow import COLUMNS, Flow, list_levels
from paddlelike.inspection.layers import get_role
from paddlelike.inspection.layout import Box, place_nodes

_CHARACTER: Final = 7.0  # pixels: a little more than the mean width in the font of the page
_HEIGHT: Final = 40.0
_LONGEST: Final = 34  # characters of a line in a node
_LONGEST_VALUE: Final = 200
_BOOKKEEPING: Final = ("op_role", "op_role_var", "op_namescope", "op_callstack", "op_device")


def collect_program(name: str, program: Program) -> dict[str, Any]:
    """Return a program as JSON values.

    "attrs" of an operator is an index into the list "attrs" of its block. A node of a level is ``[x, y,
    width, label, detail, kind, operators]``, an edge ``[source, target, names, points]``; x and y are the
    position of the middle, in pixels. A straight edge has an empty list of points.
    """
    operators = [op for block in program.blocks for op in block.ops]
    return {
        "name": name,
        "version": program._version,
        "feeds": [one for op in operators if op.type == "feed" for one in op.output_arg_names],
        "fetches": [one for op in operators if op.type == "fetch" for one in op.input_arg_names],
        "blocks": [_collect_block(block) for block in program.blocks],
    }


def _collect_block(block: Block) -> dict[str, Any]:
    attrs = dict[str, tuple[int, dict[str, str]]]()  # equal ones once
    return {
        "index": block.idx,
        "parent": block.parent_idx,
        "operators": [_collect_operator(op, attrs) for op in block.ops],
        "attrs": [shown for _, shown in attrs.values()],
        "variables": {
            one.name: [variable_kind(one), one.dtype.name, list(one.shape)]
            for one in block.vars.values()
            if one.type in TENSOR_LIKE
        },
        "levels": {level: _collect_level(flow) for level, flow in list_levels(block).items()},
    }


def _collect_operator(op: Operator, attrs: dict[str, tuple[int, dict[str, str]]]) -> dict[str, Any]:
    own = {name: value for name, value in op.attrs.items() if name not in _BOOKKEEPING}
    if (key := repr(own)) not in attrs:
        attrs[key] = len(attrs), {name: _shorten(own[name]) for name in sorted(own)}
    return {
        "type": op.type,
        "role": get_role(op),
        "inputs": {slot: names for slot, names in op.inputs.items() if names},
        "outputs": {slot: names for slot, names in op.outputs.items() if names},
        "attrs": attrs[key][0],
        "blocks": list(op.sub_blocks()),
    }


def _collect_level(flow: Flow) -> dict[str, Any]:
    texts = [(_cut(node.label), _cut(node.detail)) for node in flow.nodes]
    boxes = [
        Box(round(24 + _CHARACTER * max(len(label), len(detail) * 0.9)), _HEIGHT, COLUMNS[node.role])
        for (label, detail), node in zip(texts, flow.nodes, strict=True)
    ]
    place = place_nodes(boxes, list(flow.edges), flow.ranks)
    nodes = [
        [round(x), round(y), box.width, *text, node.kind, node.operators]
        for node, box, text, (x, y) in zip(flow.nodes, boxes, texts, place.centers, strict=True)
    ]
    edges = [
        [*edge, names, [round(part) for point in path for part in point] if len(path) > 2 else None]
        for (edge, names), path in zip(flow.edges.items(), place.paths, strict=True)
    ]
    return {"width": place.width, "height": place.height, "row": _HEIGHT, "nodes": nodes, "edges": edges}


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"
