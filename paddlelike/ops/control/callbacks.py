"""Operators with effects outside the program: print, py_func."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from paddlelike.core import LoDTensor, Scope
from paddlelike.errors import EnforceNotMet
from paddlelike.foundation.locks import Lock
from paddlelike.framework.opdef import (
    EMPTY,
    Array,
    Bool,
    Context,
    GradOp,
    Int,
    OpDef,
    OpView,
    String,
    Strings,
    grad_name,
    grad_names,
    register,
)
from paddlelike.ops.operands import keep_spec

#: Functions that programs of this process call, by id; an id of another process means nothing here.
_FUNCTIONS: Final[list[Callable[..., Any]]] = []
_registering: Final = Lock()


def register_function(function: Callable[..., Any]) -> int:
    """Return the id by which ``py_func`` operators call ``function``."""
    with _registering.hold():  # else functions of two threads get one id
        _FUNCTIONS.append(function)
        return len(_FUNCTIONS) - 1


@register
class Print(OpDef):
    """``Out = In``, written to the standard output, the first ``first_n`` times (all when negative)."""

    type = "print"
    inputs = ("In",)
    attrs = {
        "first_n": Int(),
        "message": String(),
        "summarize": Int(),
        "print_tensor_name": Bool(),
        "print_tensor_type": Bool(),
        "print_tensor_shape": Bool(),
        "print_tensor_lod": Bool(),
        "print_phase": String("BOTH"),
        "is_forward": Bool(True),
    }
    lod = "In"
    views = True
    external = own_variables = True

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        """Return another ``print``, through which the gradient passes."""
        inputs = {"In": [grad_name(op.output("Out")[0])]}
        outputs = {"Out": [grad_name(op.input("In")[0])]}
        attrs = {name: op.attrs[name] for name in cls.attrs if name in op.attrs}
        return [GradOp("print", inputs, outputs, attrs | {"is_forward": False})]

    infer = staticmethod(keep_spec)

    @staticmethod
    def forward(ctx: Context, x: Array, *, print_phase: str, is_forward: bool, first_n: int) -> Array:
        other = "BACKWARD" if is_forward else "FORWARD"
        if print_phase != other and _is_due(ctx, first_n):
            sys.stdout.write(_describe(ctx, x))
        return x


def _is_due(ctx: Context, first_n: int) -> bool:
    """Return whether this operator has run fewer than ``first_n`` times; the root scope holds the count."""
    if first_n < 0:
        return True
    root: Scope = ctx.scope
    while root.parent is not None:
        root = root.parent
    count = root.var(f"@PRINTED@{ctx.op.output('Out')[0]}")
    count.set_value((count.value or 0) + 1)
    return bool(count.value <= first_n)


def _describe(ctx: Context, x: Array) -> str:
    attrs = ctx.op.attrs
    lines = [attrs["message"]] if attrs["message"] else []
    if attrs["print_tensor_name"]:
        lines.append(f"Tensor[{ctx.op.input('In')[0]}]")
    if attrs["print_tensor_shape"]:
        lines.append(f"    shape: {list(x.shape)}")
    if attrs["print_tensor_type"]:
        lines.append(f"    dtype: {x.dtype}")
    lod = ctx.lod("In")
    if attrs["print_tensor_lod"] and lod:
        lines.append(f"    LoD: {lod}")
    shown = x.reshape(-1) if attrs["summarize"] < 0 else x.reshape(-1)[: attrs["summarize"]]
    rest = ", ..." if shown.size < x.size else ""
    lines.append(f"    data: {', '.join(map(str, shown.tolist()))}{rest}")
    return "\n".join(lines) + "\n"


@register
class PyFunc(OpDef):
    """``Out = function(*X)``, a Python function of this process that takes and returns LoDTensors or
    arrays.
    """

    type = "py_func"
    inputs = ("X*",)
    outputs = ("Out*",)
    attrs = {
        "forward_callable_id": Int(0),
        "backward_callable_id": Int(-1),
        "backward_skip_vars": Strings([]),
    }
    external = own_variables = True

    @classmethod
    def has_gradient(cls, op: OpView) -> bool:
        """Return whether there is a backward function."""
        return bool(op.attrs["backward_callable_id"] >= 0)

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        """Return a ``py_func`` that takes inputs, outputs and their gradients, except the skipped ones."""
        backward = op.attrs["backward_callable_id"]
        skipped = set(op.attrs["backward_skip_vars"])
        forward = [name for name in [*op.input("X"), *op.output("Out")] if name not in skipped]
        inputs = {"X": [*forward, *(grad_name(name) for name in op.output("Out"))]}
        outputs = {"Out": grad_names(op.input("X"))}
        attrs = {"forward_callable_id": backward, "backward_callable_id": -1}
        return [GradOp("py_func", inputs, outputs, attrs, own_attrs=True)]

    @staticmethod
    def forward(ctx: Context, x: list[Array | None], *, forward_callable_id: int) -> list[Array | None]:
        names = ctx.op.output("Out")
        if not 0 <= forward_callable_id < len(_FUNCTIONS):
            raise EnforceNotMet(
                f"py_func: function {forward_callable_id} for {names} is not known in this process",
                hint="a saved program holds the id of a function only; build the network in this process",
            )
        given = [None if array is None else LoDTensor(array, ctx.lod("X", i)) for i, array in enumerate(x)]
        found = _FUNCTIONS[forward_callable_id](*given)
        results = list(found) if isinstance(found, list | tuple) else [] if found is None else [found]
        if len(results) != len(names):
            stopped = f"; one for {EMPTY} may be None: its input gets no gradient" * (EMPTY in names)
            raise EnforceNotMet(
                f"py_func: the function gave {len(results)} values for {len(names)}: {names}",
                hint=f"return {len(names)} values{stopped}",
            )
        outs: list[Array | None] = []
        for i, (name, result) in enumerate(zip(names, results, strict=True)):
            if isinstance(result, LoDTensor):
                ctx.set_lod("Out", result.lod(), i)
                result = result.held_array
            outs.append(None if result is None or name == EMPTY else np.asarray(result))
        return outs
