"""A plan: a program bound to its kernels once, to be run many times.

Every variable gets a position in the list of values of a run. An operator becomes one function of that
list: its kernel with the attributes filled in, and the positions of its inputs and outputs. Temporaries are
released after their last use; persistables are written into the scope as soon as they are computed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from paddlelike.core import TENSOR_DTYPES, Scope, ScopeVariable
from paddlelike.errors import EnforceNotMet, UnsupportedError
from paddlelike.executor.plans.binding import Store, bind_kernel, make_storer, make_taker
from paddlelike.executor.plans.context import StepContext
from paddlelike.executor.plans.frame import Binding, Frame, Positions, Run, Step, find_holders
from paddlelike.executor.plans.layout import NOTHING, Layout
from paddlelike.executor.plans.lifetimes import Aliases, find_initialized, find_last_uses, find_last_values
from paddlelike.executor.plans.orders import find_reordered, take_in_order
from paddlelike.executor.plans.rewrites.groups import bind_batch, group_batches, group_steps, list_batched
from paddlelike.executor.plans.rewrites.overwriting import overwrite_inputs
from paddlelike.executor.plans.rewrites.scalars import (
    drop_dims,
    find_reshaped,
    hollow_after,
    make_lod_sharer,
    take_in_shape,
)
from paddlelike.executor.plans.touched import ROWS, find_row_gradients, update_touched
from paddlelike.executor.plans.unrolled import Unrolled
from paddlelike.foundation.near_names import suggest_names
from paddlelike.framework import Block, Operator, OpRole, Program, Variable, follows_fluid
from paddlelike.framework.graph.trust import check_trusted
from paddlelike.framework.opdef import OpDef, make_arguments, registry
from paddlelike.framework.passes.views import collect_uses
from paddlelike.ops.kernels.fast.late import check_flag


class Fed(NamedTuple):
    """A variable that gets its value from a feed."""

    variable: Variable
    position: int
    dtype: np.dtype[Any] | None  # None for a variable that holds no arrays
    row: tuple[int, ...] | None  # the shape of a row, if arrays with any number of rows need no conversion


class Outputs(NamedTuple):
    """Where the results of an operator go."""

    positions: Positions  # by slot
    store: Store
    only: int | None  # the position of a result that is just a value
    is_plain: bool  # results need no conversion, one variable each


class Plan:
    """A program bound for one choice of feeds and fetches.

    Raises UntrustedError for a program from bytes with operators that reach outside of it, and
    UnsupportedError when ``FLAGS_use_fast_kernels`` was set to True and numba is not installed.
    """

    groups_steps: ClassVar[bool] = True  # whether steps may be joined
    specializes: ClassVar[bool] = True  # whether kernels may rely on declared dtypes

    def __init__(
        self, program: Program, feeds: Sequence[str], fetches: Sequence[str], ops: Iterable[int] | None
    ) -> None:
        check_trusted(program)
        check_flag()
        self.program = program
        self._ops = ops
        self._general: Plan | None = None
        self.feeds = tuple(feeds)
        self.fetches = tuple(fetches)
        top = program.global_block()
        chosen = list(top.ops) if ops is None else [top.ops[i] for i in sorted(ops)]
        self.fetched_by_op = {op.attrs.get("col", 0): op.input("X")[0] for op in chosen if op.type == "fetch"}
        self.fed_by_op = {op.attrs.get("col", 0): op.output("Out")[0] for op in chosen if op.type == "feed"}
        chosen = self._arrange([op for op in chosen if op.type not in ("feed", "fetch")])
        self.file_ops = list_batched(chosen)
        self.is_batch = bool(chosen) and len(self.file_ops) == len(chosen)  # no other operators to analyse
        blocks = program.blocks[1:]
        self.uses_files = bool(self.file_ops) or any(list_batched(block.ops) for block in blocks)
        temporaries = set() if self.is_batch else {n for op in chosen for n in _find_temporaries(op)}
        self.layout = Layout(program, temporaries)
        self.fed: dict[str, Fed] = {}
        for name in (*self.feeds, *self.fed_by_op.values()):
            if top.has_var(name):
                variable, position = top.vars[name], self.layout.get_position(top, name)
                row = TENSOR_DTYPES.get(variable.dtype)
                self.fed[name] = Fed(variable, position, None if row is None else row.numpy, None)
        self.unknown_feeds = [name for name in self.feeds if not top.has_var(name)]
        self.aliases = Aliases(
            top, [] if self.is_batch else chosen, set(self.feeds) | set(self.fed_by_op.values())
        )
        for name, fed in self.fed.items():
            count, *dims = fed.variable.shape or (0,)
            kept = fed.position in self.layout.persistables or name in self.aliases.overwrites_feed
            if count == -1 and dims and min(dims) >= 0 and not kept:
                self.fed[name] = fed._replace(row=tuple(dims))
        every = [] if self.is_batch else [*chosen, *(op for block in blocks for op in block.ops)]
        self.reordered = find_reordered(every)
        self.reshaped = find_reshaped(every)
        self.blocks: dict[int, list[Step]] = {}  # the steps of sub-blocks
        self.steps = self._bind_all(top, chosen)
        self.unrolled = Unrolled(self.steps, self.layout)
        self.initializes = [] if self.is_batch else find_initialized(top, chosen)
        self.fetch_positions = [self._get_fetch_position(top, name) for name in self.fetches]
        self.fetched = list(zip(self.fetches, self.fetch_positions, strict=True))
        # Values that own their memory after a run: no feeds, persistables, or views of these.
        self.fetches_of_their_own = {
            name
            for name, position in self.fetched
            if position not in self.layout.persistables
            and name not in self.aliases.views_of_kept
            and name not in self.feeds
        }

    def generalize(self) -> Plan:
        """Return a plan for the same feeds and fetches whose values have other dtypes than declared."""
        if self._general is None:
            self._general = _GeneralPlan(self.program, self.feeds, self.fetches, self._ops)
            assert self._general.fetch_positions == self.fetch_positions
        return self._general

    @staticmethod
    def _arrange(ops: list[Operator]) -> list[Operator]:
        """Return the operators in the order in which they run."""
        return ops

    def _get_fetch_position(self, block: Block, name: str) -> int:
        if block._find_var_recursive(name) is None and not self.layout.has_position(name):
            of_layer = [one for one in block.vars if one.startswith(f"{name}.tmp_")]
            near = f"did you mean {of_layer[-1]!r}?" if of_layer else suggest_names(name, block.vars)
            hint = near or "pass the variable itself: fetch_list=[variable]"
            raise EnforceNotMet(f"fetch_list contains {name!r}, which the program does not have", hint=hint)
        return self.layout.get_position(block, name)

    # Binding

    def _bind_all(self, block: Block, ops: list[Operator]) -> list[Step]:
        if self.is_batch:
            return [Step(bind_batch(block, run), run[0], operators=len(run)) for run in group_batches(ops)]
        keep = {*self.fetches, *self.fetched_by_op.values()}
        uses = list(map(collect_uses, ops))
        dying = find_last_uses(uses, keep)
        hollow = find_last_values(block, ops, uses, dying)
        steps = []
        rows = find_row_gradients(block, ops if self.groups_steps else (), {*keep, *self.fed})
        for i, op in enumerate(ops):
            step = self._bind(block, op, dying[i], i)
            shapes = self._get_dead_positions(block, hollow[i])
            if i in rows.producers:
                step = self._bind(block, op, dying[i], i, as_rows=True)._replace(parts=(step,))
            elif i in rows.updates:
                step = update_touched(step)
            elif self.groups_steps:
                step = overwrite_inputs(step, shapes, self.layout)
            steps.append(hollow_after(step, shapes))
        return group_steps(steps, self.layout) if self.groups_steps else steps

    def _bind_block(self, index: int) -> None:
        """Bind a sub-block, which runs on the same values."""
        if index not in self.blocks:
            block = self.program.blocks[index]
            steps = self.blocks[index] = []
            steps.extend(self._bind(block, op, (), None) for op in block.ops)

    def _bind_grad_block(self, op: Operator, index: int) -> None:
        """Bind the gradient of a block, which reads the values of each step at their usual positions.

        Gradients of operators before the block read the values from before it ran, at other positions.
        """
        forgets = op.type == "while_grad" and follows_fluid("loop_gradient")  # and reads the last values
        positions = () if forgets else self.layout.get_overwritten_positions(op)
        for position in positions:
            self.layout.earlier.pop(position, None)
        self._bind_block(index)
        for position in positions:
            self.layout.earlier[position] = self.layout.add_position()

    def _bind(
        self, block: Block, op: Operator, dying: Iterable[str], index: int | None, *, as_rows: bool = False
    ) -> Step:
        for inner in op.sub_blocks():
            if op.type in ("while_grad", "conditional_block_grad"):
                self._bind_grad_block(op, inner)
            else:
                self._bind_block(inner)
        cls = registry.find_for_version(op.type, self.program.paddle_version)
        if cls is not None and hasattr(cls, "forward_many"):
            self._get_input_positions(cls, op, block)
            self._bind_outputs(cls, op, block, index)
            return Step(bind_batch(block, [op], self._get_dead_positions(block, dying)), op)
        if cls is None or not hasattr(cls, "forward"):
            return Step(_refuse_to_run(op), op)
        for inner in cls.more_blocks(op):
            self._bind_block(inner)
        keywords = cls.make_forward_keywords(op.attrs, op.outputs)
        copied: frozenset[int] = frozenset()
        if cls.inplace and (names := cls.list_copied(op.inputs, op.outputs)):
            copied = frozenset(i for i, slot in enumerate(cls.input_slots) if slot.name in names)
            keywords |= cls.keywords_of_copies
        rows_kernel = cls.make_rows_kernel(keywords) if as_rows else None
        plain, kind = (rows_kernel, ROWS) if rows_kernel else self._make_kernel(cls, op, block, keywords)
        kernel = drop_dims(plain, cls, op, block)
        kernel = take_in_order(kernel, cls, op, self.reordered)
        kernel = take_in_shape(kernel, cls, op, self.reshaped)
        positions = self._get_input_positions(cls, op, block)
        outputs = self._bind_outputs(cls, op, block, index)
        store = outputs.store
        dead = self._get_dead_positions(block, dying)
        share = make_lod_sharer(cls, op, lambda name: self.layout.get_position(block, name))
        if not cls.context:
            run = bind_kernel(kernel, positions, copied, store, share, dead, outputs.only)
            is_plain = outputs.is_plain and not copied
            binding = Binding(cls, kernel, keywords, positions, outputs.positions, share, dead, is_plain)
            return Step(run, op, kind, binding=binding)
        take = make_taker(positions, copied)

        def run_with_context(frame: Frame) -> None:
            values = frame.values
            if share is not None and frame.lods:
                share(frame.lods, None)  # before the kernel, which may set others
            store(frame, kernel(StepContext(frame, op, block), *take(values)))
            for position in dead:
                values[position] = None

        return Step(run_with_context, op)

    def _make_kernel(
        self, cls: type[OpDef], op: Operator, block: Block, keywords: Mapping[str, Any]
    ) -> tuple[Callable[..., Any], str]:
        """Return the kernel of an operator with its attributes filled in, and the kind of the kernel."""
        variables = [
            block._find_var_recursive(op.inputs[slot.name][0])
            if not slot.several and op.inputs.get(slot.name)
            else None
            for slot in cls.input_slots
        ]
        special = cls.specialize(keywords, variables) if self.specializes else None
        if special is not None:
            return special, "specialized"
        return functools.partial(cls.forward, **keywords) if keywords else cls.forward, "general"

    def _get_dead_positions(self, block: Block, dying: Iterable[str]) -> tuple[int, ...]:
        """Return the positions of the values that are not used after a step."""
        positions = (self.layout.get_position(block, name) for name in dying)
        return tuple(position for position in positions if position not in self.layout.persistables)

    def _get_input_positions(self, cls: type[OpDef], op: Operator, block: Block) -> Positions:
        """Return the positions of the inputs, one item per slot."""
        earlier = self.layout.earlier if op.attrs.get("op_role", 0) & OpRole.Backward else {}

        def position(name: str) -> int:
            found = self.layout.get_position(block, name)
            return earlier.get(found, found)

        positions: Positions = make_arguments(cls.input_slots, op.inputs, position, NOTHING)
        for slot, read in zip(cls.input_slots, positions, strict=True):
            if not slot.name.endswith("@GRAD"):
                self.layout.reads.update(read if isinstance(read, list) else [read])
        return positions

    def _bind_outputs(self, cls: type[OpDef], op: Operator, block: Block, index: int | None) -> Outputs:
        """Return where the results of an operator go."""
        targets: Positions = make_arguments(
            cls.output_slots, op.outputs, lambda name: self.layout.get_position(block, name), -1
        )
        copies = cls.views and (index is None or self.aliases.must_copy(index))
        flat = [n for target in targets for n in (target if isinstance(target, list) else [target])]
        kept = frozenset(n for n in flat if n in self.layout.persistables)
        several = [slot.several for slot in cls.output_slots]
        store = make_storer(targets, several=several, kept=kept, copies=copies, fresh=cls.fresh)
        only = targets[0] if len(targets) == 1 else None
        plain = isinstance(only, int) and only >= 0 and not kept and not copies
        target = only if plain and isinstance(only, int) else None
        return Outputs(targets, store, target, not copies and not any(several))

    # Running

    def create_frame(self, scope: Scope, services: dict[str, Any]) -> Frame:
        """Return a frame that holds the persistables of ``scope``."""
        frame = Frame(self.layout, self.blocks, scope, services)
        if scope.parent is not None:  # it may erase variables, too
            frame.load_persistables(self.layout.persistables)
        elif self.layout.persistables:
            frame.read_holders(self._find_holders(scope))
        return frame

    def _find_holders(self, scope: Scope) -> dict[int, ScopeVariable]:
        """Return the persistables in a scope, as found before unless one was removed since."""
        persistables = self.layout.persistables
        held = scope.found.get(self)
        if held is None or held[0] != scope.erasures or held[1] != len(persistables):
            erasures = scope.erasures  # read first: another thread may remove variables meanwhile
            holders = find_holders(scope, persistables)
            held = scope.found[self] = erasures, len(persistables), holders
        found: dict[int, ScopeVariable] = held[2]
        return found


class _GeneralPlan(Plan):
    """A plan whose kernels do not rely on declared dtypes."""

    specializes = False


def _find_temporaries(op: Operator) -> set[str]:
    cls = registry.find_or_none(op.type)
    return set() if cls is None else cls.temporaries(op)


def _refuse_to_run(op: Operator) -> Run:
    """Return a function that raises UnsupportedError: the operator has no kernel."""

    def run(frame: Frame) -> None:
        raise UnsupportedError(
            f"operator {op.type!r} cannot be run: it has no kernel",
            hint="the program can be printed, pruned, converted and saved; prune it to targets that do "
            "not need this operator to run the rest",
        )

    return run
