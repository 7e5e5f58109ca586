"""Operators of networks that are repeated over the first dim of their inputs: recurrent,
rnn_memory_helper.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import (
    EMPTY,
    OWN,
    Array,
    Attrs,
    Block,
    BlockGradient,
    Bool,
    Context,
    Gradient,
    GradOp,
    Int,
    OpDef,
    OpView,
    Strings,
    grad_name,
    grad_names,
    register,
)
from paddlelike.ops.kernels.addition import Totals
from paddlelike.ops.operands import same_shape


class RecurrentAttrs(Attrs):
    """Attributes of recurrent and of its gradient."""

    ex_states: list[str] = Strings()
    states: list[str] = Strings()
    sub_block: int = Block()
    reverse: bool = Bool(False)


_ATTRS = RecurrentAttrs.table(
    is_train=Bool(True), has_states=Bool(False), skip_eager_deletion_vars=Strings(())
)


@register
class RnnMemoryHelper(OpDef):
    """``Out = X``: marks values that a step passes to the next step, or outputs.

    The gradient of X is zero where Out has no gradient, as after the last step.
    """

    type = "rnn_memory_helper"
    until = "1"
    attrs = {"dtype": Int(5)}
    lod = "X"
    gradient = Gradient("X", "Out", "Out@GRAD", outputs=("X@GRAD",), lod_in_run=OWN)

    infer = same_shape("X")

    @staticmethod
    def forward(x: Array) -> Array:
        return x

    @staticmethod
    def backward(x: Array, out: Array, d_out: Array | None) -> Array:
        return np.zeros_like(x) if d_out is None else d_out


@register
class Recurrent(OpDef):
    """Runs ``sub_block`` for every ``inputs[t]``, and stacks its results.

    In ``ex_states`` a step reads the ``states`` of the step before; the first step reads ``initial_states``.
    With ``reverse`` the last ``t`` comes first.
    """

    type = "recurrent"
    inputs = ("inputs*", "initial_states*", "parameters*")
    outputs = ("outputs*", "step_scopes")
    fluid_order = "has_states ex_states states sub_block reverse is_train skip_eager_deletion_vars"
    attrs = _ATTRS

    @staticmethod
    def forward(
        ctx: Context,
        inputs: list[Array],
        initial_states: list[Array],
        parameters: list[Array],
        *,
        attrs: RecurrentAttrs,
    ) -> tuple[list[Array], list[Any]]:
        inside = ctx.inside(attrs.sub_block)
        names = ctx.op.output("outputs")
        wanted = ctx.is_read("step_scopes")
        given: list[Any] = initial_states
        results: dict[int, list[Array]] = {}
        scopes = []
        for t in _order_steps(inputs, ctx.op, reverse=attrs.reverse):
            ctx.clear(attrs.sub_block)
            for name, x in zip(ctx.op.input("inputs"), inputs, strict=True):
                inside.write(name, x[t])
            for name, state in zip(attrs.ex_states, given, strict=True):
                inside.write(name, state)
            ctx.run_block(attrs.sub_block)
            given = [inside.read(name) for name in attrs.states]
            results[t] = [inside.read(name) for name in names]
            if wanted:
                scopes.append((t, ctx.snapshot(attrs.sub_block)))
        ordered = [results[t] for t in sorted(results)]
        return [np.stack(column) for column in zip(*ordered, strict=True)], scopes

    @classmethod
    def make_block_grad(cls, op: OpView, block: BlockGradient) -> list[GradOp]:
        """Return ``recurrent_grad``, which reads and writes the gradients of all variables."""
        scopes = op.output("step_scopes")
        inputs = {slot: op.input(slot) for slot in ("inputs", "initial_states", "parameters")}
        outputs = {grad_name(slot): grad_names(names) for slot, names in inputs.items()}
        outs = op.output("outputs")
        inputs |= {"outputs": outs, "outputs@GRAD": grad_names(outs)}
        inputs |= {"step_scopes": scopes, "step_scopes@GRAD": scopes}
        attrs = {name: op.attrs[name] for name in _ATTRS if name in op.attrs}
        return [GradOp("recurrent_grad", inputs, outputs, attrs | {"sub_block": block.block_index})]


def _order_steps(inputs: list[Array], op: OpView, *, reverse: bool) -> list[int]:
    """Return the steps in the order in which they run."""
    lengths = {name: x.shape[0] for name, x in zip(op.input("inputs"), inputs, strict=True)}
    if len(set(lengths.values())) != 1:
        raise ShapeError(f"recurrent: the inputs need one number of steps (first dim), got {lengths}")
    times = range(next(iter(lengths.values())))
    return list(reversed(times) if reverse else times)


@register
class RecurrentGrad(OpDef):
    """Gradient of ``recurrent``: runs the gradient of its block for every step, the last one first."""

    type = "recurrent_grad"
    inputs = (
        "inputs*", "initial_states*", "parameters*", "outputs*", "outputs@GRAD*", "step_scopes",
        "step_scopes@GRAD",
    )  # fmt: skip
    outputs = ("inputs@GRAD*", "initial_states@GRAD*", "parameters@GRAD*")
    attrs = _ATTRS

    @staticmethod
    def forward(
        ctx: Context,
        inputs: list[Array],
        initial_states: list[Array],
        parameters: list[Array],
        outs: list[Array],
        d_outs: list[Array | None],
        scopes: list[Any],
        d_scopes: Any,
        *,
        attrs: RecurrentAttrs,
    ) -> tuple[list[Array | None], list[Array | None], list[Any]]:
        inside = ctx.inside(attrs.sub_block)
        out_grads = grad_names(ctx.op.input("outputs"))
        d_inputs = _Gradients(ctx.op, "inputs", inputs)
        d_parameters = _Gradients(ctx.op, "parameters", parameters)
        passed: list[Array | None] = [None] * len(attrs.states)  # None after the last step
        now = ctx.exchange(scopes[-1][1]) if scopes else None
        for t, snapshot in reversed(scopes):
            ctx.restore(snapshot)
            ctx.clear(attrs.sub_block)
            for name, state in zip(attrs.states, passed, strict=True):
                inside.write(grad_name(name), state)
            for name, d_out in zip(out_grads, d_outs, strict=True):
                inside.write(name, None if d_out is None else d_out[t])
            ctx.run_block(attrs.sub_block)
            passed = [inside.read(grad_name(name)) for name in attrs.ex_states]
            d_inputs.put(inside, t)
            d_parameters.add(inside)
        if scopes:
            ctx.restore(now)
        for name, d_out in zip(ctx.op.input("outputs@GRAD"), d_outs, strict=True):
            ctx.write(name, d_out)  # the steps may have overwritten it
        d_states: list[Array | None] = [
            np.zeros_like(x) if d_x is None else d_x for x, d_x in zip(initial_states, passed, strict=True)
        ]
        return d_inputs.values, d_states, d_parameters.values


class _Gradients:
    """The gradients of the variables of a slot, collected over the steps."""

    def __init__(self, op: OpView, slot: str, values: list[Array]) -> None:
        self._names = [
            None if target == EMPTY else grad_name(name)
            for name, target in zip(op.input(slot), op.output(grad_name(slot)), strict=True)
        ]
        self._like = values
        self._totals = Totals()
        self.values: list[Any] = [None] * len(values)

    def put(self, inside: Context, t: int) -> None:
        """Store the gradients of a step as row ``t`` of the whole."""
        for index, name in enumerate(self._names):
            if name is not None:
                if self.values[index] is None:
                    self.values[index] = np.zeros_like(self._like[index])
                found = inside.read(name)
                if found is not None:
                    self.values[index][t] = found

    def add(self, inside: Context) -> None:
        """Add the gradients of a step to the totals."""
        for index, name in enumerate(self._names):
            found = None if name is None else inside.read(name)
            if found is not None:
                self._totals.add(index, found)
                self.values[index] = self._totals[index]
