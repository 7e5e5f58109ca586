"""The forward operators that a backward pass differentiates, and the variables at which it stops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from paddlelike.core import VarType
from paddlelike.errors import GraphError, QuirkWarning, UnsupportedError
from paddlelike.foundation.near_names import suggest_names
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Block, Operator, Variable, follows_fluid
from paddlelike.framework.opdef import GRAD, GradOp, OpDef, registry
from paddlelike.framework.passes.views import collect_reads, collect_writes
from paddlelike.framework.quirks import QUIRKS

_INEXACT: Final = (VarType.FP16, VarType.FP32, VarType.FP64, VarType.COMPLEX64, VarType.COMPLEX128)


def collect_stops(block: Block, no_grad_set: Iterable[Variable | str] | None) -> set[str]:
    """Return the variables at which the pass stops: the entries of ``no_grad_set`` and the constants.

    Raises TypeError for anything but variables and names.
    """
    names = [get_name("no_grad_set", one) for one in check_sequence("no_grad_set", no_grad_set)]
    for name in names:
        if not any(name.removesuffix(GRAD) in one.vars for one in block.program.blocks):
            near = suggest_names(name, block.vars, lead="; ")
            warn_user(f"no_grad_set names {name!r}, which the program does not have{near}")
    return {name.removesuffix(GRAD) for name in names} | find_constants(block)


def check_sequence(what: str, given: Iterable[Variable | str] | None) -> list[Variable | str]:
    """Return the argument ``what`` as a list. Raises TypeError for a string or a single value."""
    if isinstance(given, str) or (given is not None and not isinstance(given, Iterable)):
        raise TypeError(f"{what} is {given!r}, expected a list of variables or names")
    return list(given or ())


def get_name(what: str, one: Variable | str) -> str:
    """Return the name of one item of the argument ``what``. Raises TypeError for other values."""
    if not isinstance(one, Variable | str):
        raise TypeError(f"{what} holds {one!r}, expected variables or names")
    return one if isinstance(one, str) else one.name


def find_constants(block: Block) -> set[str]:
    """Return the variables of this block, not of outer ones, that have ``stop_gradient``."""
    return {variable.name for variable in block.vars.values() if variable.stop_gradient}


def find_path(
    block: Block,
    targets: set[str],
    blocked: set[str],
    inputs: set[str] | None = None,
    *,
    differentiable: bool = True,
    wanted: Iterable[str] | None = None,
) -> list[Operator]:
    """Return the operators between ``inputs`` (None means any) and ``targets``, in program order.

    ``differentiable`` are the operators that have a gradient. ``wanted`` are the variables whose gradients
    are needed (None means any); the pass may end at them.

    Raises the errors of :func:`has_gradient`, and UnsupportedError as :func:`_report_ends` and
    :func:`_check_ends`.
    """
    ops = block.ops
    if inputs is not None:
        ops, _ = _follow(ops, inputs, blocked)
    needed, path = set(targets), []
    ends: set[str] = set()
    without: list[tuple[Operator, set[str]]] = []
    for op in reversed(ops):
        written = needed.intersection(op.output_arg_names)
        if not written:
            continue
        if has_gradient(op) or not differentiable:
            path.append(op)
            needed.update(name for name in op.input_arg_names if name not in blocked)
        elif op.type.endswith("_grad") and written - blocked:
            ends.add(op.type)
        elif (definition := registry.find(op.type)).since != "1" and not definition.ends_gradients:
            without.append((op, written))
    _check_ends(without, blocked, wanted if inputs is None else inputs)
    if ends:
        _report_ends(", ".join(sorted(ends)))
    return path[::-1]


def _follow(ops: list[Operator], inputs: Iterable[str], blocked: set[str]) -> tuple[list[Operator], set[str]]:
    """Return the operators that depend on ``inputs``, and the names of all values that depend on them."""
    reached, forward = set(inputs), []
    for op in ops:
        if reached & collect_reads(op):
            forward.append(op)
            reached |= {name for name in op.output_arg_names if name not in blocked}
    return forward, reached


def _check_ends(
    without: list[tuple[Operator, set[str]]], blocked: set[str], wanted: Iterable[str] | None
) -> None:
    """Raise UnsupportedError if a wanted gradient would silently end at an operator of a later Paddle.

    ``without`` holds operators without a gradient, and their outputs whose gradients are needed.
    """
    trained: set[str] | None = None
    for op, outputs in without:
        find = op.block._find_var_recursive
        read, written = (
            [name for name in names if (v := find(name)) is not None and v.dtype in _INEXACT]
            for names in (op.input_arg_names, outputs)
        )
        ending = set(read) - blocked
        if not written or not ending:
            continue
        if wanted is not None:
            if trained is None:
                _, trained = _follow(op.block.ops, set(wanted) - blocked, blocked)
            ending &= trained
        if ending:
            raise UnsupportedError(
                f"operator {op.type!r} of Paddle 2 has no gradient here; only its values are computed",
                hint=f"set stop_gradient = True on {written[0]!r} if no variable before it is trained",
            )


def _report_ends(types: str) -> None:
    """Warn about operators that have no second gradient; raise UnsupportedError if the flag says so."""
    row = QUIRKS["stopped_second_gradients"]
    if not follows_fluid(row.name):
        raise UnsupportedError(
            f"{types} have no gradients of their own, so that gradients of gradients would stop there",
            hint="set stop_gradient = True on a gradient that counts as a constant",
        )
    warn_user(
        f"{row.where}: as in Fluid 1.8.5, the results of {types} count as constants. "
        "fluid.set_flags({'FLAGS_fluid_quirks': False}) makes it an error; fluid.quirks() lists all of these",
        QuirkWarning,
    )


def has_gradient(op: Operator) -> bool:
    """Return whether any operator computes gradients of ``op``.

    Raises GraphError for an operator that is not registered.
    """
    cls = find_definition(op)
    if cls is None:
        raise GraphError(
            f"operator {op.type!r} cannot be differentiated: its type is unknown "
            f"(it computes {op.output_arg_names})",
            hint="set stop_gradient = True on its outputs, if no gradient has to pass it",
        )
    return cls.has_gradient(op)


def find_definition(op: Operator) -> type[OpDef] | None:
    """Return the class that makes the gradients of ``op``; the version of the program may have its own."""
    later = registry.find_for_version(op.type, op.block.program.paddle_version)
    return later if later is not None and "make_grad" in vars(later) else registry.find_or_none(op.type)


def make_gradients(op: Operator) -> list[GradOp]:
    """Return the gradient operators of ``op``, which must have a gradient."""
    cls = find_definition(op)
    assert cls is not None
    return cls.make_grad(op)


def find_unused_outputs(path: list[Operator], targets: set[str], blocked: set[str]) -> set[str]:
    """Return the outputs on the path that do not contribute to ``targets``: their gradient is zero."""
    used, unused = set(targets), set()
    for op in reversed(path):
        if not op.sub_blocks():
            unused |= collect_writes(op) - used - set(op.input_arg_names) - blocked
        used |= {name for name in collect_reads(op) if name not in blocked}
    return unused
