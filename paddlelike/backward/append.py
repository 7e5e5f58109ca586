"""The backward pass: operators that compute gradients, appended behind the forward part.

Reverse-mode differentiation over the program, with Paddle's names: the gradient of ``x`` is ``x@GRAD``;
several contributions are ``x@GRAD@RENAME@block0@0``, ``...@1``, added up by a ``sum`` operator just before
the first operator that needs the total. An operator that runs a block gets a gradient that runs the
gradient of the block, made in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from paddlelike.backward import grad_steps
from paddlelike.backward.grad_names import PassNames
from paddlelike.backward.grad_steps import GradBlock, Step
from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError, UnsupportedError
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator, OpRole
from paddlelike.framework.graph.variable import Parameter, Variable
from paddlelike.framework.opdef import EMPTY, GRAD, BlockGradient, GradOp, grad_name, registry
from paddlelike.framework.passes.views import collect_reads, collect_writes

__all__ = ["append_backward", "gradients"]


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
    if any(dim != 1 for dim in loss.shape):
        raise GraphError(
            f"append_backward: loss {loss.name!r} has shape {list(loss.shape)}, expected [1]",
            hint="reduce it to one number, as layers.mean does",
        )
    block = loss.block
    if block.idx != 0:
        raise GraphError(
            f"append_backward: {loss.name!r} is made inside a block of control flow (block {block.idx})",
            hint="hand the loss out of the block (layers.cond returns it) and minimize it outside",
        )
    producer = next((op for op in reversed(block.ops) if loss.name in op.output_arg_names), None)
    if producer is None:
        raise GraphError(f"append_backward: no operator computes {loss.name!r}")
    producer._set_attr("op_role", producer.attrs.get("op_role", 0) | OpRole.Loss)
    blocked = _blocked(block, no_grad_set)
    parameters = _parameters(block, parameter_list)
    names = PassNames(block)
    seed = GradOp(
        "fill_constant",
        {},
        {"Out": [names.begin(loss.name)]},
        {"shape": [1], "value": 1.0, "dtype": int(loss.dtype), "force_cpu": False},
        own_attrs=True,
    )
    path = _path(block, {loss.name}, blocked)
    blocked |= _unused_outputs(path, {loss.name}, blocked)
    steps = names.give(_backward_steps(block, path, blocked, {grad_name(loss.name)}))
    _append(block, [Step(seed, producer)], OpRole.Backward | OpRole.Loss, names, callbacks)
    _append(block, steps, OpRole.Backward, names, callbacks)
    return _pairs(block, parameters, names)


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
    ends = {v.name for v in target_list}
    path = _path(block, ends, blocked, {v.name for v in input_list})
    blocked |= _unused_outputs(path, ends, blocked)
    within = {name for op in path for name in op.input_arg_names}  # a start among other contributions
    names = PassNames(block)
    starts: list[Step] = []
    for target, start in zip(target_list, given, strict=True):
        _check_start(target, start)
        starts += _starts(target, start, names, alone=target.name not in within)
    steps = _backward_steps(block, path, blocked, {grad_name(name) for name in ends}, starts)
    _append(block, names.give(steps), OpRole.Backward, names)
    found = [names.of(variable.name) for variable in input_list]
    return [None if name is None else block._var_recursive(name) for name in found]


calc_gradient = gradients


def _listed(variables: Any) -> list[Any]:
    return list(variables) if isinstance(variables, list | tuple) else [variables]


def _check_start(target: Variable, gradient: Variable | None) -> None:
    if gradient is not None and gradient.shape != target.shape:
        raise GraphError(
            f"gradients: target {target.name!r} has shape {list(target.shape)}, "
            f"its gradient {gradient.name!r} {list(gradient.shape)}"
        )


def _starts(target: Variable, gradient: Variable | None, names: PassNames, *, alone: bool) -> list[Step]:
    """The operators that start the pass at one target: ones in its shape, or the gradient given.

    ``alone``: nothing else contributes to the target's gradient.
    """
    last = target.block.ops[-1]
    if gradient is not None and alone:
        names.begin(target.name, gradient.name)
        return []
    out = {"Out": [names.begin(target.name) if alone else grad_name(target.name)]}
    if gradient is not None:
        return [Step(GradOp("assign", {"X": [gradient.name]}, out, {}, own_attrs=True), last)]
    shape = f"{target.name}_shape"
    attrs = {"shape": list(target.shape), "value": 1.0, "dtype": int(target.dtype)}
    return [
        Step(GradOp("shape", {"Input": [target.name]}, {"Out": [shape]}, {}, own_attrs=True), last),
        Step(GradOp("fill_constant", {"ShapeTensor": [shape]}, out, attrs, own_attrs=True), last),
    ]


def _blocked(block: Block, no_grad_set: Iterable[Variable | str] | None) -> set[str]:
    """The names beyond which the pass does not go."""
    names = [_name("no_grad_set", one) for one in _several("no_grad_set", no_grad_set)]
    return {name.removesuffix(GRAD) for name in names} | _constants(block)


def _several(what: str, given: Iterable[Variable | str] | None) -> list[Variable | str]:
    if isinstance(given, str) or (given is not None and not isinstance(given, Iterable)):
        raise TypeError(f"{what} holds variables or their names, it is not {given!r}")
    return list(given or ())


def _name(what: str, one: Variable | str) -> str:
    if not isinstance(one, Variable | str):
        raise TypeError(f"{what} holds variables or their names, not {one!r}")
    return one if isinstance(one, str) else one.name


def _constants(block: Block) -> set[str]:
    """The variables of a block itself at which gradients stop."""
    return {variable.name for variable in block.vars.values() if variable.stop_gradient}


def _path(
    block: Block, targets: set[str], blocked: set[str], inputs: set[str] | None = None
) -> list[Operator]:
    """The operators between ``inputs`` (all, if None) and ``targets``, in program order."""
    ops = block.ops
    if inputs is not None:
        reached, forward = set(inputs), []
        for op in ops:
            if reached & collect_reads(op):
                forward.append(op)
                reached |= {name for name in op.output_arg_names if name not in blocked}
        ops = forward
    needed, path = set(targets), []
    for op in reversed(ops):
        if needed.intersection(op.output_arg_names) and _has_gradient(op):
            path.append(op)
            needed.update(name for name in op.input_arg_names if name not in blocked)
    return path[::-1]


def _has_gradient(op: Operator) -> bool:
    cls = registry.find_or_none(op.type)
    if cls is None:
        raise GraphError(f"operator {op.type!r} cannot be differentiated: it is not known here")
    if cls.forward_of is not None:
        raise UnsupportedError(
            f"gradients of gradients are not here: {op.output_arg_names} come from operator {op.type!r}",
            hint="set stop_gradient = True on a gradient that is to count as a constant",
        )
    return cls.has_gradient(op)


def _unused_outputs(path: list[Operator], targets: set[str], blocked: set[str]) -> set[str]:
    """Outputs on the path that lead nowhere: their gradient is zero."""
    used, unused = set(targets), set()
    for op in reversed(path):
        if not op.sub_blocks():
            unused |= collect_writes(op) - used - set(op.input_arg_names) - blocked
        used |= {name for name in collect_reads(op) if name not in blocked}
    return unused


def _backward_steps(
    block: Block,
    path: list[Operator],
    blocked: set[str],
    given: set[str],
    starts: Sequence[Step] = (),
) -> list[Step]:
    """The operators of the backward pass of ``path``, contributions to one gradient summed up.

    ``given`` are the gradients that exist before; an operator goes in only if it finds one. ``starts``
    go before all others.
    """
    steps: list[Step] = []
    made = set(given)
    for op in reversed(path):
        if op.sub_blocks():
            found = _block_grads_of(op, made)
        else:
            found = [Step(grad, op) for grad in registry.find(op.type).make_grad(op)]
        for step in found:
            grad = grad_steps.limit(step.grad, op, blocked, keep_empty=step.inner is not None)
            if grad is not None:
                steps.append(step._replace(grad=grad))
                made.update(grad_steps.gradients_in(grad.outputs))
    steps = grad_steps.only_fed(grad_steps.only_useful(steps, blocked), given)
    return grad_steps.with_zeros(grad_steps.with_sums([*starts, *steps], block.idx), blocked)


def _block_grads_of(op: Operator, made: set[str]) -> list[Step]:
    """The gradient of an operator that runs a block, with the gradient of the block."""
    program = op.block.program
    (index,) = op.sub_blocks()
    forward = program.blocks[index]
    block = program._create_block()
    block.forward_block_idx = index
    around = block.parent
    assert around is not None
    given = made | _carried(op)
    path = forward.ops
    if op.type == "conditional_block":
        path = _path(forward, {name for name in op.output_arg_names if grad_name(name) in made}, set())
    path = [inner for inner in path if _has_gradient(inner)]
    steps = _backward_steps(forward, path, _constants(forward), given)
    program._rollback()
    about = BlockGradient(
        block.idx,
        [step.grad for step in steps],
        lambda name: forward._has_var_recursive(name) or around._has_var_recursive(name),
        lambda name: name in made,
    )
    inner = GradBlock(block, steps)
    return [Step(grad, op, inner) for grad in registry.find(op.type).make_block_grad(op, about)]


def _carried(op: Operator) -> set[str]:
    """The gradients that one step of a loop hands to the step before it."""
    if op.type == "recurrent":
        return {grad_name(name) for name in (*op.attrs["states"], *op.output("outputs"))}
    constants = _constants(op.block)
    return {grad_name(n) for n in op.input("X") if n in op.output("Out") and n not in constants}


def _append(
    block: Block,
    steps: list[Step],
    role: int,
    pass_names: PassNames,
    callbacks: Sequence[Callable[..., None]] | None = None,
) -> None:
    context: dict[str, str] = {}
    for grad, forward, inner in steps:
        if inner is not None:
            _append(inner.block, inner.steps, role, pass_names)
        if all(name == EMPTY for names in grad.outputs.values() for name in names):
            continue
        for names in grad.outputs.values():
            for name in names:
                if name != EMPTY and not block._has_var_recursive(name):
                    like = block._find_var_recursive(pass_names.variable(name))
                    block.create_var(
                        name=name,
                        dtype=VarType.FP32 if like is None else like.dtype,
                        shape=() if like is None else like.shape,
                        type=VarType.LOD_TENSOR if like is None else like.type,
                    )
                context[name] = pass_names.variable(name)
        block.append_grad_op(grad, forward, role)
        for callback in callbacks or ():
            callback(block=block, context=context)


def _parameters(block: Block, chosen: Sequence[Parameter | str] | None) -> list[Parameter]:
    """The parameters to pair with their gradients."""
    if chosen is None:
        return [p for p in block.program.all_parameters() if p.trainable]
    top = block.program.global_block()
    found = [top.var(_name("parameter_list", one)) for one in _several("parameter_list", chosen)]
    wrong = [variable.name for variable in found if not isinstance(variable, Parameter)]
    if wrong:
        raise GraphError(f"append_backward: {wrong} in parameter_list are no parameters")
    return [parameter for parameter in found if isinstance(parameter, Parameter)]


def _pairs(block: Block, parameters: list[Parameter], names: PassNames) -> list[tuple[Parameter, Variable]]:
    """Parameters with their gradients of this pass; marks the operators that compute them."""
    top = block.program.global_block()
    writers = {name: op for op in block.ops for name in op.output_arg_names}
    pairs = []
    for parameter in parameters:
        gradient = top.vars.get(names.of(parameter.name) or "")
        if gradient is None:
            continue
        writer = writers[gradient.name]
        writer._set_attr("op_role_var", [parameter.name, gradient.name, *writer.attrs.get("op_role_var", [])])
        pairs.append((parameter, gradient))
    return pairs
