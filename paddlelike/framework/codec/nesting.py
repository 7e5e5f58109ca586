"""Check the nesting of the blocks of a decoded program, before other code walks through them.

Layers build a tree of blocks with a few levels. A file may contain cycles, thousands of levels, or blocks
that each level runs twice, which means 2**levels visits.
"""

from __future__ import annotations

from typing import Final

from paddlelike.errors import FormatError
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.program import Program

_MAX_LEVELS: Final = 100  # real programs have up to four
_MAX_PATHS: Final = 1000  # paths from a block to its outer blocks
_MAX_VISITS: Final = 10  # average visits of an operator by a walk into all blocks


def check(program: Program) -> None:
    """Raise FormatError unless every walk through the blocks ends within a bounded number of visits."""
    sizes: list[tuple[int, int]] = []  # levels and paths, by block
    for block in program.blocks:
        sizes.append(_measure(block, sizes))
    _Walk(program).run()


def _measure(block: Block, sizes: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the number of levels and of paths from a block to the outermost one."""
    if not -1 <= block.parent_idx < block.idx or not -1 <= block.forward_block_idx < block.idx:
        raise FormatError(
            f"block {block.idx} of the program has parent {block.parent_idx} and forward block "
            f"{block.forward_block_idx}; expected -1 or the index of an earlier block"
        )
    outer = [sizes[i] for i in (block.parent_idx, block.forward_block_idx) if i >= 0]
    levels = 1 + max((level for level, _ in outer), default=0)
    paths = 1 + sum(path for _, path in outer)
    if levels > _MAX_LEVELS or paths > _MAX_PATHS:
        raise FormatError(
            f"block {block.idx} of the program is {levels} levels deep, on {paths} paths; "
            f"at most {_MAX_LEVELS} levels and {_MAX_PATHS} paths are accepted"
        )
    return levels, paths


class _Walk:
    """A walk that enters each block once, and counts the visits of a walk that enters blocks repeatedly."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._limit = _MAX_VISITS * (1000 + sum(len(block.ops) for block in program.blocks))
        self._counts: dict[int, int] = {}  # operators visited, by block

    def run(self) -> None:
        for block in self._program.blocks:
            self._enter(block.idx, 0)

    def _enter(self, index: int, level: int) -> int:
        """Return the number of operators in a block and in the blocks it runs."""
        known = self._counts.get(index)
        if known is not None:
            return known
        if level > _MAX_LEVELS:  # also for a cycle
            raise FormatError(f"the blocks of the program run each other, over {_MAX_LEVELS} levels deep")
        ops = self._program.blocks[index].ops
        count = len(ops)
        for op in ops:
            for inner in self._find_inner(op):
                count += self._enter(inner, level + 1)
        if count > self._limit:
            raise FormatError(
                f"block {index} of the program runs {count} operators, most repeatedly; "
                f"at most {self._limit} are accepted"
            )
        self._counts[index] = count
        return count

    def _find_inner(self, op: Operator) -> list[int]:
        inner, count = op.sub_blocks(), len(self._program.blocks)
        invalid = [index for index in inner if not 0 < index < count]
        if invalid:
            raise FormatError(f"operator {op.type!r} runs block {invalid[0]}; the program has {count} blocks")
        return inner
