"""The backward pass: operators that compute gradients, appended behind the forward part.

Reverse-mode differentiation over the program, with Paddle's names: the gradient of ``x`` is ``x@GRAD``;
several contributions are ``x@GRAD@RENAME@block0@0``, ``...@1``, added up by a ``sum`` operator just before
the first operator that needs the total.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError
from paddlelike.framework import registry
from paddlelike.framework.block import Block
from paddlelike.framework.graph import reads, writes
from paddlelike.framework.operator import Operator, OpRole
from paddlelike.framework.registry import EMPTY, GRAD, GradOp, grad_name
from paddlelike.framework.variable import Parameter, Variable

__all__ = ["append_backward", "gradients"]

Step = tuple[GradOp, Operator]  # an operator of the backward pass, and the forward one it stems from


def append_backward(
    loss: Variable,
    parameter_list: Sequence[Parameter | str] | None = None,
    no_grad_set: Iterable[Variable | str] | None = None,
    callbacks: Sequence[Callable[..., None]] | None = None,
    checkpoints: Sequence[Variable] | None = None,
) -> list[tuple[Parameter, Variable]]:
    """Append operators that compute the gradient of ``loss`` by every trainable parameter.

    Parameters
    ----------
    loss
        A variable of shape ``[1]``.
    parameter_list
        Only these parameters; None: all of them.
    no_grad_set
        Variables, or their names, beyond which the pass does not go (besides those with ``stop_gradient``).
    callbacks
        Called with ``block=`` and ``context=`` (gradient name -> variable name) after each operator.
    checkpoints
        Accepted for scripts that recompute activations; nothing is recomputed here.

    Returns
    -------
    Pairs of a parameter and its gradient, in the order in which the parameters were made.
    """
    if not isinstance(loss, Variable):
        raise TypeError(f"append_backward: loss is a variable, not {loss!r}")
    block = loss.block
    producer = next((op for op in reversed(block.ops) if loss.name in op.output_arg_names), None)
    if producer is None:
        raise GraphError(f"append_backward: no operator computes {loss.name!r}")
    producer._set_attr("op_role", producer.attrs.get("op_role", 0) | OpRole.Loss)
    blocked = _blocked(block, no_grad_set)
    seed = GradOp(
        "fill_constant",
        {},
        {"Out": [grad_name(loss.name)]},
        {"shape": [1], "value": 1.0, "dtype": int(loss.dtype), "force_cpu": False},
        own_attrs=True,
    )
    path = _path(block, {loss.name}, blocked)
    steps = _backward_steps(path, {loss.name}, blocked, block.idx)
    _append(block, [(seed, producer)], OpRole.Backward | OpRole.Loss, callbacks)
    _append(block, steps, OpRole.Backward, callbacks)
    return _pairs(block, parameter_list)


def gradients(
    targets: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    target_gradients: Variable | Sequence[Variable | None] | None = None,
    no_grad_set: Iterable[Variable | str] | None = None,
) -> list[Variable | None]:
    """Append operators that compute the gradients of ``targets`` by ``inputs``.

    ``target_gradients`` are the gradients to start from, ones where None. Returns one variable for each
    input, None for one that the targets do not depend on; an input with ``stop_gradient`` is left out.
    """
    target_list = _listed(targets)
    input_list = [v for v in _listed(inputs) if not v.stop_gradient]
    given = _listed(target_gradients) if target_gradients is not None else [None] * len(target_list)
    if len(given) != len(target_list):
        raise GraphError(f"gradients: {len(target_list)} targets, {len(given)} target_gradients")
    block = target_list[0].block
    blocked = _blocked(block, no_grad_set)
    first: list[Step] = []
    for target, start in zip(target_list, given, strict=True):
        first.append((_start(target, start), block.ops[-1]))
    names = {v.name for v in target_list}
    path = _path(block, names, blocked, {v.name for v in input_list})
    steps = _backward_steps(path, names, blocked, block.idx)
    _append(block, first, OpRole.Backward, None)
    _append(block, steps, OpRole.Backward, None)
    return [block._find_var_recursive(grad_name(v.name)) for v in input_list]


calc_gradient = gradients


def _listed(variables: Any) -> list[Any]:
    return list(variables) if isinstance(variables, list | tuple) else [variables]


def _start(target: Variable, gradient: Variable | None) -> GradOp:
    """The operator that starts the pass at one target."""
    out = {"Out": [grad_name(target.name)]}
    if gradient is not None:
        if gradient.shape != target.shape:
            raise GraphError(
                f"gradients: target {target.name!r} has shape {list(target.shape)}, "
                f"its gradient {gradient.name!r} {list(gradient.shape)}"
            )
        return GradOp("assign", {"X": [gradient.name]}, out, {}, own_attrs=True)
    attrs = {"value": 1.0, "dtype": int(target.dtype)}
    return GradOp("fill_any_like", {"X": [target.name]}, out, attrs, own_attrs=True)


def _blocked(block: Block, no_grad_set: Iterable[Variable | str] | None) -> set[str]:
    """The names beyond which the pass does not go."""
    blocked = {v if isinstance(v, str) else v.name for v in no_grad_set or ()}
    blocked = {name.removesuffix(GRAD) for name in blocked}
    for variable in block.program.list_vars():
        if variable.stop_gradient:
            blocked.add(variable.name)
    return blocked


def _path(
    block: Block, targets: set[str], blocked: set[str], inputs: set[str] | None = None
) -> list[Operator]:
    """The operators between ``inputs`` (all, if None) and ``targets``, in program order."""
    ops = block.ops
    if inputs is not None:
        reached, forward = set(inputs), []
        for op in ops:
            if reached & reads(op):
                forward.append(op)
                reached |= {name for name in op.output_arg_names if name not in blocked}
        ops = forward
    needed, path = set(targets), []
    for op in reversed(ops):
        if needed.intersection(op.output_arg_names):
            path.append(op)
            needed.update(name for name in op.input_arg_names if name not in blocked)
    return path[::-1]


def _backward_steps(path: list[Operator], targets: set[str], blocked: set[str], block_idx: int) -> list[Step]:
    """The operators of the backward pass, contributions to one gradient summed up."""
    blocked = blocked | _unused_outputs(path, targets, blocked)
    steps: list[Step] = []
    for op in reversed(path):
        for grad in _grads_of(op):
            limited = _limit(grad, op, blocked)
            if limited is not None:
                steps.append((limited, op))
    return _with_zeros(_with_sums(_only_useful(steps, blocked), block_idx), blocked)


def _grads_of(op: Operator) -> list[GradOp]:
    cls = registry.find_or_none(op.type)
    if cls is None:
        raise GraphError(f"operator {op.type!r} cannot be differentiated: it is not known here")
    if cls.gradient is None and cls.make_grad.__func__ is registry.OpDef.make_grad.__func__:  # type: ignore[attr-defined]
        return []
    return cls.make_grad(op)


def _unused_outputs(path: list[Operator], targets: set[str], blocked: set[str]) -> set[str]:
    """Outputs on the path that lead nowhere: their gradient is zero."""
    used, unused = set(targets), set()
    for op in reversed(path):
        outputs = writes(op)
        unused |= outputs - used - set(op.input_arg_names) - blocked
        used |= {name for name in reads(op) if name not in blocked}
    return unused


def _limit(grad: GradOp, forward: Operator, blocked: set[str]) -> GradOp | None:
    """``grad`` without the gradients nobody wants; None when none is left."""
    outputs = {}
    for slot, names in grad.outputs.items():
        kept = [EMPTY if _base(name) in blocked else name for name in names]
        several = len(forward.input(slot.removesuffix(GRAD))) > 1
        outputs[slot] = kept if several else [name for name in kept if name != EMPTY]
    if all(name == EMPTY for names in outputs.values() for name in names):
        return None
    return grad._replace(outputs=outputs)


def _only_useful(steps: list[Step], blocked: set[str]) -> list[Step]:
    """Without the operators that only pass on gradients which nothing computes."""
    dead = {grad_name(name) for name in blocked}
    made: set[str] = set()
    kept = []
    for grad, forward in steps:
        incoming = [n for names in grad.inputs.values() for n in names if GRAD in n]
        outgoing = [n for names in grad.outputs.values() for n in names]
        if incoming and all(name in dead and name not in made for name in incoming):
            dead.update(outgoing)
            continue
        made.update(outgoing)
        kept.append((grad, forward))
    return kept


def _with_sums(steps: list[Step], block_idx: int) -> list[Step]:
    """Give every contribution to a gradient a name of its own, and add them up where they are needed."""
    contributions: dict[str, int] = {}
    for grad, _ in steps:
        for names in grad.outputs.values():
            for name in names:
                contributions[name] = contributions.get(name, 0) + 1
    several = {n for n, count in contributions.items() if count > 1 and n != EMPTY}
    parts: dict[str, list[str]] = {}
    result: list[Step] = []

    def total(name: str, forward: Operator) -> None:
        names = parts.pop(name)
        if len(names) > 1:
            attrs = {"use_mkldnn": False}
            result.append((GradOp("sum", {"X": names}, {"Out": [name]}, attrs, own_attrs=True), forward))

    for grad, forward in steps:
        for names in grad.inputs.values():
            for name in names:
                if name in parts:
                    total(name, forward)
        outputs = {}
        for slot, names in grad.outputs.items():
            outputs[slot] = [_part(n, parts, block_idx) if n in several else n for n in names]
        result.append((grad._replace(outputs=outputs), forward))
    for name in list(parts):
        total(name, result[-1][1])
    return result


def _part(name: str, parts: dict[str, list[str]], block_idx: int) -> str:
    mine = parts.setdefault(name, [])
    mine.append(f"{name}@RENAME@block{block_idx}@{len(mine)}")
    return mine[-1]


def _with_zeros(steps: list[Step], blocked: set[str]) -> list[Step]:
    """Zeros for the gradients that an operator reads and nothing computes."""
    made: set[str] = set()
    result: list[Step] = []
    for grad, forward in steps:
        for names in grad.inputs.values():
            missing = [n for n in names if GRAD in n and n not in made and _base(n) in blocked]
            for name in missing:
                zeros = GradOp("fill_zeros_like", {"X": [_base(name)]}, {"Out": [name]}, {}, own_attrs=True)
                result.append((zeros, forward))
                made.add(name)
        result.append((grad, forward))
        made.update(n for names in grad.outputs.values() for n in names)
    return result


def _base(name: str) -> str:
    """The variable a gradient belongs to."""
    return name.split(GRAD)[0]


def _append(
    block: Block, steps: list[Step], role: int, callbacks: Sequence[Callable[..., None]] | None
) -> None:
    context: dict[str, str] = {}
    for grad, forward in steps:
        for names in grad.outputs.values():
            for name in names:
                if name != EMPTY and not block._has_var_recursive(name):
                    like = block._find_var_recursive(_base(name))
                    block.create_var(
                        name=name,
                        dtype=VarType.FP32 if like is None else like.dtype,
                        shape=() if like is None else like.shape,
                        type=VarType.LOD_TENSOR if like is None else like.type,
                    )
                context[name] = _base(name)
        block.append_grad_op(grad, forward, role)
        for callback in callbacks or ():
            callback(block=block, context=context)


def _pairs(
    block: Block, parameter_list: Sequence[Parameter | str] | None
) -> list[tuple[Parameter, Variable]]:
    """Parameters with their gradients; marks the operators that compute them."""
    top = block.program.global_block()
    if parameter_list is None:
        parameters = [p for p in block.program.all_parameters() if p.trainable]
    else:
        parameters = [_parameter(top, p) for p in parameter_list]
    writers = {name: op for op in block.ops for name in op.output_arg_names}
    pairs = []
    for parameter in parameters:
        gradient = top.vars.get(grad_name(parameter.name))
        if gradient is None:
            continue
        writer = writers[gradient.name]
        writer._set_attr("op_role_var", [parameter.name, gradient.name, *writer.attrs.get("op_role_var", [])])
        pairs.append((parameter, gradient))
    return pairs


def _parameter(block: Block, parameter: Parameter | str) -> Parameter:
    found = block.var(parameter) if isinstance(parameter, str) else parameter
    if not isinstance(found, Parameter):
        raise GraphError(f"append_backward: {found.name!r} in parameter_list is no parameter")
    return found
