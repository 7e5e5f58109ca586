"""The plan of a predictor: chains of operators are one step each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from paddlelike.core.floats import run_quietly
from paddlelike.core.scope import Scope
from paddlelike.executor import profile
from paddlelike.executor.exchange.fetches import get_fetched
from paddlelike.executor.plans.binding import bind_kernel, make_storer
from paddlelike.executor.plans.frame import Binding, Frame, Share, Step
from paddlelike.executor.plans.lifetimes import find_last_uses
from paddlelike.executor.plans.rewrites.overwriting import overwrite_inputs
from paddlelike.executor.plans.rewrites.scalars import make_lod_sharer
from paddlelike.executor.plans.run_plan import Plan
from paddlelike.executor.steps import run_plan
from paddlelike.framework.flags import flag
from paddlelike.framework.opdef import registry
from paddlelike.inference.cells import Loop
from paddlelike.inference.chains import Chain, Finder
from paddlelike.inference.parts import writes_scope
from paddlelike.inference.tensors import Runner, Value, split_value
from paddlelike.ops.kernels.fast.late import on_request

if TYPE_CHECKING:
    from paddlelike.framework.graph.block import Block
    from paddlelike.framework.graph.operator import Operator
    from paddlelike.framework.graph.program import Program


class PredictionPlan(Plan):
    """A program bound for prediction with the present values of its parameters.

    Attributes
    ----------
    chains, joined
        How many chains there are, and how many operators they have.
    """

    def __init__(self, program: Program, feeds: list[str], fetches: list[str], scope: Scope) -> None:
        self._scope = scope
        self.chains = self.joined = 0
        super().__init__(program, feeds, fetches, None)

    def _bind_all(self, block: Block, ops: list[Operator]) -> list[Step]:
        keep = {*self.fetches, *self.fetched_by_op.values()}
        finder = Finder(ops, self._scope, keep)
        chains = run_quietly(finder.find)
        loops = finder.find_loops()
        inner = sum(len(block.program.blocks[ops[index].attrs["sub_block"]].ops) for index in loops)
        self.chains = len(chains) + len(loops)
        self.joined = sum(len(chain.ops) for chain in chains) + len(loops) + inner
        inside = {index for chain in chains for index in chain.indexes[:-1]}
        ending = {chain.indexes[-1]: chain for chain in chains}
        # A value that a chain reads is in use until the chain ends.
        order = [index for index in range(len(ops)) if index not in inside]
        lasts = find_last_uses(block, [ops[index] for index in order], keep)
        for at, index in enumerate(order):
            chain = ending.get(index)
            if chain is not None:
                self._keep_inputs(chain, lasts, at, keep)
        steps = []
        for at, index in enumerate(order):
            chain = ending.get(index)
            if chain is not None:
                steps.append(self._bind_chain(block, chain, lasts[at]))
            elif index in loops:
                steps.append(self._bind_loop(block, ops[index], loops[index], lasts[at]))
            else:
                step = self._bind(block, ops[index], lasts[at], index)
                steps.append(overwrite_inputs(step, (), self.layout))
        return steps

    @staticmethod
    def _keep_inputs(chain: Chain, lasts: list[list[str]], at: int, keep: set[str]) -> None:
        """Move the last use of a chain's inputs to its end, unless a later step reads them."""
        lasts[at] = [name for name in lasts[at] if name in (chain.x, chain.residual)]
        for name in (chain.x, chain.residual):
            if name is None or name in keep:
                continue
            for earlier in lasts[:at]:
                if name in earlier:
                    earlier.remove(name)
                    lasts[at].append(name)

    def _bind_chain(self, block: Block, chain: Chain, dying: list[str]) -> Step:
        get = self.layout.get_position
        positions = [get(block, chain.x)] + ([] if chain.residual is None else [get(block, chain.residual)])
        target = get(block, chain.out)
        dead = self._get_dead_positions(block, dying)
        op = chain.ops[0]
        cls = registry.find_for_version(op.type, block.program.paddle_version)
        assert cls is not None
        share: Share | None = make_lod_sharer(
            cls, op, lambda name: target if name in op.output_arg_names else get(block, name)
        )
        kernel = chain.make_kernel()
        kept = frozenset({target} & set(self.layout.persistables))
        store = make_storer([target], several=[False], kept=kept, copies=False, fresh=True)
        run = bind_kernel(kernel, positions, frozenset(), store, share, dead, None if kept else target)
        binding = Binding(cls, kernel, {}, positions, [target], share, dead, is_plain=True)
        return Step(run, op, "joined", operators=len(chain.ops), binding=binding)

    def _bind_loop(self, block: Block, op: Operator, loop: Loop, dying: list[str]) -> Step:
        get, kernel = self.layout.get_position, loop.kernel
        inputs = [get(block, name) for name in loop.inputs]
        targets = [(get(block, name), which) for name, which in loop.outputs.items()]
        dead = self._get_dead_positions(block, dying)

        def run(frame: Frame) -> None:
            values = frame.values
            results = kernel(*(values[position] for position in inputs))
            for position, which in targets:
                values[position] = results[which]
            for position in dead:
                values[position] = None

        return Step(run, op, "joined")


class PlanEngine:
    """A program run by prediction plans, shared by predictors of the same parameters."""

    def __init__(self, program: Program, scope: Scope, feeds: list[str], fetches: list[str]) -> None:
        self._program, self._scope, self._feeds, self._fetches = program, scope, feeds, fetches
        self._taken = 0
        self._plan = self._make_plan()

    def _make_plan(self) -> PredictionPlan | None:
        """Return the plan, or None when no operators are joined or a run writes into the scope."""
        if any(writes_scope(op) for op in self._program.global_block().ops):
            return None
        plan = PredictionPlan(self._program, self._feeds, self._fetches, self._scope)
        return plan if plan.joined else None

    def follow(self, taken: int) -> None:
        """Copy the values of the parameters if they have changed; ``taken`` is the number of copies."""
        if taken != self._taken:
            self._taken, self._plan = taken, self._make_plan()

    def describe(self) -> str:
        """Describe the joined operators."""
        if self._plan is None:
            return ""
        ops = [op for block in self._program.blocks for op in block.ops]
        count = len([op for op in ops if op.type not in ("feed", "fetch")])
        return (
            f"{self._plan.joined} of {count} operators in {len(self._plan.steps)} steps, equal up to rounding"
        )

    def make_runner(self, run_plain: Runner) -> Runner:
        """Return the function of feeds that one thread runs; ``run_plain`` is the one without this engine.

        What the plan cannot run is run without it, which words the error.
        """

        def run(feed: Mapping[str, Any]) -> list[Value]:
            plan = self._plan
            if plan is None or profile.current is not None or flag("FLAGS_check_nan_inf"):
                return run_plain(feed)
            if flag("FLAGS_backend") != "numpy":
                return run_plain(feed)
            on_request.active = True
            try:
                frame = run_plan(plan, self._scope, {}, feed)
            except Exception:
                return run_plain(feed)
            finally:
                on_request.active = False
            return [_take(plan, frame, name, position) for name, position in plan.fetched]

        return run


def _take(plan: Plan, frame: Frame, name: str, position: int) -> Value:
    value = frame.values[position]
    if type(value) is np.ndarray and name in plan.fetches_of_their_own:
        return np.asarray(value, order="C"), frame.lods.get(position, [])
    return split_value(get_fetched(plan, frame, name, position, False))
