"""Branches and loops over blocks, with limits for loops, since a loop in a model file may never end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from paddlelike.core import LoDTensor, LoDTensorArray
from paddlelike.errors import EnforceNotMet, GraphError, ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import (
    EMPTY,
    GRAD,
    Array,
    Block,
    BlockGradient,
    Bool,
    Context,
    GradOp,
    OpDef,
    OpView,
    Strings,
    grad_name,
    grad_names,
    register,
)
from paddlelike.ops.kernels.addition import Totals

Result = TypeVar("Result")

_HINT: Final = "compute the condition again in the block; if the loop does end, raise the limit"


class _OfThread(threading.local):
    limit: LoopLimit | None = None


_current: Final = _OfThread()


class LoopLimit:
    """The limit of the loops of one run in this thread.

    Parameters
    ----------
    steps
        The most steps of each loop. None means any number.
    seconds
        The time for all loops of the run, compared after each step. None means without limit.

    >>> LoopLimit(steps=2).run(lambda: [find_limit().check(step) for step in range(3)])
    Traceback (most recent call last):
      ...
    paddlelike.errors.EnforceNotMet: the loop has not ended after 2 steps, the limit of this run
      hint: compute the condition again in the block; if the loop does end, raise the limit
    """

    def __init__(self, *, steps: int | None = None, seconds: float | None = None) -> None:
        self._steps, self._seconds = steps, seconds
        self._end = float("inf")

    def run(self, function: Callable[[], Result]) -> Result:
        """Return ``function()``, whose loops have this limit."""
        self._end = float("inf") if self._seconds is None else time.monotonic() + self._seconds
        before = _current.limit
        try:
            _current.limit = self
            return function()
        finally:
            _current.limit = before

    def check(self, done: int) -> None:
        """Raise EnforceNotMet if a loop has reached the limit after ``done`` steps."""
        if self._steps is not None and done >= self._steps:
            raise EnforceNotMet(
                f"the loop has not ended after {done} steps, the limit of this run", hint=_HINT
            )
        if time.monotonic() > self._end:
            raise EnforceNotMet(
                f"the loop has not ended after {self._seconds:g} s and {done} steps; the limit of the loops "
                f"of this run is {self._seconds:g} s",
                hint=_HINT,
            )


def find_limit() -> LoopLimit | None:
    """Return the limit of the run that this thread carries out, or None without a limit."""
    return _current.limit


class _Snapshots(NamedTuple):
    """Snapshots of one step of a loop: overwritten values before it, its own variables after it."""

    before: Any
    after: Any


# A block under a condition


class _BlockIf(OpDef):
    """Runs ``sub_block`` when the condition holds; otherwise ``Out`` stays unchanged.

    With ``is_scalar_condition`` the condition is the one element of Cond. Without it, the condition holds
    when no variable of Cond is empty. The block reads ``Input`` and writes ``Out`` outside of itself.
    """

    inputs = ("Cond*", "Input*")
    outputs = ("Out*", "Scope")
    attrs = {
        "sub_block": Block(),
        "is_scalar_condition": Bool(False),
        "skip_eager_deletion_vars": Strings(()),
    }

    @classmethod
    def forward(
        cls,
        ctx: Context,
        conditions: list[Array],
        inputs: list[Any],
        *,
        sub_block: int,
        is_scalar_condition: bool,
    ) -> tuple[None, list[Any]]:
        if not _is_condition_true(cls.type, conditions, scalar=is_scalar_condition):
            return None, []
        wanted = ctx.is_read("Scope")
        before = ctx.snapshot_overwritten() if wanted else None
        ctx.clear(sub_block)
        ctx.run_block(sub_block)
        return None, [_Snapshots(before, ctx.snapshot(sub_block))] if wanted else []


@register
class ConditionalBlock(_BlockIf):
    __doc__ = _BlockIf.__doc__

    type = "conditional_block"

    @classmethod
    def make_block_grad(cls, op: OpView, block: BlockGradient) -> list[GradOp]:
        """Return an operator that runs the gradient of the block; zeros when the block did not run."""
        inputs = {
            "Cond": op.input("Cond"),
            "Input": op.input("Input"),
            "Out": op.output("Out"),
            "Out@GRAD": grad_names(op.output("Out")),
            "Scope": op.output("Scope"),
        }
        outputs = {"Input@GRAD": grad_names(op.input("Input"))}
        attrs = {"sub_block": block.block_index, "is_scalar_condition": op.attrs["is_scalar_condition"]}
        return [GradOp("conditional_block_grad", inputs, outputs, attrs, own_attrs=True)]


@register
class ConditionalBlockInfer(_BlockIf):
    """``conditional_block`` of a program that only predicts: it has no gradient."""

    type = "conditional_block_infer"


@register
class ConditionalBlockGrad(OpDef):
    """Gradient of ``conditional_block`` for the variables that the block read."""

    type = "conditional_block_grad"
    inputs = ("Cond*", "Input*", "Out*", "Out@GRAD*", "Scope")
    outputs = ("Input@GRAD*",)
    attrs = {"sub_block": Block(), "is_scalar_condition": Bool(False)}

    @staticmethod
    def forward(
        ctx: Context,
        conditions: list[Array],
        inputs: list[Any],
        outs: list[Any],
        d_outs: list[Any],
        scope: list[_Snapshots],
        *,
        sub_block: int,
    ) -> list[Any]:
        targets = ctx.op.output("Input@GRAD")
        ctx.reveal(scope[0].before if scope else None)
        if not scope:
            return [_zeros(x) for x in inputs]
        now = [ctx.exchange(scope[0].after), ctx.exchange(scope[0].before)]
        gradients = grad_names(ctx.op.input("Input"))
        # The block of a later pass writes the names that the first one has outside.
        earlier = [(n, ctx.read(n), ctx.read_lod(n)) for n in gradients if n not in targets]
        ctx.clear(sub_block)
        ctx.run_block(sub_block)
        inside = ctx.inside(sub_block)
        results = []
        for index, (name, x, target) in enumerate(zip(gradients, inputs, targets, strict=True)):
            found = inside.read(name) if target != EMPTY else None
            results.append(_zeros(x) if found is None else found)
            ctx.set_lod("Input@GRAD", inside.read_lod(name), index)
        for name, value, lod in earlier:
            ctx.write(name, value, lod)
        for snapshot in now:
            ctx.restore(snapshot)
        return results


def _is_condition_true(who: str, conditions: list[Array], *, scalar: bool) -> bool:
    if not scalar:
        return all(condition.size for condition in conditions)
    if len(conditions) != 1 or conditions[0].size != 1 or conditions[0].dtype != np.bool_:
        came = ", ".join(f"{c.dtype}{list(c.shape)}" for c in conditions)
        raise ShapeError(f"{who}: the condition must be one bool, got {came}")
    return bool(conditions[0].item())


def _zeros(x: Any) -> object:
    return np.zeros_like(x) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else None


# A loop


@register
class While(OpDef):
    """Runs ``sub_block`` as long as Condition, one bool that the block updates, is true."""

    type = "while"
    inputs = ("X*", "Condition*")
    outputs = ("Out*", "StepScopes")
    attrs = {"sub_block": Block(), "is_test": Bool(False), "skip_eager_deletion_vars": Strings(())}

    @staticmethod
    def forward(
        ctx: Context, xs: list[Any], conditions: list[Array], *, sub_block: int, is_test: bool
    ) -> tuple[None, list[Any]]:
        names = ctx.op.input("Condition")
        scopes = []
        wanted = not is_test and ctx.is_read("StepScopes")
        limit, done = find_limit(), 0
        while _is_condition_true("while", conditions, scalar=True):
            if limit is not None:
                limit.check(done)
                done += 1
            before = ctx.snapshot_overwritten() if wanted else None
            ctx.clear(sub_block)
            ctx.run_block(sub_block)
            if wanted:
                scopes.append(_Snapshots(before, ctx.snapshot(sub_block)))
            conditions = [ctx.read(name) for name in names]
        return None, scopes

    @classmethod
    def make_block_grad(cls, op: OpView, block: BlockGradient) -> list[GradOp]:
        """Return ``while_grad``; it takes the gradients that the block's gradient reads but does not make.

        Raises GraphError for a loop of a program for prediction, which keeps no steps.
        """
        if op.attrs.get("is_test"):
            raise GraphError("a loop of a program for prediction has no gradient: its steps are not kept")
        made = {name for step in block.steps for names in step.outputs.values() for name in names}
        gradients = grad_names(op.input("X"))
        given = [name for name in _find_taken_gradients(op, block) if block.exists(name) or name in gradients]
        inputs = {
            "X": op.input("X"),
            "Out": op.output("Out"),
            "Out@GRAD": given,
            "StepScopes": op.output("StepScopes"),
        }
        outputs = {"X@GRAD": [name if name in made else EMPTY for name in gradients]}
        attrs = dict(op.attrs) | {
            "sub_block": block.block_index,
            "original_output_grad": given,
            "skip_eager_deletion_vars": [],
        }
        attrs = {name: attrs[name] for name in WhileGrad.attrs if name in attrs}
        return [GradOp("while_grad", inputs, outputs, attrs)]


def _find_taken_gradients(op: OpView, block: BlockGradient) -> list[str]:
    """Return the gradients that the block's gradient reads before it computes them, the latest first."""
    known = {*op.input("X"), *op.output("Out")}
    taken: list[str] = []
    for step in block.steps:
        for name in (name for names in step.inputs.values() for name in names):
            if name not in known and not block.knows(name):
                taken.insert(0, name)
                known.add(name)
        known.update(name for names in step.outputs.values() for name in names)
    return [name for name in taken if GRAD in name]


@register
class WhileGrad(OpDef):
    """Gradient of ``while``: runs the gradient of its block for every step, the last one first.

    ``original_output_grad`` holds the names of Out@GRAD in the block. The gradient of an overwritten variable
    goes to the step before; other gradients are added up. As in Fluid, every step reads the last value of a
    tensor. As in Fluid too, a gradient in both Out@GRAD and X@GRAD is one array: the last step fills it with
    0, and each step adds it to itself (see ``fluid.quirks()``).
    """

    type = "while_grad"
    inputs = ("X*", "Out*", "Out@GRAD*", "StepScopes")
    outputs = ("X@GRAD*",)
    attrs = {
        "sub_block": Block(),
        "is_test": Bool(False),
        "original_output_grad": Strings(()),
        "skip_eager_deletion_vars": Strings(()),
    }

    @staticmethod
    def forward(
        ctx: Context,
        xs: list[Any],
        outs: list[Any],
        d_outs: list[Any],
        scopes: list[_Snapshots],
        *,
        sub_block: int,
        original_output_grad: list[str],
    ) -> list[Any]:
        inside = ctx.inside(sub_block)
        passed = dict(zip(original_output_grad, d_outs, strict=True))
        names = [
            EMPTY if target == EMPTY else grad_name(name)
            for name, target in zip(ctx.op.input("X"), ctx.op.output("X@GRAD"), strict=True)
        ]
        follows = follows_fluid("loop_gradient")
        shared = find_shared(ctx.op, original_output_grad) if follows else set()
        totals = Totals()
        if follows:  # Fluid keeps no values of overwritten tensors: its gradients read the last ones
            scopes = [_Snapshots(None, after) for _, after in scopes]
        now = [ctx.exchange(snapshot) for snapshot in scopes[-1] if snapshot is not None] if scopes else []
        for snapshots in reversed(scopes):
            for snapshot in snapshots:
                if snapshot is not None:
                    ctx.restore(snapshot)
            ctx.clear(sub_block)
            for name, value in passed.items():
                _write_gradient(inside, name, value)
            ctx.run_block(sub_block)
            found = {name: inside.read(name) for name in {*names, *passed} - {EMPTY}}
            for name in found:
                one = found[name]
                if name in passed and (not follows or isinstance(one, LoDTensorArray) or one is None):
                    if name in names:
                        passed[name] = _merge_arrays(passed[name], one)
                elif name in shared:
                    passed[name] = np.zeros_like(one) if snapshots is scopes[-1] else one + one
                else:
                    if name in passed:
                        passed[name] = one
                    if name in names and one is not None:
                        totals.add(name, one)
        for name, outside, d_out in zip(original_output_grad, ctx.op.input("Out@GRAD"), d_outs, strict=True):
            if follows and isinstance(d_out, np.ndarray):  # in Fluid the steps write into it
                ctx.write(outside, passed[name])
        for snapshot in now:
            ctx.restore(snapshot)
        ctx.reveal(scopes[0].before if scopes else None)
        results = [totals.get(name, passed.get(name)) for name in names]
        return [_zeros(x) if d_x is None else d_x for x, d_x in zip(xs, results, strict=True)]


def find_shared(op: OpView, passed: list[str]) -> set[str]:
    """Return the gradients of a ``while_grad`` for which Fluid uses one variable as X@GRAD and Out@GRAD.

    ``passed`` holds the names of Out@GRAD in the block.
    """
    outside = dict(zip(passed, op.input("Out@GRAD"), strict=True))
    targets = dict(zip(map(grad_name, op.input("X")), op.output("X@GRAD"), strict=True))
    return {name for name in passed if targets.get(name) == outside[name]}


def _write_gradient(inside: Context, name: str, value: Any) -> None:
    """Write the gradient of a variable that a step left behind; zeros when there is none."""
    if value is None:
        value = _zeros(inside.read(name.removesuffix(GRAD)))
    if isinstance(value, LoDTensorArray):
        value = LoDTensorArray(value)  # the step writes into a list of its own
    inside.write(name, value)


def _merge_arrays(old: Any, new: Any) -> Any:
    """Return the gradient that a step passes on: its result, plus the elements that it did not replace."""
    if not isinstance(new, LoDTensorArray) or not isinstance(old, LoDTensorArray):
        return new
    for index, (one, other) in enumerate(zip(old, new, strict=False)):
        if one is not other and one.held_array is not None and other.held_array is not None:
            new[index] = LoDTensor(one.held_array + other.held_array, other.lod())
    return new
