"""What a plan must know of values: their last uses, shared memory, first values."""

from __future__ import annotations

from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.opdef import EMPTY, registry
from paddlelike.framework.passes.views import collect_reads, collect_writes

__all__ = ["Aliases", "initialized", "is_persistable", "last_uses"]


def last_uses(block: Block, ops: list[Operator], keep: set[str]) -> list[list[str]]:
    """For each operator the temporaries that nothing needs after it."""
    dying: list[list[str]] = [[] for _ in ops]
    seen = set(keep)
    for i in range(len(ops) - 1, -1, -1):
        for name in collect_reads(ops[i]) | collect_writes(ops[i]):
            if name not in seen and name != EMPTY:
                seen.add(name)
                dying[i].append(name)
    return dying


class Aliases:
    """Which outputs share memory with a variable that is overwritten later in the same run."""

    def __init__(self, block: Block, ops: list[Operator], fed: set[str]) -> None:
        roots: dict[str, set[str]] = {}  # of a view: the variables whose memory it may share
        viewed: list[tuple[int, set[str]]] = []
        overwritten: dict[str, int] = {}
        for place, op in enumerate(ops):
            cls = registry.find_or_none(op.type)
            inner = op.sub_blocks() != []
            if cls is None:
                continue
            changed = {n for out in cls.inplace for n in op.outputs.get(out, ())}
            for name in collect_writes(op):
                variable = block._find_var_recursive(name)
                if name in changed or inner or (variable is not None and variable.persistable):
                    overwritten.update(dict.fromkeys({name, *roots.get(name, ())}, place))
            if cls.views:
                shared = {root for name in op.input_arg_names for root in roots.get(name, {name})}
                roots.update(dict.fromkeys(op.output_arg_names, shared))
                viewed.append((place, shared))
        self._copy_at = {
            place for place, shared in viewed if any(overwritten.get(name, -1) > place for name in shared)
        }
        self.overwrites_feed = fed & set(overwritten)
        self.of_kept = {
            name
            for name, shared in roots.items()
            if any(source in fed or is_persistable(block, source) for source in shared)
        }  # fmt: skip

    def must_copy(self, place: int) -> bool:
        """Whether the outputs of the operator there must get memory of their own."""
        return place in self._copy_at


def is_persistable(block: Block, name: str) -> bool:
    variable = block._find_var_recursive(name)
    return variable is not None and variable.persistable


def initialized(block: Block, ops: list[Operator]) -> list[str]:
    """The persistables that operators without inputs write: what a startup program gives first values."""
    return [
        name
        for op in ops
        if not op.input_arg_names and op.type not in ("load", "load_combine")
        for name in op.output_arg_names
        if is_persistable(block, name)
    ]
