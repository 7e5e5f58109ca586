"""Sum, mean and update of many small parameters together.

For a small gradient, calling numpy takes longer than its arithmetic, and running an operator even longer. A
server stages the gradients of such parameters one after another in memory, so one call sums them all, and the
updates are joined too. Every element sees the same operations in the same order as in its own block, so the
results have the same bits.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from paddlelike.core import Array, LoDTensor, ScopeVariable
from paddlelike.distributed.placement import Kind
from paddlelike.distributed.server.fused_updates import PART, FusedUpdate, are_alike, are_numbers
from paddlelike.distributed.server.served import Served
from paddlelike.distributed.server.staging import Contribution
from paddlelike.framework import Block
from paddlelike.framework.opdef import Context, GroupKernel
from paddlelike.framework.passes.views import collect_reads, collect_writes

Member = tuple[int, int, FusedUpdate]  # the index of the gradient, the block, and its update


class GroupedUpdate:
    """The updates of some parameters by one optimizer.

    Parameters
    ----------
    at
        The index of this group in the staging.
    members
        Updates by one optimizer with equal attributes.

    Attributes
    ----------
    indexes
        The indexes of the gradients, in their order in memory.
    blocks
        The blocks that this replaces.
    """

    def __init__(self, at: int, members: Sequence[Member], kernel: GroupKernel) -> None:
        self.at = at
        self.indexes = [index for index, _, _ in members]
        self.blocks = frozenset(block for _, block, _ in members)
        self._updates = [update for _, _, update in members]
        self._kernel = kernel
        first = self._updates[0]
        self._scale = first.scale
        slots = [slot.name for slot in first.update.input_slots]
        elements = [name for name in first.update.list_elements(first.keywords) if name != "Grad"]
        others = [name for name in slots if name not in first.update.elements]
        given = [*elements, *others, "Grad"]
        # The inputs in the order of the slots; one that the formula leaves out has no value
        self._order = [given.index(name) if name in given else None for name in slots]
        self._numbers = {name for update in self._updates for name in update.others}
        self._moved = [name for one in self._updates for name in one.written if name not in one.elements]
        self._holders: list[list[ScopeVariable | None]] = []  # of the elements, by member
        self._fitting: list[list[Any]] = [[] for _ in members]  # the arrays that were found to fit

    def run(self, ctx: Context, contributions: Sequence[Contribution]) -> bool:
        """Update the parameters; return False, without an update, if a value has another kind.

        ``contributions`` are in the order of trainer ids; the first one's gradients become the mean.
        """
        if not contributions or not all(one.is_dense(self.indexes) for one in contributions):
            return False
        if not self._holders:
            self._holders = [[ctx.scope.find_var(name) for name in one.elements] for one in self._updates]
        tensors: list[list[Any]] = [
            [None if one is None else one.value for one in holders] for holders in self._holders
        ]
        numbers = {name: None if name is None else ctx.read(name) for name in self._numbers}
        others = [[numbers[name] for name in update.others] for update in self._updates]
        gradients = [contributions[0].dense[index] for index in self.indexes]
        if not self._do_fit(tensors, others, gradients):
            return False
        total = contributions[0].flats[self.at]
        for one in contributions[1:]:
            np.add(total, one.flats[self.at], out=total)
        if self._scale is not None:
            np.multiply(total, self._scale, out=total)
        given = zip(self._fitting, others, gradients, strict=True)
        if not self._kernel([self._list_inputs([*arrays, *rest, mean]) for arrays, rest, mean in given]):
            for update, gradient in zip(self._updates, gradients, strict=True):
                update.apply(ctx, gradient)
            return True
        for mine in tensors:
            for tensor in mine:
                tensor.touch()
        for name in self._moved:
            ctx.write(name, ctx.read(name))
        return True

    def _do_fit(self, tensors: list[list[Any]], others: list[list[Any]], gradients: Sequence[Array]) -> bool:
        """Return whether all values fit the formula; a positive answer is remembered for the same arrays."""
        for index, mine in enumerate(tensors):
            if any(type(tensor) is not LoDTensor for tensor in mine):
                return False
            arrays = [tensor.held_array for tensor in mine]
            fitting = self._fitting[index]
            if not fitting or not all(map(operator.is_, arrays, fitting)):
                if not are_alike([*arrays, gradients[index]]):
                    return False
                self._fitting[index] = arrays
        return all(map(are_numbers, others))

    def _list_inputs(self, given: list[Any]) -> list[Any]:
        """Return the arrays of the parameter, the other inputs and the gradient in the order of the slots."""
        return [None if at is None else given[at] for at in self._order]


def find_groups(served: Served, updates: dict[int, FusedUpdate]) -> list[GroupedUpdate]:
    """Return the groups of small parameters among the updates by block.

    Sparse gradients are in no group. A block is in no group if another block uses its variables (other than
    to read a learning rate).
    """
    blocks = served.op.block.program.blocks
    size: dict[int, int] = {}
    kinds: dict[str, list[Member]] = {}
    for entry in served.table.having(Kind.GRADIENT):
        block = served.blocks[entry.name]
        update = updates.get(block)
        size[entry.index] = int(np.prod(entry.shape))
        if update is None or size[entry.index] >= PART or entry.index in served.sparse:
            continue
        kind = update.update, sorted(update.keywords.items()), update.scale, entry.dtype
        kinds.setdefault(repr(kind), []).append((entry.index, block, update))
    users = _count_users([blocks[index] for index in served.op.attrs["optimize_blocks"]])
    groups: list[GroupedUpdate] = []
    for members in kinds.values():
        alone = [one for one in members if all(users.get(name) == 1 for name in one[2].written)]
        for batch in _split(alone, size):
            kernel = batch[0][2].update.make_group_kernel(batch[0][2].keywords)
            if kernel is not None:
                groups.append(GroupedUpdate(len(groups), batch, kernel))
    return groups


def _count_users(blocks: Sequence[Block]) -> dict[str, int]:
    """Return for each variable how many of the blocks read or write it."""
    counts: dict[str, int] = {}
    for block in blocks:
        for name in set().union(*(collect_reads(op) | collect_writes(op) for op in block.ops)):
            counts[name] = counts.get(name, 0) + 1
    return counts


def _split(members: Sequence[Member], size: dict[int, int]) -> list[list[Member]]:
    """Return the members in batches whose gradients fit into the processor's cache together."""
    batches: list[list[Member]] = []
    room = 0
    for one in members:
        if size[one[0]] > room:
            batches.append([])
            room = PART
        batches[-1].append(one)
        room -= size[one[0]]
    return batches
