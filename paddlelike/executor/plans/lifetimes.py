"""Lifetimes of values in a plan: last uses, shared memory, initial values."""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.framework import Block, Operator
from paddlelike.framework.opdef import EMPTY, registry
from paddlelike.framework.passes.views import collect_writes


def find_last_uses(uses: Sequence[set[str]], keep: set[str]) -> list[list[str]]:
    """Return for each operator the variables that no later operator uses, without those in ``keep``.

    ``uses`` are the variables that each operator reads or writes.
    """
    dying: list[list[str]] = [[] for _ in uses]
    seen = set(keep)
    for i in range(len(uses) - 1, -1, -1):
        for name in uses[i]:
            if name not in seen and name != EMPTY:
                seen.add(name)
                dying[i].append(name)
    return dying


def find_last_values(
    block: Block, ops: list[Operator], uses: Sequence[set[str]], dying: list[list[str]]
) -> list[list[str]]:
    """Return, for each operator, the variables that later operators read only for their shape and dtype.

    ``uses`` are the variables that each operator reads or writes, ``dying`` the last uses of any kind.
    """
    last = {name: index for index, names in enumerate(dying) for name in names}
    found: list[list[str]] = [[] for _ in ops]
    for i in range(len(ops) - 1, -1, -1):
        cls = registry.find_for_version(ops[i].type, block.program.paddle_version)
        shaped = set() if cls is None else {name for slot in cls.shapes_of for name in ops[i].input(slot)}
        if cls is not None and shaped:
            shaped -= {n for slot, names in ops[i].inputs.items() if slot not in cls.shapes_of for n in names}
        for name in uses[i] - shaped:
            if last.pop(name, i) > i:
                found[i].append(name)
    return found


class Aliases:
    """The outputs that share memory with a variable that is overwritten later in the same run."""

    def __init__(self, block: Block, ops: list[Operator], fed: set[str]) -> None:
        roots: dict[str, set[str]] = {}  # by view: the variables whose memory it may share
        viewed: list[tuple[int, set[str]]] = []
        overwritten: dict[str, int] = {}
        for index, op in enumerate(ops):
            cls = registry.find_for_version(op.type, block.program.paddle_version)
            inner = op.sub_blocks() != []
            if cls is None:
                continue
            changed = {n for out in cls.inplace for n in op.outputs.get(out, ())}
            for name in collect_writes(op):
                variable = block._find_var_recursive(name)
                if name in changed or inner or (variable is not None and variable.persistable):
                    overwritten.update(dict.fromkeys({name, *roots.get(name, ())}, index))
            if cls.views:
                read = {n for slot, ns in op.inputs.items() if slot not in cls.shapes_of for n in ns}
                shared = {root for name in read for root in roots.get(name, {name})}
                roots.update(dict.fromkeys(op.output_arg_names, shared))
                viewed.append((index, shared))
        self._copy_at = {
            index for index, shared in viewed if any(overwritten.get(name, -1) > index for name in shared)
        }
        self.overwrites_feed = fed & set(overwritten)
        self.views_of_kept = {
            name
            for name, shared in roots.items()
            if any(source in fed or is_persistable(block, source) for source in shared)
        }  # fmt: skip

    def must_copy(self, index: int) -> bool:
        """Return whether the outputs of the operator at ``index`` must have memory of their own."""
        return index in self._copy_at


def is_persistable(block: Block, name: str) -> bool:
    """Return whether a name means a persistable in a block."""
    variable = block._find_var_recursive(name)
    return variable is not None and variable.persistable


def find_initialized(block: Block, ops: list[Operator]) -> list[str]:
    """Return the persistables that operators without inputs write, as in a startup program."""
    return [
        name
        for op in ops
        if not op.input_arg_names and op.type not in ("load", "load_combine")
        for name in op.output_arg_names
        if is_persistable(block, name)
    ]
