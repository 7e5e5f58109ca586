"""A plan: a program bound to its kernels once, to be run many times.

Every variable gets a number, values live in a list by number. An operator becomes one function of that
list: its kernel with the attributes filled in, the numbers of its inputs and outputs. Temporaries are
let go right after their last reader; persistables are written into the scope as soon as they are computed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core.dtypes import TENSOR_DTYPES
from paddlelike.core.scope import Scope
from paddlelike.core.tensor import LoD, LoDTensor
from paddlelike.errors import EnforceNotMet, UnsupportedError
from paddlelike.executor.batches import bind_batch, group_batches, list_batched
from paddlelike.executor.binding import Run, Share, Store, bound, storer, taker
from paddlelike.executor.context import StepContext
from paddlelike.executor.frame import Frame
from paddlelike.executor.lifetimes import Aliases, initialized, last_uses
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator, OpRole
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.trust import check_trusted
from paddlelike.framework.graph.variable import HOLDERS, Variable
from paddlelike.framework.opdef import EMPTY, OpDef, arguments, registry
from paddlelike.framework.passes.views import collect_overwritten

__all__ = ["Fed", "Plan", "Step"]

Array = np.ndarray[Any, Any]
NOTHING: Final = 0  # number of the value that is always None: an absent input


class Step(NamedTuple):
    """One operator, bound."""

    run: Run
    op: Operator


class Fed(NamedTuple):
    """A variable that is fed."""

    variable: Variable
    number: int
    dtype: np.dtype[Any] | None  # None: it takes no arrays


class Plan:
    """A program bound for one choice of feeds and fetches.

    Raises UntrustedError for a program from bytes with operators that reach outside of it.
    """

    def __init__(
        self, program: Program, feeds: Sequence[str], fetches: Sequence[str], ops: Iterable[int] | None
    ) -> None:
        check_trusted(program)
        self.program = program
        self.feeds = tuple(feeds)
        self.fetches = tuple(fetches)
        self.size = 1
        self._numbers: list[dict[str, int]] = [{} for _ in program.blocks]
        self.persistables: dict[int, Variable] = {}
        self.uses_lod = False
        top = program.global_block()
        chosen = list(top.ops) if ops is None else [top.ops[i] for i in sorted(ops)]
        self.fetched_by_op = {op.attrs.get("col", 0): op.input("X")[0] for op in chosen if op.type == "fetch"}
        self.fed_by_op = {op.attrs.get("col", 0): op.output("Out")[0] for op in chosen if op.type == "feed"}
        chosen = [op for op in chosen if op.type not in ("feed", "fetch")]
        self.file_ops = list_batched(chosen)
        self.is_batch = bool(chosen) and len(self.file_ops) == len(chosen)  # nothing else to be analysed
        blocks = program.blocks[1:]
        self.uses_files = bool(self.file_ops) or any(list_batched(block.ops) for block in blocks)
        self._temporaries = set() if self.is_batch else {n for op in chosen for n in _temporaries(op)}
        self.reads: set[int] = set()
        self.fed: dict[str, Fed] = {}
        for name in (*self.feeds, *self.fed_by_op.values()):
            if top.has_var(name):
                variable, number = top.vars[name], self.number(top, name)
                row = TENSOR_DTYPES.get(variable.dtype)
                self.fed[name] = Fed(variable, number, None if row is None else row.numpy)
        self.aliases = Aliases(
            top, [] if self.is_batch else chosen, set(self.feeds) | set(self.fed_by_op.values())
        )
        self.blocks: dict[int, list[Step]] = {}  # of sub-blocks
        self._own: dict[int, tuple[int, ...]] = {}
        self._overwritten: dict[int, tuple[int, ...]] = {}
        self.earlier: dict[int, int] = {}  # for backward operators: where a value before a loop is found
        self.steps = self._bind_all(top, chosen)
        self.initializes = [] if self.is_batch else initialized(top, chosen)
        self.fetch_numbers = [self._fetch_number(top, name) for name in self.fetches]

    # Numbers

    def number(self, block: Block, name: str) -> int:
        """The number of a variable, seen from ``block``."""
        where = block._find_owner(name)
        if where is None:
            where = block.program.global_block()  # a name without a variable: the run's own
        if where.parent_idx >= 0:
            where = _home(where, name)
        mine = self._numbers[where.idx]
        found = mine.get(name)
        if found is None:
            found = mine[name] = self.size
            self.size += 1
            variable = where.vars.get(name)
            outlives = variable is not None and variable.persistable and name not in self._temporaries
            if variable is not None and outlives and variable.type not in HOLDERS:
                self.persistables[found] = variable
        return found

    def _fetch_number(self, block: Block, name: str) -> int:
        if block._find_var_recursive(name) is None and name not in self._numbers[0]:
            near = block._suggest_names(name)
            raise EnforceNotMet(f"fetch_list asks for {name!r}, which the program does not have", hint=near)
        return self.number(block, name)

    # Binding

    def _bind_all(self, block: Block, ops: list[Operator]) -> list[Step]:
        if self.is_batch:
            return [Step(bind_batch(block, run), run[0]) for run in group_batches(ops)]
        keep = {*self.fetches, *self.fetched_by_op.values()}
        dying = last_uses(block, ops, keep)
        return [self._bind(block, op, dying[i], i) for i, op in enumerate(ops)]

    def _bind_block(self, index: int) -> None:
        """Bind a sub-block; it works on the same values."""
        if index not in self.blocks:
            block = self.program.blocks[index]
            steps = self.blocks[index] = []
            steps.extend(self._bind(block, op, (), None) for op in block.ops)

    def own_numbers(self, index: int) -> tuple[int, ...]:
        """The numbers of a block's own variables, persistables apart."""
        found = self._own.get(index)
        if found is None:
            numbers = self._numbers[index].values()
            found = self._own[index] = tuple(n for n in numbers if n not in self.persistables)
        return found

    def overwritten_numbers(self, op: Operator) -> tuple[int, ...]:
        """The numbers of the variables that the block of ``op`` reads and then overwrites, counters apart."""
        found = self._overwritten.get(id(op))
        if found is None:
            names = sorted(collect_overwritten(op))
            found = self._overwritten[id(op)] = tuple(self.number(op.block, name) for name in names)
        return found

    def _bind_grad_block(self, op: Operator, index: int) -> None:
        """Bind the gradient of a block: it finds the values of each step in their places.

        Behind it, gradients read what the variables that the block overwrites held before it ran.
        """
        numbers = self.overwritten_numbers(op)
        for number in numbers:
            self.earlier.pop(number, None)
        self._bind_block(index)
        for number in numbers:
            self.earlier[number] = self.size
            self.size += 1

    def _bind(self, block: Block, op: Operator, dying: Iterable[str], place: int | None) -> Step:
        for index in op.sub_blocks():
            if op.type in ("while_grad", "conditional_block_grad"):
                self._bind_grad_block(op, index)
            else:
                self._bind_block(index)
        cls = registry.find_or_none(op.type)
        if cls is not None and hasattr(cls, "forward_many"):
            self._input_numbers(cls, op, block)
            self._store(cls, op, block, place)
            return Step(bind_batch(block, [op], self._dead_numbers(block, dying)), op)
        if cls is None or not hasattr(cls, "forward"):
            return Step(_cannot_run(op), op)
        for index in cls.more_blocks(op):
            self._bind_block(index)
        kernel = self._kernel(cls, op, block)
        numbers = self._input_numbers(cls, op, block)
        copied = self._inputs_to_copy(cls, op)
        store, target = self._store(cls, op, block, place)
        dead = self._dead_numbers(block, dying)
        share = self._share_lod(cls, op, block)
        if not cls.context:
            return Step(bound(kernel, numbers, copied, store, share, dead, target), op)
        take = taker(numbers, copied)

        def run(frame: Frame) -> None:
            values = frame.values
            if share is not None and frame.lods:
                share(frame.lods, None)  # before the kernel, which may know better
            store(frame, kernel(StepContext(frame, op, block), *take(values)))
            for number in dead:
                values[number] = None

        return Step(run, op)

    def _dead_numbers(self, block: Block, dying: Iterable[str]) -> tuple[int, ...]:
        """The numbers of the values that nothing needs after a step."""
        numbers = (self.number(block, name) for name in dying)
        return tuple(number for number in numbers if number not in self.persistables)

    def _kernel(self, cls: type[OpDef], op: Operator, block: Block) -> Callable[..., Any]:
        """The kernel with its attributes filled in."""
        keywords = cls.forward_keywords(op.attrs, op.outputs)
        return functools.partial(cls.forward, **keywords) if keywords else cls.forward

    def _input_numbers(self, cls: type[OpDef], op: Operator, block: Block) -> list[int | list[int]]:
        """The numbers of the inputs, one item per slot."""
        earlier = self.earlier if op.attrs.get("op_role", 0) & OpRole.Backward else {}

        def number(name: str) -> int:
            found = self.number(block, name)
            return earlier.get(found, found)

        numbers: list[int | list[int]] = arguments(cls.input_slots, op.inputs, number, NOTHING)
        for slot, read in zip(cls.input_slots, numbers, strict=True):
            if not slot.name.endswith("@GRAD"):
                self.reads.update(read if isinstance(read, list) else [read])
        return numbers

    def _inputs_to_copy(self, cls: type[OpDef], op: Operator) -> frozenset[int]:
        """Inputs that the kernel would overwrite although the operator writes somewhere else."""
        copied = set()
        slots = [slot.name for slot in cls.input_slots]
        for out, source in cls.inplace.items():
            if op.inputs.get(source) and op.outputs.get(out) != op.inputs[source]:
                copied.add(slots.index(source))
        return frozenset(copied)

    def _store(
        self, cls: type[OpDef], op: Operator, block: Block, place: int | None
    ) -> tuple[Store, int | None]:
        """A function that puts the results where they belong; the number of a result that is just a value."""
        targets: list[int | list[int]] = arguments(
            cls.output_slots, op.outputs, lambda name: self.number(block, name), -1
        )
        copies = cls.views and (place is None or self.aliases.must_copy(place))
        flat = [n for target in targets for n in (target if isinstance(target, list) else [target])]
        kept = frozenset(n for n in flat if n in self.persistables)
        several = [slot.several for slot in cls.output_slots]
        store = storer(targets, several=several, kept=kept, copies=copies, fresh=cls.fresh)
        only = targets[0] if len(targets) == 1 else None
        plain = isinstance(only, int) and only >= 0 and not kept and not copies
        return store, only if plain and isinstance(only, int) else None

    def _share_lod(self, cls: type[OpDef], op: Operator, block: Block) -> Share | None:
        """A function that hands the LoD of an input on to the outputs, or None.

        Given the results, it leaves out those with another number of rows (reshape, split, ...).
        """
        pairs = []
        single = len(cls.output_slots) == 1
        for index, slot in enumerate(cls.output_slots):
            names = op.inputs.get(cls.lod_source(slot.name) or "")
            if not names:
                continue
            for item, out in enumerate(op.outputs.get(slot.name, [])):
                path = (() if single else (index,)) + ((item,) if slot.several else ())
                if out != EMPTY:
                    pairs.append((self.number(block, names[0]), self.number(block, out), path))
        if not pairs:
            return None

        def share(lods: dict[int, LoD], result: Any) -> None:
            for source, target, path in pairs:
                lod = lods.get(source)
                if lod and (result is None or _has_rows(result, path, lod[-1][-1])):
                    lods[target] = lod
                else:
                    lods.pop(target, None)

        return share

    # Running

    def begin(self, scope: Scope, services: dict[str, Any]) -> Frame:
        """A frame that holds the persistables of ``scope``."""
        frame = Frame(self, scope, services)
        for number, variable in self.persistables.items():
            holder = scope.find_var(variable.name)
            if holder is None:
                holder = scope.var(variable.name)
            frame.holders[number] = holder
            value = holder.value
            if isinstance(value, LoDTensor):
                frame.values[number] = value.array
                if value._lod:
                    frame.lods[number] = value._lod
            else:
                frame.values[number] = value
        return frame


def _has_rows(result: Any, path: tuple[int, ...], rows: int) -> bool:
    """Whether the value at ``path`` in a kernel's result is an array of so many rows."""
    for index in path:
        result = result[index]
    return isinstance(result, np.ndarray) and result.shape[:1] == (rows,)


def _home(block: Block, name: str) -> Block:
    """The outermost block that declares a persistable of ``block``: a scope has one value of each name.

    Programs of parameter servers declare what a schedule's sub-blocks use once more in those.
    """
    home, around = block, block if block.vars[name].persistable else None
    while around is not None:
        declared = around.vars.get(name)
        if declared is not None and declared.persistable:
            home = around
        around = around.parent
    return home


def _temporaries(op: Operator) -> set[str]:
    cls = registry.find_or_none(op.type)
    return set() if cls is None else cls.temporaries(op)


def _cannot_run(op: Operator) -> Callable[[Frame], None]:
    def run(frame: Frame) -> None:
        raise UnsupportedError(
            f"operator {op.type!r} cannot be run here",
            hint="the program can be printed, pruned, converted and saved; prune it to targets that do "
            "not need this operator to run the rest",
        )

    return run
