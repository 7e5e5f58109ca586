"""A block of a program as nodes and edges at several levels of detail: chains of layers, layers,
operators.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from paddlelike.framework import Block, Operator
from paddlelike.framework.graph.variable import HOLDERS
from paddlelike.inspection.layers import find_output, get_role, join_runs, name_layer
from paddlelike.inspection.layout import rank_by_longest_path
from paddlelike.lazy import dataclass

#: Operators of different roles stand in columns beside each other.
COLUMNS: Final = {"forward": 0, "backward": 1, "update": 2}
_SHORTER: Final = 0.7  # of the layers: at most so many chains
_PERIODS: Final = 16  # lengths of a repeated block that are tried
_KINDS: Final = {"forward": "operator", "backward": "gradient", "update": "update"}


class FlowNode(NamedTuple):
    """An operator, a layer, or an input.

    Attributes
    ----------
    label, detail
        Two lines of text.
    kind
        "input", "output", "layer", "operator", "gradient" or "update".
    operators
        Their indices in the block.
    role
        "forward", "backward" or "update".
    """

    label: str
    detail: str
    kind: str
    operators: tuple[int, ...] = ()
    role: str = "forward"


@dataclass(frozen=True)
class Flow:
    """Nodes, edges with the variables that they carry, and the row of every node.

    >>> Flow((FlowNode("a", "", "layer"), FlowNode("b", "", "layer")), {(0, 1): ("v",)}).ranks
    [0, 1]
    """

    nodes: tuple[FlowNode, ...]
    edges: dict[tuple[int, int], tuple[str, ...]]
    wanted: dict[int, int] | None = None  # of nodes beside the forward ones, the node whose row they want

    @property
    def ranks(self) -> list[int]:
        """The row of each node: gradients are beside their forward operators, updates beside gradients."""
        forward = [node.role == "forward" for node in self.nodes]
        ranks = rank_by_longest_path(
            len(self.nodes), [edge for edge in self.edges if forward[edge[0]] and forward[edge[1]]]
        )
        sources, readers = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
        for source, target in self.edges:
            if source < target:
                sources[target].append(source)
                readers[source].append(target)
        wanted = self.wanted or {}
        for node, (_, _, _, _, role) in enumerate(self.nodes):
            if role == "forward":
                continue
            before = [one for one in sources[node] if sources[one] or one in wanted]
            own = [ranks[one] for one in before if self.nodes[one].role == role]
            others = [ranks[one] for one in sources[node] if self.nodes[one].role != role]
            if role == "backward" and node in wanted:
                ranks[node] = ranks[wanted[node]]
            elif role == "backward":
                ranks[node] = min((rank - 1 for rank in own), default=max(others, default=0))
            elif role == "update":
                ranks[node] = max([*others, *(rank + 1 for rank in own)], default=0)
        for node, (_, _, _, _, role) in enumerate(self.nodes):
            if role != "forward" and not sources[node] and readers[node] and node not in wanted:
                ranks[node] = min(ranks[one] for one in readers[node]) - 1
        lowest = min(ranks, default=0)
        return [rank - lowest for rank in ranks]


def list_levels(block: Block) -> dict[str, Flow]:
    """Return a block at the levels "blocks", "chains", "layers" and "operators", coarse ones first.

    A level that shows hardly less is left out: "layers" if there are as many as operators, "chains" if they
    are hardly fewer than layers, "blocks" if nothing is repeated.

    >>> import paddlelike as fluid
    >>> main = fluid.Program()
    >>> with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
    ...     y = fluid.layers.fc(fluid.data("x", [None, 4]), 3, act="relu")
    >>> {name: [node.label for node in flow.nodes] for name, flow in list_levels(main.global_block()).items()}
    {'layers': ['x', 'fc_0'], 'operators': ['x', 'mul', 'elementwise_add', 'relu']}
    """
    facts = _Facts(block)
    operators = _draw_operators(facts)
    layers = _draw_layers(facts)
    levels = {"layers": layers, "operators": operators}
    if len(layers.nodes) >= len(operators.nodes):
        del levels["layers"]
    elif len((chains := _join_chains(facts, layers)).nodes) <= _SHORTER * len(layers.nodes):
        levels = {"chains": chains, **levels}
    finest = levels.get("layers", operators)
    folded = _fold_repeats(facts, finest)
    return levels if len(folded.nodes) == len(finest.nodes) else {"blocks": folded, **levels}


class _Facts:
    """The operators of a block with their role, main output, window and title, for every level."""

    def __init__(self, block: Block) -> None:
        self.block, self.ops = block, block.ops
        self.roles = [*map(get_role, block.ops)]
        self.outputs = [*map(find_output, block.ops)]
        self.windows = [_describe_window(block, op) for op in block.ops]
        self.titles = [
            f"{op.type} {it}" if it else op.type for op, it in zip(self.ops, self.windows, strict=True)
        ]

    def list_forward(self, node: FlowNode) -> list[int]:
        """Return the forward operators of a node."""
        return [index for index in node.operators if self.roles[index] == "forward"]


class _Drawing:
    """Nodes in the order of the program, and edges from the last writer of a variable to its readers."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.nodes: list[FlowNode] = []
        self.edges: dict[tuple[int, int], dict[str, None]] = defaultdict(dict)
        self.writers: dict[str, int] = {}

    def find_sources(self, op: Operator) -> dict[str, int]:
        """Return the node that writes each variable that an operator reads; new inputs become nodes."""
        found = {}
        for name in op.input_arg_names:
            if name not in self.writers:
                variable = self.block._find_var_recursive(name)
                if variable is None or variable.persistable or variable.type in HOLDERS:
                    continue
                self.writers[name] = self.add(FlowNode(name, str(list(variable.shape)), "input"))
            found[name] = self.writers[name]
        return found

    def add(self, node: FlowNode) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def finish(self, wanted: dict[int, int] | None = None) -> Flow:
        edges = {edge: tuple(names) for edge, names in self.edges.items() if edge[0] != edge[1]}
        return Flow(tuple(self.nodes), edges, wanted)


def _draw_operators(facts: _Facts) -> Flow:
    drawing, wanted = _Drawing(facts.block), {}
    for index, (op, role, output) in enumerate(zip(facts.ops, facts.roles, facts.outputs, strict=True)):
        sources = drawing.find_sources(op)
        kind = ("input" if op.type == "feed" else "output") if op.type in ("feed", "fetch") else _KINDS[role]
        detail = f"{facts.windows[index]} {'' if output is None else output.name}".strip()
        node = drawing.add(FlowNode(op.type, detail, kind, (index,), role))
        for name, source in sources.items():
            drawing.edges[source, node][name] = None
        if role == "backward":
            producer = find_producer(op, drawing.writers)
            if producer is not None:
                wanted[node] = producer
        for name in op.output_arg_names:
            drawing.writers[name] = node
    return drawing.finish(wanted)


def _draw_layers(facts: _Facts) -> Flow:
    """Return layers, each with the operators of its gradients and updates."""
    block = facts.block
    drawing = _Drawing(block)
    members: dict[int, list[int]] = defaultdict(list)
    readers: dict[str, int] = {}  # of persistables, the first layer that reads each
    others: dict[str, list[int]] = {"backward": [], "update": []}
    last = None
    for index, (op, role, output) in enumerate(zip(facts.ops, facts.roles, facts.outputs, strict=True)):
        if op.type == "feed":
            for name in op.output_arg_names:
                variable = block._find_var_recursive(name)
                shape = "" if variable is None else str(list(variable.shape))
                drawing.writers[name] = drawing.add(FlowNode(name, shape, "input", (index,)))
            continue
        if role != "forward":
            owner = _find_owner(op, role, drawing.writers, readers)
            (others[role] if owner is None else members[owner]).append(index)
            continue
        sources = drawing.find_sources(op)
        name = op.type if output is None or op.sub_blocks() else name_layer(output)
        if op.type == "fetch" and op.input_arg_names:  # a damaged one fetches nothing
            node = drawing.add(FlowNode(op.input_arg_names[0], "fetched", "output", (index,)))
        elif last is not None and drawing.nodes[last].label == name and not op.sub_blocks():
            node = last
        else:
            node = drawing.add(FlowNode(name, "", "layer"))
        last = node if op.type != "fetch" else None
        members[node].append(index)
        for read, source in sources.items():
            drawing.edges[source, node][read] = None
        for read in op.input_arg_names:
            readers.setdefault(read, node)
        for written in op.output_arg_names:
            drawing.writers[written] = node
    for role, indices in others.items():
        if indices:
            node = drawing.add(FlowNode("optimizer" if role == "update" else "gradients", "", "update"))
            members[node] = indices
    for node, indices in members.items():
        drawing.nodes[node] = _describe(facts, drawing.nodes[node], indices)
    return drawing.finish()


def _join_chains(facts: _Facts, layers: Flow) -> Flow:
    """Return layers in which each layer that only passes values on is joined to its predecessor."""
    before, after = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for source, target in layers.edges:
        before[target].append(source)
        after[source].append(target)
    heads = list(range(len(layers.nodes)))
    for node, one in enumerate(layers.nodes):
        if one.kind != "layer" or len(before[node]) != 1:
            continue
        (source,) = before[node]
        joins = layers.nodes[source].kind == "layer" and len(after[source]) == 1 and source < node
        if joins and not _has_matrix(facts, one):
            heads[node] = heads[source]
    return _join(facts, layers, heads)


def _fold_repeats(facts: _Facts, layers: Flow) -> Flow:
    """Return nodes in which each run of equal blocks, such as the twelve of an encoder, is one node."""
    kinds = [tuple(facts.ops[index].type for index in facts.list_forward(node)) for node in layers.nodes]
    forward = [place for place, node in enumerate(layers.nodes) if node.kind in ("layer", "operator")]
    heads, counts = list(range(len(layers.nodes))), {}
    todo = [forward]
    while todo:
        places = todo.pop()
        start, period, count = _find_repeat([kinds[place] for place in places])
        if count > 1:
            end = start + period * count
            counts[places[start]] = count
            for place in places[start:end]:
                heads[place] = places[start]
            todo += [places[:start], places[end:]]
    return _join(facts, layers, heads, counts)


def _find_repeat(kinds: list[tuple[str, ...]]) -> tuple[int, int, int]:
    """Return start, period and count of the run of equal blocks that covers most; a count of 1 means none.

    >>> _find_repeat([("a",), ("b",), ("c",), ("b",), ("c",), ("b",), ("c",), ("d",)])
    (1, 2, 3)
    """
    best, seen = (0, 0, 1), dict[tuple[tuple[str, ...], ...], int]()
    periods = Counter[int]()
    for place, pair in enumerate(itertools.pairwise(kinds)):
        periods[place - seen.get(pair, place)] += 1
        seen[pair] = place
    del periods[0]
    for period in sorted(one for one, _ in periods.most_common(_PERIODS + 1) if one > 1):
        equal = 0
        for place in range(len(kinds) - period):
            equal = equal + 1 if kinds[place] == kinds[place + period] else 0
            count = equal // period + 1
            if count > 1 and period * count > best[1] * best[2]:
                best = (place + 1 - equal, period, count)
    return best


def _join(facts: _Facts, layers: Flow, heads: list[int], counts: dict[int, int] | None = None) -> Flow:
    """Join layers with equal heads. ``counts`` is the number of equal blocks per head."""
    kept = sorted(set(heads))
    number = {node: place for place, node in enumerate(kept)}
    members: dict[int, list[int]] = defaultdict(list)
    for node, head in enumerate(heads):
        members[head].append(node)
    nodes = []
    for head in kept:
        first, joined = layers.nodes[head], [layers.nodes[node] for node in members[head]]
        if len(joined) > 1:
            indices = sorted(index for node in joined for index in node.operators)
            times = (counts or {}).get(head)
            label = f"{times} x " if times else ""
            last = joined[len(joined) // times - 1] if times else joined[-1]
            first = _describe(facts, first, indices)._replace(label=f"{label}{first.label} … {last.label}")
            if times:
                first = first._replace(
                    detail=f"{len(joined) // times} {first.kind}s each, {len(indices)} operators"
                )
        nodes.append(first)
    edges: dict[tuple[int, int], dict[str, None]] = defaultdict(dict)
    for (source, target), names in layers.edges.items():
        if heads[source] != heads[target]:
            edges[number[heads[source]], number[heads[target]]].update(dict.fromkeys(names))
    return Flow(tuple(nodes), {edge: tuple(names) for edge, names in edges.items()})


def _describe(facts: _Facts, node: FlowNode, indices: Iterable[int]) -> FlowNode:
    """Return a node with its operators; their forward types are the second line."""
    node = node._replace(operators=tuple(indices))
    if node.kind == "output":
        return node
    titles = tuple(facts.titles[index] for index in facts.list_forward(node))
    return node._replace(detail=join_runs(titles) if titles else f"{len(node.operators)} operators")


def _describe_window(block: Block, op: Operator) -> str:
    """Return kernel, stride, padding and groups of a convolution or pool, ``7x7 s2 p3``, or an empty text."""
    attrs = op.attrs
    if attrs.get("global_pooling"):
        return "global"
    if not isinstance(strides := attrs.get("strides"), list):
        return ""
    filters = [block._find_var_recursive(name) for name in op.inputs.get("Filter", ())]
    kernel = filters[0].shape[2:] if filters and filters[0] is not None else attrs.get("ksize")
    if not kernel:
        return ""
    words = ["x".join(map(str, kernel))]
    for letter, values, usual in (
        ("s", strides, 1), ("p", attrs.get("paddings") or [0], 0), ("d", attrs.get("dilations") or [1], 1)
    ):  # fmt: skip
        if any(value != usual for value in values):
            words.append(letter + "x".join(map(str, values if len(set(values)) > 1 else values[:1])))
    if attrs.get("groups", 1) > 1:
        words.append(f"g{attrs['groups']}")
    return " ".join(words)


def _find_owner(op: Operator, role: str, writers: dict[str, int], readers: dict[str, int]) -> int | None:
    """Return the layer that a gradient or an update belongs to."""
    for name in op.inputs.get("Param", ()):
        if name in readers:
            return readers[name]
    return find_producer(op, writers) if role == "backward" else None


def find_producer(op: Operator, writers: dict[str, int]) -> int | None:
    """Return the last node that writes a variable whose gradient the operator reads or, if none is read,
    writes.
    """
    for names in (op.input_arg_names, op.output_arg_names):
        found = [writers.get(name.partition("@GRAD")[0]) for name in names if "@GRAD" in name]
        known = [node for node in found if node is not None]
        if known:
            return max(known)
    return None


def _has_matrix(facts: _Facts, node: FlowNode) -> bool:
    """Return whether the forward operators read a persistable variable of two or more dims."""
    return any(
        variable.persistable and len(variable.shape) > 1
        for index in facts.list_forward(node)
        for variable in map(facts.block._find_var_recursive, facts.ops[index].input_arg_names)
        if variable is not None
    )
