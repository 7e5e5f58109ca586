"""The layout of a plan's values: every variable of a program has a position in one list."""

from __future__ import annotations

from paddlelike.framework import Block, Operator, Program, Variable
from paddlelike.framework.graph.variable import HOLDERS
from paddlelike.framework.passes.views import collect_overwritten

NOTHING = 0  # position of a value that is always None, for absent inputs


class Layout:
    """Positions of variables, assigned at their first use.

    Parameters
    ----------
    program
        The program whose variables these are.
    temporaries
        Variables marked persistable whose values need not outlive a run.

    Attributes
    ----------
    persistables : dict
        The variables that live in the scope, by position.
    reads : set
        The positions that any operator reads.
    earlier : dict
        For the position of each variable, the position of its value before the loop; gradients of earlier
        operators read it.
    """

    def __init__(self, program: Program, temporaries: set[str]) -> None:
        self.size = 1
        self.persistables: dict[int, Variable] = {}
        self.reads: set[int] = set()
        self.earlier: dict[int, int] = {}
        self._temporaries = temporaries
        self._positions: list[dict[str, int]] = [{} for _ in program.blocks]
        self._meanings: list[dict[str, int]] = [{} for _ in program.blocks]  # of names seen in each block
        self._own: dict[int, tuple[int, ...]] = {}
        self._overwritten: dict[int, tuple[int, ...]] = {}

    def get_position(self, block: Block, name: str) -> int:
        """Return the position of the variable ``name`` in ``block``, a new position at its first use."""
        meanings = self._meanings[block.idx]
        found = meanings.get(name)
        if found is None:
            found = meanings[name] = self._find_position(block, name)
        return found

    def _find_position(self, block: Block, name: str) -> int:
        owner = block._find_owner(name)
        if owner is None:
            owner = block.program.global_block()  # for a name that has no variable
        if owner.parent_idx >= 0:
            owner = _find_home(owner, name)
        positions = self._positions[owner.idx]
        found = positions.get(name)
        if found is None:
            found = positions[name] = self.add_position()
            variable = owner.vars.get(name)
            outlives = variable is not None and variable.persistable and name not in self._temporaries
            if variable is not None and outlives and variable.type not in HOLDERS:
                self.persistables[found] = variable
        return found

    def add_position(self) -> int:
        """Return a new position that belongs to no variable."""
        self.size += 1
        return self.size - 1

    def has_position(self, name: str) -> bool:
        """Return whether a name has a position in the outermost block."""
        return name in self._positions[0]

    def get_own_positions(self, index: int) -> tuple[int, ...]:
        """Return the positions of a block's own variables that are not persistable."""
        found = self._own.get(index)
        if found is None:
            positions = self._positions[index].values()
            found = self._own[index] = tuple(n for n in positions if n not in self.persistables)
        return found

    def get_overwritten_positions(self, op: Operator) -> tuple[int, ...]:
        """Return the positions of the variables that the block of ``op`` reads and then overwrites.

        Counters are not among them.
        """
        found = self._overwritten.get(id(op))
        if found is None:
            names = sorted(collect_overwritten(op))
            found = self._overwritten[id(op)] = tuple(self.get_position(op.block, name) for name in names)
        return found


def _find_home(block: Block, name: str) -> Block:
    """Return the outermost block that declares a persistable of ``block``: a scope has one value per name.

    Programs of parameter servers declare a schedule's variables again in its sub-blocks.
    """
    home, outer = block, block if block.vars[name].persistable else None
    while outer is not None:
        declared = outer.vars.get(name)
        if declared is not None and declared.persistable:
            home = outer
        outer = outer.parent
    return home
