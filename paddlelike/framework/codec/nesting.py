"""How the blocks of a program that was read lie in each other, checked before anybody walks through them.

Operators run blocks, and blocks see the variables of the blocks around them. A program that was built here is
a tree of a few levels; one from a file may say anything: circles, thousands of levels, or blocks that are run
twice by each level, which is 2**levels in all.
"""

from __future__ import annotations

from typing import Final

from paddlelike.errors import FormatError
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.program import Program

__all__ = ["check"]

_DEEPEST: Final = 100  # levels; real programs have up to four
_WIDEST: Final = 1000  # blocks around a block, each counted on every way that leads to it
_AGAIN: Final = 10  # how often an operator may be met, on average, by a walk into all blocks


def check(program: Program) -> None:
    """Raise FormatError unless every walk through the blocks comes to an end, and soon."""
    around: list[tuple[int, int]] = []  # of each block: levels, ways
    for block in program.blocks:
        around.append(_around(block, around))
    _Walk(program).run()


def _around(block: Block, before: list[tuple[int, int]]) -> tuple[int, int]:
    if not -1 <= block.parent_idx < block.idx or not -1 <= block.forward_block_idx < block.idx:
        raise FormatError(
            f"block {block.idx} of the program says that it is inside block {block.parent_idx} and the "
            f"gradient of block {block.forward_block_idx}; both come before it, or are -1"
        )
    outer = [before[i] for i in (block.parent_idx, block.forward_block_idx) if i >= 0]
    levels = 1 + max((level for level, _ in outer), default=0)
    ways = 1 + sum(way for _, way in outer)
    if levels > _DEEPEST or ways > _WIDEST:
        raise FormatError(f"block {block.idx} of the program lies {levels} levels deep, on {ways} ways")
    return levels, ways


class _Walk:
    """Goes into every block that operators run, each once, and counts what a plain walk would meet."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._most = _AGAIN * (1000 + sum(len(block.ops) for block in program.blocks))
        self._met: dict[int, int] = {}  # operators, by block

    def run(self) -> None:
        for block in self._program.blocks:
            self._enter(block.idx, 0)

    def _enter(self, index: int, level: int) -> int:
        """The number of operators in a block and in those it runs."""
        known = self._met.get(index)
        if known is not None:
            return known
        if level > _DEEPEST:  # a circle has no end
            raise FormatError(f"the blocks of the program run each other, more than {_DEEPEST} levels deep")
        ops = self._program.blocks[index].ops
        count = len(ops)
        for op in ops:
            for inner in self._inner(op):
                count += self._enter(inner, level + 1)
        if count > self._most:
            raise FormatError(f"block {index} of the program runs {count} operators, most again and again")
        self._met[index] = count
        return count

    def _inner(self, op: Operator) -> list[int]:
        inner, count = op.sub_blocks(), len(self._program.blocks)
        wrong = [index for index in inner if not 0 < index < count]
        if wrong:
            raise FormatError(f"operator {op.type!r} runs block {wrong[0]}; the program has {count} blocks")
        return inner
