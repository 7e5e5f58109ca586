"""Explanations of a plan: the steps, their times, and the least possible times on this machine."""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import Array, LoDTensor, Scope, SelectedRows, convert_dtype, memory
from paddlelike.errors import UnsupportedError
from paddlelike.executor.exchange.feeds import put_feeds
from paddlelike.executor.plans.frame import Frame, Step
from paddlelike.executor.plans.run_plan import Plan
from paddlelike.executor.plans.touched import ROWS
from paddlelike.executor.steps import run_steps
from paddlelike.executor.threads import thread_limit
from paddlelike.framework import Operator
from paddlelike.framework.opdef import OpDef, Spec, make_arguments, name_results, registry
from paddlelike.ops.kernels.fast.late import count_calls

_SLOWEST: Final = 12  # steps shown one by one


class Rates(NamedTuple):
    """The measured speed of the machine on one thread."""

    multiply_adds: float  # per second, in a product of float32 matrices
    bytes: float  # per second, read and written by a copy of arrays larger than the caches


class StepReport(NamedTuple):
    """One step of a plan.

    Attributes
    ----------
    operators
        The types of the step's operators; several if it runs more than one.
    outputs
        The variables it writes.
    kernel
        "specialized" if the operator chose a kernel for the declared shapes and dtypes, "group" for updates
        of several parameters at once, "rows" if an embedding's dense gradient stays a set of rows; else
        "general".
    compiled
        The loops compiled by numba that worked on its arrays, see ``FLAGS_use_fast_kernels``.
    in_place
        The variables whose memory it overwrites.
    reuses
        Inputs that no later step uses: the result is written over a large one.
    shares_memory
        The variables that are views of inputs.
    released
        The variables whose memory is free after it.
    bytes_moved, multiply_adds
        The sizes of its inputs and outputs, and the products of its matrices.
    seconds, bound
        The processor time of the step, and the least time that the machine needs to move the bytes or compute
        the products. Arrays in the cache can take less.
    """

    operators: tuple[str, ...]
    outputs: tuple[str, ...]
    kernel: str
    compiled: tuple[str, ...]
    in_place: tuple[str, ...]
    reuses: tuple[str, ...]
    shares_memory: tuple[str, ...]
    released: tuple[str, ...]
    bytes_moved: int
    multiply_adds: int
    seconds: float
    bound: float


class Explanation:
    """The steps of one run and its memory; ``str()`` gives a table.

    Attributes
    ----------
    steps
        A :class:`StepReport` for each step, in the order of the run.
    persistable_bytes, peak_bytes
        The memory of persistables, and the most that feeds and temporaries take at the end of a step.
    rates
        The machine's speed, from which the bounds are computed.
    """

    def __init__(
        self, steps: list[StepReport], persistable_bytes: int, peak_bytes: int, rates: Rates
    ) -> None:
        self.steps = steps
        self.persistable_bytes = persistable_bytes
        self.peak_bytes = peak_bytes
        self.rates = rates

    @property
    def seconds(self) -> float:
        """The time of all steps."""
        return sum(step.seconds for step in self.steps)

    def __str__(self) -> str:
        groups: dict[str, list[StepReport]] = {}
        for step in self.steps:
            groups.setdefault("+".join(dict.fromkeys(step.operators)), []).append(step)
        ordered = sorted(groups.items(), key=lambda item: -sum(step.seconds for step in item[1]))
        memory_used = (
            f"persistables {self.persistable_bytes / 1e6:.1f} MB, feeds and temporaries at most "
            f"{self.peak_bytes / 1e6:.1f} MB"
        )
        rates = f"{self.rates.multiply_adds / 1e9:.1f} G multiply-adds/s, {self.rates.bytes / 1e9:.1f} GB/s"
        heads = ["ms", "bound", "x bound", "MB moved", "M mul-adds"]
        lines = [
            f"{len(self.steps)} steps, {1e3 * self.seconds:.3f} ms; {memory_used}",
            f"bounds by {rates}",
            "",
            _format_row("operators", "steps", heads, "steps of each kind"),
        ]
        lines += [_format_group(name, of_type) for name, of_type in ordered]
        slowest = sorted(self.steps, key=lambda step: -step.seconds)[:_SLOWEST]
        lines += ["", "the slowest steps"]
        lines += [f"{_format_group('+'.join(s.operators), [s])}  -> {', '.join(s.outputs)}" for s in slowest]
        return "\n".join(lines)

    __repr__ = __str__


def _format_group(name: str, steps: list[StepReport]) -> str:
    seconds, bound = sum(s.seconds for s in steps), sum(s.bound for s in steps)
    notes = {
        "specialized": sum(s.kernel == "specialized" for s in steps),
        "compiled": sum(bool(s.compiled) for s in steps),
        "at once": sum(s.kernel == "group" for s in steps),
        "by rows": sum(s.kernel == ROWS for s in steps),
        "in place": sum(bool(s.in_place or s.reuses) for s in steps),
        "views": sum(bool(s.shares_memory) for s in steps),
        "release": sum(bool(s.released) for s in steps),
    }
    figures = [
        f"{1e3 * seconds:.3f}",
        f"{1e3 * bound:.3f}",
        f"{seconds / bound:.1f}" if bound else "-",
        f"{sum(s.bytes_moved for s in steps) / 1e6:.2f}",
        f"{sum(s.multiply_adds for s in steps) / 1e6:.1f}",
    ]
    noted = ", ".join(f"{count} {what}" for what, count in notes.items() if count)
    return _format_row(name, str(len(steps)), figures, noted)


def _format_row(name: str, count: str, figures: list[str], note: str) -> str:
    return f"{name:34} {count:>6}" + "".join(f"{figure:>12}" for figure in figures) + f"  {note}".rstrip()


def explain_plan(
    plan: Plan, scope: Scope, services: dict[str, Any], feeds: Mapping[str, Any], repeat: int
) -> Explanation:
    """Run a plan ``repeat`` times on copies of the persistables and return a report on its steps.

    Raises UnsupportedError for operators that reach outside the run, and the errors of a run.
    """
    _refuse_external(plan)
    best: list[StepReport] = []
    peak = persistable = 0
    for _ in range(max(1, repeat)):
        frame = plan.create_frame(_copy_scope(plan, scope), services)
        put_feeds(plan, frame, feeds)
        persistable = sum(_count_bytes(frame.values[position]) for position in frame.holders)
        reports, temporaries = [], _Temporaries(frame)
        for step in plan.steps:
            reports.append(thread_limit.run(_run_step, plan, frame, step))
            temporaries.update(_list_touched(plan, frame, step))
            peak = max(peak, temporaries.nbytes)
        best = [_choose_faster(*pair) for pair in zip(best, reports, strict=True)] if best else reports
    return Explanation(best, persistable, peak, measure_rates())


def _choose_faster(one: StepReport, other: StepReport) -> StepReport:
    return one if one.seconds <= other.seconds else other


def _refuse_external(plan: Plan) -> None:
    for block in plan.program.blocks:
        for op in block.ops:
            cls = registry.find_or_none(op.type)
            if cls is not None and cls.external and op.type not in ("feed", "fetch"):
                raise UnsupportedError(
                    f"Executor.explain runs the program on copies of its variables, but operator {op.type!r} "
                    "has effects outside of the program",
                    hint="explain the program without it: program._prune([the variables you fetch])",
                )


def _copy_scope(plan: Plan, scope: Scope) -> Scope:
    """Return a scope with copies of the persistables of a plan, so that the caller's values stay
    unchanged.
    """
    copied = Scope()
    for variable in plan.layout.persistables.values():
        holder = scope.find_var(variable.name)
        value = None if holder is None else holder.value
        if isinstance(value, LoDTensor) and value.held_array is not None:
            copied.var(variable.name).set_value(LoDTensor(memory.place(value.held_array), value.lod()))
        elif value is not None:
            copied.var(variable.name).set_value(copy.deepcopy(value))
    return copied


def _run_step(plan: Plan, frame: Frame, step: Step) -> StepReport:
    ops = [part.op for part in step.parts] or [step.op]
    block, inputs, outputs = step.op.block, _list_names(ops, "inputs"), _list_names(ops, "outputs")

    def read(names: Iterable[str]) -> dict[str, Any]:
        places = {name: plan.layout.get_position(block, name) for name in names}
        return {name: frame.values[at] for name, at in places.items() if at < len(frame.values)}

    before = read(inputs)
    chosen = count_calls()
    begin = time.process_time()
    run_steps(frame, [step])
    seconds = time.process_time() - begin
    compiled = tuple(name for name, calls in count_calls().items() if calls > chosen.get(name, 0))
    after = read(outputs)
    share = _find_share((*before.values(), *after.values())) if _leaves_rows_alone(step) else {}
    moved = sum(_count_moved(value, share) for value in before.values())
    new = {name: value for name, value in after.items() if name not in before}
    views = tuple(name for name, value in new.items() if any(_shares(value, old) for old in before.values()))
    moved += sum(_count_moved(value, share) for name, value in after.items() if name not in views)
    products, in_place = 0, []
    for op in ops:
        cls = registry.find_for_version(op.type, plan.program.paddle_version)
        if cls is not None:
            shapes = _infer_unused(cls, op, before) | _list_shapes(op, before, after)
            products += cls.count_multiply_adds(shapes, op.attrs, op.outputs)
            in_place += [n for out in cls.inplace for n in op.output(out) if n in before]
    rates = measure_rates()
    gone = {name for name, value in read(before).items() if value is None and before[name] is not None}
    return StepReport(
        tuple(op.type for op in ops) if step.parts else (step.op.type,) * step.operators,
        tuple(outputs),
        step.kernel,
        compiled,
        tuple(in_place),
        step.overwrites,
        views,
        tuple(sorted(gone)),
        moved,
        products,
        seconds,
        max(products / rates.multiply_adds, moved / rates.bytes),
    )


def _list_names(ops: Sequence[Operator], of: str) -> list[str]:
    """Return the "inputs" or "outputs" of operators, each name once."""
    slots = (names for op in ops for names in getattr(op, of).values())
    return list(dict.fromkeys(name for names in slots for name in names))


def _list_shapes(op: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shape of the first array in each slot; for a gradient slot the key lacks ``@GRAD``."""
    shapes: dict[str, tuple[int, ...]] = {}
    for slots, values in ((op.inputs, before), (op.outputs, after)):
        for slot, names in slots.items():
            arrays = [values[name] for name in names if isinstance(values.get(name), np.ndarray)]
            if arrays:
                shapes.setdefault(slot.removesuffix("@GRAD"), arrays[0].shape)
    return shapes


def _infer_unused(cls: type[OpDef], op: Operator, before: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the outputs of a matrix product; unused outputs are released at once."""
    if cls.count_products is OpDef.count_products:
        return {}

    def describe(name: str) -> Spec | None:
        value = before[name]
        return Spec(value.shape, convert_dtype(value.dtype)) if isinstance(value, np.ndarray) else None

    specs = make_arguments(cls.input_slots, op.inputs, describe)
    results = cls.infer(*specs, **cls.make_infer_keywords(op.attrs))
    return {slot.name: spec.shape for slot, _, spec in name_results(cls.output_slots, op.outputs, results)}


def _list_touched(plan: Plan, frame: Frame, step: Step) -> Iterable[int]:
    """Return the positions of the values that a step may have changed or released."""
    ops = [part.op for part in step.parts] or [step.op]
    if step.operators > len(ops) or any(op.sub_blocks() for op in ops):
        return range(len(frame.values))
    names = (*_list_names(ops, "inputs"), *_list_names(ops, "outputs"))
    return {plan.layout.get_position(step.op.block, name) for name in names}


class _Temporaries:
    """The bytes of the arrays of a frame except persistables; shared buffers count once."""

    def __init__(self, frame: Frame) -> None:
        self._frame, self.nbytes = frame, 0
        self._buffers: dict[int, tuple[int, int]] = {}  # id and size of the buffer at each position
        self._uses: Counter[tuple[int, int]] = Counter()  # how many positions have it
        self.update(range(len(frame.values)))

    def update(self, positions: Iterable[int]) -> None:
        """Count the values now at these positions instead of the earlier ones."""
        values, holders = self._frame.values, self._frame.holders
        counted = [at for at in positions if at < len(values) and at not in holders]
        for at in counted:
            if (before := self._buffers.pop(at, None)) is not None:
                self._uses[before] -= 1
                if not self._uses[before]:
                    del self._uses[before]
                    self.nbytes -= before[1]
        for at in counted:
            if isinstance(values[at], np.ndarray):
                buffer = _find_buffer(values[at])
                self._buffers[at] = now = id(buffer), buffer.nbytes
                self.nbytes += 0 if self._uses[now] else buffer.nbytes
                self._uses[now] += 1


def _find_buffer(array: Array) -> Array:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _count_bytes(value: object) -> int:
    value = getattr(value, "array", value)
    return value.nbytes if isinstance(value, np.ndarray) else 0


def _leaves_rows_alone(step: Step) -> bool:
    """Return whether a step touches only some rows of a table."""
    rule = step.binding and step.binding.cls.get_row_update(step.binding.keywords)
    return step.kernel == ROWS and not (rule and rule.state)


def _find_share(values: Iterable[Any]) -> dict[int, float]:
    """Return the fraction of a table's rows that selected rows hold, by the table's height."""
    return {v.height(): len(v.row_array) / v.height() for v in values if isinstance(v, SelectedRows)}


def _count_moved(value: Any, share: Mapping[int, float]) -> int:
    """Return the number of bytes of a value; for a table, only of the rows in use."""
    height = len(value) if isinstance(value, np.ndarray) and value.ndim else 0
    return int(_count_bytes(value) * share.get(height, 1.0))


def _shares(value: Any, other: Any) -> bool:
    both = isinstance(value, np.ndarray) and isinstance(other, np.ndarray)
    return both and value.nbytes > 0 and np.may_share_memory(value, other)


@lru_cache(maxsize=1)
def measure_rates() -> Rates:
    """Return the rates of this machine. They are measured once, in some hundredths of a second."""
    size = 384
    a, b, out = (np.ones((size, size), np.float32) for _ in range(3))
    source, target = np.ones(4 << 20, np.float32), np.ones(4 << 20, np.float32)
    product = min(thread_limit.run(_time, lambda: np.matmul(a, b, out=out)) for _ in range(4))
    moving = min(_time(lambda: np.copyto(target, source)) for _ in range(4))
    return Rates(size**3 / product, 2 * source.nbytes / moving)


def _time(work: Any) -> float:
    begin = time.process_time()
    work()
    return max(time.process_time() - begin, 1e-9)
