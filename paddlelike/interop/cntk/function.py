"""A saved function of CNTK as a plain graph: blocks expanded, and primitive functions in order.

A layer is saved as a block: the functions in it read placeholders, which the block maps to values. Here
placeholders are replaced: every input of a function is an input of the model, a parameter, a constant, or an
output ``<uid>_Output_<index>`` of another primitive function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.errors import FormatError
from paddlelike.formats.cntk.dictionary import Shape
from paddlelike.formats.cntk.file import check_function, is_function
from paddlelike.interop.cntk.operations import NUMBERS

#: The attribute of a GatherPacked that chooses the first or last step: "FIRST" or "LAST".
CHOSEN: Final = "chosen"
INPUT, PARAMETER, CONSTANT, PLACEHOLDER = 0, 2, 3, 4

_BLOCK: Final = NUMBERS["Block"]
_COMBINE: Final = NUMBERS["Combine"]
_DELAYS: Final = (NUMBERS["PastValue"], NUMBERS["FutureValue"])
_OUTPUT: Final = "_Output_"
_KINDS: Final = {"uid": str, "op": int, "inputs": list, "attributes": dict}


class Leaf(NamedTuple):
    """An input, a parameter or a constant. ``shape`` has numpy's order, without dynamic axes."""

    uid: str
    kind: int
    name: str
    shape: tuple[int, ...]
    data_type: int
    dynamic: bool
    sequence: bool
    value: Any


class Node(NamedTuple):
    """A primitive function, whose ``inputs`` are resolved."""

    uid: str
    op: int
    name: str
    inputs: tuple[str, ...]
    attributes: dict[str, Any]


class Function:
    """The graph of a function.

    Attributes
    ----------
    leaves, nodes
        The leaves and the nodes by uid.
    outputs
        The uids of its outputs.
    output_names
        The names of layers by their outputs: ``{"Plus12_Output_0": "logits"}``.
    """

    def __init__(self, tree: Mapping[str, Any]) -> None:
        if not is_function(tree):
            raise FormatError(
                "the file is a dictionary of CNTK, but not a function",
                hint="a model is a .model, .dnn or .cmf; the .ckp beside it holds the state of training",
            )
        check_function(tree)
        self._blocks: dict[str, str] = {}  # the uid of a block -> the uid of the last function in it
        self._stands_for: dict[str, str] = {}  # placeholder -> the value that it stands for
        self._raw: dict[str, Node] = {}
        for one in tree["primitive_functions"]:
            self._add_function(one)
        self._shapes: dict[str, tuple[int, ...]] | None = None
        self._leaves = {leaf.uid: leaf for leaf in map(_read_leaf, tree["inputs"])}
        self.nodes = {
            node.uid: node._replace(inputs=tuple(self.resolve(uid) for uid in node.inputs))
            for node in self._raw.values()
            if node.op not in (_BLOCK, _COMBINE)
        }
        self._open_first_and_last()
        self.leaves = {uid: leaf for uid, leaf in self._leaves.items() if leaf.kind != PLACEHOLDER}
        self.outputs = self._find_outputs(tree["root"])
        self.output_names = self._find_names()
        self.name = str(tree.get("name", ""))

    def resolve(self, uid: str) -> str:
        """Return the leaf or output that ``uid`` stands for. Raises FormatError when there is none."""
        seen = set()
        while uid not in seen:
            seen.add(uid)
            if uid in self._stands_for:
                uid = self._stands_for[uid]
                continue
            owner, index = split_output(uid)
            node = self._raw.get(owner)
            if node is None:
                leaf = self._leaves.get(uid)
                if leaf is None or leaf.kind == PLACEHOLDER:
                    raise FormatError(f"{uid!r:.200} is not in the file")
                return uid
            if node.op == _BLOCK:
                uid = f"{self._blocks[owner]}{_OUTPUT}{index}"
            elif node.op == _COMBINE and index < len(node.inputs):
                uid = node.inputs[index]
            else:
                return uid
        raise FormatError(f"{uid!r:.200} refers to itself")

    def list_outer(self) -> Iterator[tuple[str, str]]:
        """Yield the uids outside blocks, which further functions can read, with their values."""
        inner, pending = set[str](), list(self._blocks.values())
        while pending:
            uid = pending.pop()
            if uid in self._raw and uid not in inner:
                inner.add(uid)
                pending += [split_output(one)[0] for one in self._raw[uid].inputs]
        yield from ((uid, uid) for uid in self.leaves)
        for uid, node in self._raw.items():
            if uid not in inner and node.op != _COMBINE:
                yield f"{uid}{_OUTPUT}0", self.resolve(f"{uid}{_OUTPUT}0")

    def order(self) -> Iterator[list[Node]]:
        """Yield the nodes that the outputs need, in groups: one node, or a loop of several through time.

        Raises FormatError for a loop within one step.
        """
        import networkx as nx

        graph: Any = nx.DiGraph()
        position = {uid: index for index, uid in enumerate(self.nodes)}
        for node in self.nodes.values():
            graph.add_node(node.uid)
            for owner in self.owners(node):
                graph.add_edge(owner, node.uid)
        needed = {owner for owner in (split_output(uid)[0] for uid in self.outputs) if owner in self.nodes}
        for uid in list(needed):
            needed |= nx.ancestors(graph, uid)
        condensed = nx.condensation(graph.subgraph(needed))
        members = {
            key: sorted(data["members"], key=position.__getitem__) for key, data in condensed.nodes(data=True)
        }
        for key in nx.lexicographical_topological_sort(condensed, key=lambda one: position[members[one][0]]):
            group = [self.nodes[uid] for uid in members[key]]
            self._check_loop(group)
            yield group

    def _check_loop(self, group: list[Node]) -> None:
        """Raise FormatError for functions that depend on themselves within one step of a sequence."""
        first = group[0]
        if first.uid in self.owners(first):
            raise FormatError(f"the function {first.uid!r:.200} takes its own output")
        if len(group) > 1 and not any(node.op in _DELAYS for node in group):
            names = ", ".join(node.uid for node in group[:5])
            raise FormatError(f"the functions {names} depend on each other in a circle")

    def find_shape(self, uid: str) -> tuple[int, ...] | None:
        """Return the static shape of a value, if its placeholder has one."""
        if self._shapes is None:
            self._shapes = {
                self.resolve(leaf.uid): leaf.shape
                for leaf in self._leaves.values()
                if leaf.uid in self._stands_for or split_output(leaf.uid)[0] in self._raw
            }
        return self._shapes.get(uid)

    def _open_first_and_last(self) -> None:
        """Join the five functions that select the first or last step of a sequence into one."""
        for uid, node in self.nodes.items():
            which = self._find_chosen(node)
            if which is not None:
                self.nodes[uid] = node._replace(inputs=node.inputs[:1], attributes={CHOSEN: which})

    def _find_chosen(self, node: Node) -> str | None:
        """Return which step GatherPacked selects: "FIRST", "LAST", or None for other steps."""
        chain = [node]
        for name in ("GatherPacked", "PackedIndex", "Where"):
            if chain[-1].op != NUMBERS[name] or not chain[-1].inputs:
                return None
            owner = self.nodes.get(split_output(chain[-1].inputs[-1])[0])
            if owner is None:
                return None
            chain.append(owner)
        where, moved = chain[2], chain[3]
        which = {NUMBERS["PastValue"]: "FIRST", NUMBERS["FutureValue"]: "LAST"}.get(moved.op)
        names = [f"newSequenceAxisLength{kind}Factor" for kind in ("Scaling", "Additive")]
        numbers = [*map(where.attributes.get, names), moved.attributes.get("offset")]
        if not all(isinstance(one, int) for one in numbers) or numbers != [0, 1, 1]:
            return None
        if which is None or len(moved.inputs) != 2:
            return None
        spread = self.nodes.get(split_output(moved.inputs[0])[0])
        if spread is None or spread.op != NUMBERS["ReconcileDynamicAxis"] or not spread.inputs:
            return None
        zero, one = self._leaves.get(spread.inputs[0]), self._leaves.get(moved.inputs[1])
        if zero is None or one is None or zero.value is None or one.value is None:
            return None
        return which if not zero.value.any() and (one.value == 1).all() else None

    def owners(self, node: Node) -> list[str]:
        """Return the nodes that compute the inputs of a node."""
        return [owner for owner in (split_output(uid)[0] for uid in node.inputs) if owner in self.nodes]

    def _add_function(self, one: Any) -> None:
        bad = [
            key
            for key, kind in _KINDS.items()
            if not isinstance(one, dict) or not isinstance(one.get(key), kind)
        ]
        if bad or not all(isinstance(uid, str) for uid in one["inputs"]):
            raise FormatError(f"a function in the file lacks {', '.join(bad) or 'the uid of an input'}")
        uid = one["uid"]
        if uid in self._raw:
            raise FormatError(f"two functions have the uid {uid!r:.200}")
        self._raw[uid] = Node(
            uid, one["op"], str(one.get("name", "")), tuple(one["inputs"]), one["attributes"]
        )
        if one["op"] != _BLOCK:
            return
        root = one.get("block_function_composite")
        keys = one.get("block_function_composite_arguments_map_keys")
        values = one.get("block_function_composite_arguments_map_values")
        good = isinstance(root, dict) and isinstance(root.get("root"), str)
        if not good or not isinstance(keys, list) or not isinstance(values, list) or len(keys) != len(values):
            raise FormatError(f"the block {uid!r:.200} has no contents")
        self._blocks[uid] = root["root"]
        self._stands_for.update(zip(map(str, keys), map(str, values), strict=True))

    def _find_outputs(self, root: str) -> list[str]:
        """Return the outputs of the last function; if that is a block, of the last function in it."""
        seen = set()
        while root in self._blocks and root not in seen:
            seen.add(root)
            root = self._blocks[root]
        node = self._raw.get(root)
        if node is None:
            raise FormatError(f"the file names {root!r:.200} as its last function, but does not hold it")
        if node.op == _COMBINE:
            return [self.resolve(uid) for uid in node.inputs]
        count = 2 if node.op == NUMBERS["TopK"] else 1
        return [f"{root}{_OUTPUT}{index}" for index in range(count)]

    def _find_names(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for node in self._raw.values():
            if node.name and node.op != _COMBINE:
                found[self.resolve(f"{node.uid}{_OUTPUT}0")] = node.name
        return found


def read_function(tree: Mapping[str, Any]) -> Function:
    """Return the graph of a function. Raises FormatError when something in it is missing."""
    return Function(tree)


def split_output(uid: str) -> tuple[str, int]:
    """Return the function and the index of an output; ``("", 0)`` for a leaf.

    >>> split_output("Plus7_Output_1")
    ('Plus7', 1)
    """
    owner, mark, index = uid.rpartition(_OUTPUT)
    return (owner, int(index)) if mark and index.isascii() and index.isdigit() and len(index) < 5 else ("", 0)


def _read_leaf(one: Any) -> Leaf:
    kinds = {"uid": str, "kind": int, "shape": Shape, "data_type": int, "dynamic_axis": list}
    bad = [
        key for key, kind in kinds.items() if not isinstance(one, dict) or not isinstance(one.get(key), kind)
    ]
    if bad:
        raise FormatError(f"an input of the function lacks {', '.join(bad)}")
    axes = one["dynamic_axis"]
    # CNTK writes an unknown dim as the largest number, or nearly so
    shape = tuple(-1 if dim >= 2**63 else int(dim) for dim in one["shape"])
    value = one.get("value")
    if one["kind"] in (PARAMETER, CONSTANT) and getattr(value, "shape", None) != shape:
        what = f"a value of shape {list(value.shape)}" if isinstance(value, np.ndarray) else "no value"
        raise FormatError(f"{one['uid']!r:.200} of shape {list(shape)!s:.80} has {what}")
    if one["kind"] not in (INPUT, PARAMETER, CONSTANT, PLACEHOLDER):
        raise FormatError(f"{one['uid']!r:.200} is an input of kind {one['kind']}, which CNTK does not have")
    return Leaf(
        one["uid"],
        int(one["kind"]),
        str(one.get("name", "")),
        shape,
        int(one["data_type"]),
        dynamic=bool(axes),
        sequence=any(getattr(axis, "ordered", False) for axis in axes),
        value=value,
    )
