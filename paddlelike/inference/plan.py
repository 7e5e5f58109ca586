"""The plan of a predictor, in which each chain of operators is one step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike.core import Array, Scope
from paddlelike.core.floats import run_quietly
from paddlelike.executor import profile
from paddlelike.executor.exchange.fetches import get_fetched
from paddlelike.executor.plans.binding import bind_kernel, make_storer
from paddlelike.executor.plans.frame import Binding, Frame, Run, Share, Step, flatten_positions
from paddlelike.executor.plans.lifetimes import find_last_uses
from paddlelike.executor.plans.rewrites.overwriting import overwrite_inputs
from paddlelike.executor.plans.rewrites.scalars import make_lod_sharer
from paddlelike.executor.plans.run_plan import Plan
from paddlelike.executor.steps import run_plan
from paddlelike.executor.threads import thread_limit
from paddlelike.framework.flags import flag
from paddlelike.framework.opdef import registry
from paddlelike.framework.passes.views import collect_uses
from paddlelike.inference import onednn_library
from paddlelike.inference.chains import Chain, Finder
from paddlelike.inference.parts import writes_scope
from paddlelike.inference.tensors import Runner, Value, split_value
from paddlelike.ops.kernels.fast.late import FLAG, on_request
from paddlelike.ops.kernels.threads import count_threads

if TYPE_CHECKING:
    from paddlelike.framework import Block, Operator, Program
    from paddlelike.inference import onednn
    from paddlelike.inference.cells import Loop


# From these sizes on, Winograd's formula in numpy is faster for 3x3 filters than the library's direct one.
_CHANNELS: Final = 128
_MULTIPLICATIONS: Final = 50_000_000  # multiply-adds of one image at one position of the filter

_Repeat = Callable[[Mapping[str, Any], bool], list[Value] | None]


class PredictionPlan(Plan):
    """A program bound for prediction with the present values of its parameters.

    Attributes
    ----------
    chains, joined
        The number of chains, and of their operators.
    uses_library, only_products
        Whether the library computes a step, perhaps for some inputs only, and nothing but products.
    """

    def __init__(
        self,
        program: Program,
        feeds: list[str],
        fetches: list[str],
        scope: Scope,
        library: onednn_library.Library | None,
    ) -> None:
        self._scope, self._library = scope, library
        self.chains = self.joined = 0
        super().__init__(program, feeds, fetches, None)

    def _bind_all(self, block: Block, ops: list[Operator]) -> list[Step]:
        keep = {*self.fetches, *self.fetched_by_op.values()}
        finder = Finder(ops, self._scope, keep)
        chains = run_quietly(finder.find)
        loops = finder.find_loops(self._library)
        inner = sum(len(block.program.blocks[ops[index].attrs["sub_block"]].ops) for index in loops)
        self.chains = len(chains) + len(loops)
        self.joined = sum(len(chain.ops) for chain in chains) + len(loops) + inner
        fitting = [chain for chain in chains if chain.fits_library()]
        others = bool(loops) or any(op.type == "pool2d" for op in ops)
        self.uses_library = bool(fitting) or others
        self.only_products = not others and all(chain.is_product for chain in fitting)
        inside = {index for chain in chains for index in chain.indexes[:-1]}
        ending = {chain.indexes[-1]: chain for chain in chains}
        # A value that a chain reads is in use until the chain ends.
        order = [index for index in range(len(ops)) if index not in inside]
        uses = find_last_uses(list(map(collect_uses, ops)), keep)
        lasts = [
            [name for one in (ending[index].indexes if index in ending else [index]) for name in uses[one]]
            for index in order
        ]
        for at, index in enumerate(order):
            chain = ending.get(index)
            if chain is not None:
                self._keep_inputs(chain, lasts, at, keep)
        steps: list[tuple[Step, onednn.Operation | None]] = []
        for at, index in enumerate(order):
            operation: onednn.Operation | None = None
            chain = ending.get(index)
            if chain is not None:
                step = self._bind_chain(block, chain, lasts[at])
                operation = self._make_convolution(block, chain)
            elif index in loops:
                step = self._bind_loop(block, ops[index], loops[index], lasts[at])
            else:
                step = overwrite_inputs(self._bind(block, ops[index], lasts[at], index), (), self.layout)
                step = self._pass_on(step, lasts[at])
                operation = self._make_pool(step)
            steps.append((step, operation))
        return [step for _, group in groupby(steps, _is_of_library) for step in self._join_images([*group])]

    def _pass_on(self, step: Step, dying: list[str]) -> Step:
        """Return the step; once unrolled, a scale by 1 returns its input where nothing else reads that."""
        binding, op = step.binding, step.op
        if binding is None or op.type != "scale" or op.input("ScaleTensor"):
            return step
        (x,), keywords = op.input("X"), binding.keywords
        is_own = x in dying and x not in self.fed and x not in self.aliases.views_of_kept
        if not (is_own and binding.is_plain) or (keywords["scale"], keywords["bias"]) != (1.0, 0.0):
            return step
        return step._replace(
            binding=binding._replace(kernel=_return, inputs=binding.inputs[:1], candidates=())
        )

    def _make_convolution(self, block: Block, chain: Chain) -> onednn.Convolution | None:
        """Return a chain as a convolution of the library, or None if numpy must compute it or is faster."""
        operation = None if self._library is None else chain.make_operation(self._library)
        if operation is None:
            return None
        (_, *x), (_, *out) = (list(block._var_recursive(name).shape) for name in (chain.x, chain.out))
        if min(*x, *out) < 1:
            return operation
        takes_tiles = chain.w.shape[2:] == (3, 3) and x[1:] == out[1:] and min(x[0], out[0]) >= _CHANNELS
        if takes_tiles and chain.w.shape[1] == x[0] and math.prod(x) * out[0] >= _MULTIPLICATIONS:
            return None
        return operation if operation.find((1, *x), chain.residual is not None) is not None else None

    def _make_pool(self, step: Step) -> onednn.Pool | None:
        """Return a step as a pool of the library, or None if the library cannot compute it."""
        binding = step.binding
        if self._library is None or binding is None or binding.cls.type != "pool2d":
            return None
        attrs = binding.keywords["attrs"]
        has_padding = any(attrs.paddings) or attrs.padding_algorithm == "SAME"
        counts_padding = attrs.pooling_type == "avg" and not (attrs.exclusive or attrs.adaptive)
        if attrs.data_format not in ("NCHW", "AnyLayout") or (
            counts_padding and (has_padding or attrs.ceil_mode)
        ):
            return None
        from paddlelike.inference import onednn  # late: many programs use no library

        return onednn.Pool(
            self._library, lambda spatial: attrs.arrange("pool2d", spatial)[1], attrs.pooling_type
        )

    def _join_images(self, group: list[tuple[Step, onednn.Operation | None]]) -> list[Step]:
        """Return the steps, with neighbouring steps of the library joined."""
        steps, library = [step for step, _ in group], self._library
        if library is None or group[0][1] is None:
            return steps
        from paddlelike.inference import onednn  # late: many programs use no library

        links: list[onednn.Link] = []
        dead: list[int] = []
        for step, operation in group:
            binding = step.binding
            if operation is None or binding is None:
                return steps
            x, *residual = flatten_positions(binding.inputs)
            links.append(onednn.Link(operation, x, *flatten_positions(binding.outputs), *residual))
            dead += binding.dead
        images = onednn.Images(library, links, {link.out for link in links} - set(dead))

        def run(frame: Frame) -> None:
            values = frame.values
            outs = None if frame.lods else images(*(values[position] for position in images.inputs))
            if outs is None:
                for step in steps:
                    step.run(frame)
                return
            for position, out in zip(images.outputs, outs, strict=True):
                values[position] = out
            for position in dead:
                values[position] = None

        return [Step(run, steps[0].op, "joined", sum(step.operators for step in steps))]

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
        kernel = chain.make_kernel(self._library)
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

    def __init__(
        self, program: Program, scope: Scope, feeds: list[str], fetches: list[str], *, threads: int
    ) -> None:
        self._program, self._scope, self._feeds, self._fetches = program, scope, feeds, fetches
        self._library, self._threads = onednn_library.find(), max(threads, count_threads())
        self._taken = 0
        self._plan = self._make_plan()

    def _make_plan(self) -> PredictionPlan | None:
        """Return the plan, or None when no operators are joined or a run writes into the scope."""
        if any(writes_scope(op) for op in self._program.global_block().ops):
            return None
        before = self._take_threads(self._threads)
        plan = PredictionPlan(self._program, self._feeds, self._fetches, self._scope, self._library)
        self._take_threads(before)
        return plan if plan.joined else None

    def _take_threads(self, count: int) -> int:
        """Set the number of the library's threads for this thread; return the previous number."""
        if self._library is None or count < 1:
            return 0
        return self._library.set_threads(count)

    def follow(self, taken: int) -> None:
        """Copy the values of the parameters if they have changed; ``taken`` counts the loads so far."""
        if taken != self._taken:
            self._taken, self._plan = taken, self._make_plan()

    def describe(self) -> tuple[str, str]:
        """Describe the joined operators and the library that computes them; empty if none are joined."""
        if self._plan is None:
            return "", ""
        found = onednn_library.load()
        reason = found if isinstance(found, str) else f"{FLAG} is False"
        kernels = f"numpy ({reason})"
        if self._library is not None:
            kernels = f"oneDNN {self._library.version}"
            if not self._plan.uses_library:
                kernels = f"numpy ({kernels} has none of these operators, or is slower)"
            elif self._plan.only_products:
                kernels += " for large products of several rows, numpy for others"
        ops = [op for block in self._program.blocks for op in block.ops]
        count = len([op for op in ops if op.type not in ("feed", "fetch")])
        joined = f"{self._plan.joined} of {count} operators in {len(self._plan.steps)} steps"
        return f"{joined}, equal up to rounding", kernels

    def make_runner(self, run_plain: Runner) -> Runner:
        """Return the function of feeds for one thread; ``run_plain`` runs a program without this engine.

        A run that the plan refuses is repeated without the plan, which raises the error.
        """
        take_threads, threads = self._take_threads, self._threads
        repeated: tuple[PredictionPlan, _Repeat] | None = None

        def run(feed: Mapping[str, Any], /, *, lend: bool = False) -> list[Value]:
            nonlocal repeated
            plan = self._plan
            if plan is None or profile.current is not None or flag("FLAGS_check_nan_inf"):
                return run_plain(feed)
            if flag("FLAGS_backend") != "numpy":
                return run_plain(feed)
            on_request.active = True
            before = take_threads(threads) if plan.uses_library else threads
            try:
                if repeated is not None and repeated[0] is plan:
                    found = repeated[1](feed, lend)
                    if found is not None:
                        return found
                elif plan.unrolled.of_arrays is not None:
                    repeated = plan, _make_repeat(plan, self._scope, plan.unrolled.of_arrays)
                frame = run_plan(plan, self._scope, {}, feed)
            except Exception:
                return run_plain(feed)
            finally:
                on_request.active = False
                if before != threads:
                    take_threads(before)
            return _take_fetched(plan, frame)

        return run


def _make_repeat(plan: PredictionPlan, scope: Scope, steps: Run) -> _Repeat:
    """Return a function for the arrays of one thread: it runs the unrolled steps in a frame made once.

    It returns None for feeds that differ from their declared dtypes and shapes. ``lend``: the fed arrays are
    the same in most runs, and their shapes do not change.
    """
    frame = plan.create_frame(scope, {})
    held = frame.values  # the parameters
    fed = [(name, *fed[1:]) for name, fed in plan.fed.items()]
    known: dict[str, Array] = {}

    def repeat(feed: Mapping[str, Any], lend: bool) -> list[Value] | None:
        values = frame.values = held.copy()
        for name, position, dtype, row in fed:
            value = feed[name]
            if not lend or known.get(name) is not value:
                is_plain = type(value) is np.ndarray and value.dtype is dtype and value.shape[1:] == row
                if not (is_plain and value.flags.c_contiguous and value.size):
                    return None
                if lend:
                    known[name] = value
            values[position] = value
        if frame.lods:  # of the run before
            frame.lods = {}
        thread_limit.run(run_quietly, steps, frame)
        found = _take_fetched(plan, frame)
        frame.values = held
        return found

    return repeat


def _return(x: Array) -> Array:
    return x


def _is_of_library(bound: tuple[Step, onednn.Operation | None]) -> bool:
    return bound[1] is not None


def _take_fetched(plan: Plan, frame: Frame) -> list[Value]:
    values, lods, own = frame.values, frame.lods, plan.fetches_of_their_own
    found: list[Value] = []
    for name, position in plan.fetched:
        value = values[position]
        if type(value) is np.ndarray and name in own:
            found.append((value if value.flags.c_contiguous else value.copy(), lods.get(position) or []))
        else:
            found.append(split_value(get_fetched(plan, frame, name, position, False)))
    return found
