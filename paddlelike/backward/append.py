"""Append the backward pass to a program: :func:`append_backward` and :func:`gradients`.

Reverse-mode differentiation over the program, with Paddle's names: the gradient of ``x`` is ``x@GRAD``;
several contributions are ``x@GRAD@RENAME@block0@0``, ``...@1``, which a ``sum`` operator adds just before the
first operator that needs the total. The gradient operator of an operator with a block runs a block of
gradient operators.

``paths`` finds the forward operators to differentiate, ``build`` turns them into gradient operators,
``transform`` drops, sums and completes these, and ``names`` keeps several passes apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set as AbstractSet
from typing import Any

from paddlelike.backward.build import build_steps
from paddlelike.backward.names import PassNames
from paddlelike.backward.paths import (
    check_sequence,
    collect_stops,
    find_constants,
    find_path,
    find_unused_outputs,
    get_name,
)
from paddlelike.backward.recompute import build_recomputing_steps, finish_as_fluid
from paddlelike.backward.transform import Step, add_sums, collect_gradients
from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.foundation.docstrings import describe_like
from paddlelike.foundation.garbage import pause_collection
from paddlelike.framework import Block, Operator, OpRole, Variable, follows_fluid
from paddlelike.framework.opdef import EMPTY, GRAD, GradOp, grad_name, make_plain_op


@pause_collection
def append_backward(
    loss: Variable,
    parameter_list: Sequence[Variable | str] | None = None,
    no_grad_set: Iterable[Variable | str] | None = None,
    callbacks: Sequence[Callable[..., None]] | None = None,
    checkpoints: Sequence[Variable | str] | None = None,
) -> list[tuple[Variable, Variable]]:
    """Append operators that compute the gradient of ``loss`` by every trainable parameter.

    Parameters
    ----------
    loss
        A variable of shape ``[1]``.
    parameter_list
        Only these parameters, or other variables, such as an input of ``stop_gradient=False``. None means all
        parameters that are trained.
    no_grad_set
        Variables, or their names, at which the pass stops (besides those with ``stop_gradient``).
    callbacks
        Called with ``block=`` and ``context=`` (gradient name -> variable name) after each operator.
    checkpoints
        Activations that stay in memory; those between them are computed a second time.

    Returns
    -------
    list of tuple
        Pairs of a parameter and its gradient, in the order in which the parameters were created.

    Raises
    ------
    TypeError
        ``loss`` is not a variable, or a list holds something besides variables and names.
    GraphError
        ``loss`` has several elements, is computed in a complete block, or is not computed; a name in
        ``parameter_list`` is not a variable; an operator cannot be differentiated.

    See Also
    --------
    fluid.backward.calc_gradient, fluid.gradients, fluid.optimizer.Optimizer.backward

    >>> import paddlelike as fluid
    >>> out = fluid.layers.fc(fluid.data("x", [None, 4]), 1, param_attr="w", bias_attr=False)
    >>> [(w.name, grad.name) for w, grad in fluid.backward.append_backward(fluid.layers.mean(out))]
    [('w', 'w@GRAD')]
    """
    producer = _find_producer(loss)
    block = loss.block
    producer._set_attr("op_role", producer.attrs.get("op_role", 0) | OpRole.Loss)
    if block.program.current_block().idx != 0:
        return append_in_branch(loss, producer, parameter_list, no_grad_set, callbacks)
    stops = collect_stops(block, no_grad_set)
    parameters = _select_parameters(block, parameter_list)
    names = PassNames(block)
    seed = _seed(loss, names)
    path = find_path(block, {loss.name}, stops, wanted=[one.name for one in parameters])
    if checkpoints:
        steps, local = build_recomputing_steps(block, loss.name, stops, checkpoints)
    else:
        stops |= find_unused_outputs(path, {loss.name}, stops)
        steps = build_steps(block, path, stops, {grad_name(loss.name)})
    steps = names.rename(steps)
    _append(block, [Step(seed, producer)], OpRole.Backward | OpRole.Loss, names, callbacks)
    begin = len(block.ops)
    _append(block, steps, OpRole.Backward, names, callbacks)
    if checkpoints:
        finish_as_fluid(block, block.ops[begin:], local)
    return _pair_with_gradients(block, parameters, names)


def append_in_branch(
    loss: Variable,
    producer: Operator,
    parameter_list: Sequence[Variable | str] | None,
    no_grad_set: Iterable[Variable | str] | None,
    callbacks: Sequence[Callable[..., None]] | None,
) -> list[tuple[Variable, Variable]]:
    """Append the backward pass of a loss to a new block, for a loss of the current branch or an outer block.

    The pass continues through the blocks around the branch. The caller that completes the branch appends the
    operator that runs the new block. Result and errors are those of :func:`append_backward`.
    """
    program = loss.block.program
    branch = program.current_block()
    parameters = _select_parameters(branch, parameter_list)
    stops = collect_stops(program.global_block(), no_grad_set)
    target = program._create_block(parent_idx=branch.parent_idx)
    target.forward_block_idx, program.current_block_idx = branch.idx, branch.idx
    names = PassNames(target, counts=False)
    seed = _seed(loss, names)
    wanted, given = {loss.name}, {grad_name(loss.name)}
    steps: list[Step] = []
    block: Block | None = branch
    while block is not None:
        stops |= find_constants(block)
        path = find_path(block, wanted, stops)
        stops |= find_unused_outputs(path, wanted, stops)
        steps += build_steps(block, path, stops, given)
        given |= {name for step in steps for name in collect_gradients(step.grad.outputs)}
        if path:
            wanted = {name for op in path for name in op.input_arg_names if name not in stops}
        block = block.parent
    steps = names.rename(add_sums(steps, target.idx))  # for variables that several blocks use
    _append(target, [Step(seed, producer)], OpRole.Backward | OpRole.Loss, names, callbacks)
    _append(target, steps, OpRole.Backward, names, callbacks)
    return _pair_with_gradients(target, parameters, names)


def _seed(loss: Variable, names: PassNames) -> GradOp:
    """Return the first operator of a backward pass, which sets the gradient of the loss to 1."""
    attrs = {"shape": [1], "value": 1.0, "dtype": int(loss.dtype), "force_cpu": False}
    return make_plain_op("fill_constant", {}, {"Out": [names.start_at(loss.name)]}, attrs)


def gradients(
    targets: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    target_gradients: Variable | Sequence[Variable | None] | None = None,
    no_grad_set: Iterable[Variable | str] | None = None,
) -> list[Variable | None]:
    """Append operators that compute the gradients of ``targets`` by ``inputs``.

    Parameters
    ----------
    targets
        A variable, or a list of variables.
    inputs
        A variable, or a list of variables.
    target_gradients
        The gradient of each target, in its shape, to start from; None for gradients of 1.
    no_grad_set
        Variables, or their names, through which no gradient passes; None for none.

    Returns
    -------
    list
        For each input the variable of its gradient, in its shape and dtype; None for an input that the
        targets do not depend on, or that has ``stop_gradient``. For a single such input, as in Fluid, an
        empty list.

    Raises
    ------
    GraphError
        The count or the shapes of ``target_gradients`` differ from the targets, or an operator cannot be
        differentiated.
    TypeError
        A target or an input is not a variable.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4], "float32")
    >>> x.stop_gradient = False
    >>> [one.name for one in fluid.gradients(fluid.layers.mean(x * x), x)]
    ['x@GRAD']
    """
    found = _append_gradients(targets, _to_list(inputs), target_gradients, no_grad_set)
    return [] if len(found) == 1 and found[0] is None else found


@describe_like(gradients)
def calc_gradient(
    targets: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    target_gradients: Variable | Sequence[Variable | None] | None = None,
    no_grad_set: Iterable[Variable | str] | None = None,
) -> Variable | list[Variable | None] | None:
    """Like :func:`gradients`, but for one input return its gradient or None, not a list.

    Returns
    -------
    Variable, list or None
        For one input its gradient, in its shape and dtype, or None; for several inputs a list of them.

    See Also
    --------
    fluid.backward.append_backward, fluid.gradients, fluid.optimizer.Optimizer.backward

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4], "float32")
    >>> x.stop_gradient = False
    >>> fluid.backward.calc_gradient(fluid.layers.mean(x * x), x).name
    'x@GRAD'
    """
    found = _append_gradients(targets, _to_list(inputs), target_gradients, no_grad_set)
    return found[0] if len(found) == 1 else found


def _append_gradients(
    targets: Variable | Sequence[Variable],
    inputs: list[Variable],
    target_gradients: Variable | Sequence[Variable | None] | None,
    no_grad_set: Iterable[Variable | str] | None,
) -> list[Variable | None]:
    """Return the gradient of each input, or None for an input that no target depends on."""
    target_list = _to_list(targets)
    given = _to_list(target_gradients) if target_gradients is not None else [None] * len(target_list)
    if len(given) != len(target_list):
        raise GraphError(f"gradients: got {len(target_list)} targets, but {len(given)} target_gradients")
    for one in (*target_list, *inputs):
        if not isinstance(one, Variable):
            raise TypeError(
                f"gradients: {one!r} is not a variable\n"
                "  hint: program.global_block().var(name) finds a variable by its name"
            )
    block = target_list[0].block
    stops = collect_stops(block, no_grad_set)
    ends = {v.name for v in target_list}
    path = find_path(block, ends, stops, {v.name for v in inputs if not v.stop_gradient})
    stops |= find_unused_outputs(path, ends, stops)
    inner_names = {name for op in path for name in op.input_arg_names}
    names = PassNames(block)
    starts: list[Step] = []
    for target, start in zip(target_list, given, strict=True):
        _check_start(target, start)
        starts += _build_starts(target, start, names, alone=target.name not in inner_names)
    steps = build_steps(block, path, stops, {grad_name(name) for name in ends}, starts)
    _append(block, names.rename(steps), OpRole.Backward, names)
    found = [None if one.stop_gradient else names.get_gradient(one.name) for one in inputs]
    return [None if name is None else block._find_var_recursive(name) for name in found]


def _find_producer(loss: object) -> Operator:
    """Return the operator that computes a loss. Raises TypeError and GraphError when it is not a loss."""
    if not isinstance(loss, Variable):
        raise TypeError(f"append_backward: loss is {loss!r}, expected a variable")
    block = loss.block
    if block.idx != 0 and block is not block.program.current_block():
        raise GraphError(
            f"append_backward: {loss.name!r} is computed inside a block of control flow (block {block.idx})",
            hint="minimize it inside of that block, or return the loss from it, as layers.cond does",
        )
    producer = next((op for op in reversed(block.ops) if loss.name in op.output_arg_names), None)
    if producer is None:
        raise GraphError(f"append_backward: no operator computes {loss.name!r}")
    of_a_branch = producer.type == "select_input"  # its declared shape is the shape of one branch
    if not of_a_branch and any(dim != 1 for dim in loss.shape):
        raise GraphError(
            f"append_backward: loss {loss.name!r} has shape {list(loss.shape)}, expected [1]",
            hint="reduce it to one value, as layers.mean does",
        )
    return producer


def _to_list(variables: Variable | Sequence[Variable | None]) -> list[Any]:
    return list(variables) if isinstance(variables, list | tuple) else [variables]


def _check_start(target: Variable, gradient: Variable | None) -> None:
    if gradient is not None and gradient.shape != target.shape:
        raise GraphError(
            f"gradients: target {target.name!r} has shape {list(target.shape)}, "
            f"but its gradient {gradient.name!r} has shape {list(gradient.shape)}"
        )


def _build_starts(
    target: Variable, gradient: Variable | None, names: PassNames, *, alone: bool
) -> list[Step]:
    """Return the operators that set the gradient of one target: to ones of its shape, or to the given value.

    ``alone`` says that the target's gradient has no other contributions.
    """
    last = target.block.ops[-1]
    if gradient is not None and alone:
        names.start_at(target.name, gradient.name)
        return []
    out = {"Out": [names.start_at(target.name) if alone else grad_name(target.name)]}
    if gradient is not None:
        return [Step(make_plain_op("assign", {"X": [gradient.name]}, out, {}), last)]
    shape = f"{target.name}_shape"
    attrs = {"shape": list(target.shape), "value": 1.0, "dtype": int(target.dtype)}
    return [
        Step(make_plain_op("shape", {"Input": [target.name]}, {"Out": [shape]}, {}), last),
        Step(make_plain_op("fill_constant", {"ShapeTensor": [shape]}, out, attrs), last),
    ]


def _append(
    block: Block,
    steps: list[Step],
    role: int,
    pass_names: PassNames,
    callbacks: Sequence[Callable[..., None]] | None = None,
    carried: AbstractSet[str] | None = frozenset(),
) -> None:
    """Create the variables that gradient operators write, and append the operators.

    ``carried`` are the gradients that a step of a loop passes to the step before it; in the loop's block,
    an operator is left out if none of its incoming gradients exists.
    """
    context: dict[str, str] = {}
    for grad, forward, inner in steps:
        if inner is not None:
            both = set(collect_gradients(grad.inputs)).intersection(collect_gradients(grad.outputs))
            carried_inside = both if grad.type == "while_grad" else None
            _append(inner.block, inner.steps, role, pass_names, carried=carried_inside)
            if not grad.outputs:
                inner.block.vars.clear()  # as in Fluid, where nothing runs this block
        written = [name for _, names in sorted(grad.outputs.items()) for name in names if name != EMPTY]
        incoming = collect_gradients(grad.inputs)
        if not written or (
            carried is not None
            and follows_fluid("overwritten_gradient")
            and incoming
            and not any(name in carried or block._has_var_recursive(name) for name in incoming)
        ):
            continue
        for name in (*written, *(incoming if grad.type == "sum" else ())):  # a part may have been left out
            variable = pass_names.get_variable(name)
            context[name] = variable
            if not block._has_var_recursive(name):
                _create_gradient(block, name, block._find_var_recursive(variable))
        block.append_grad_op(grad, forward, role)
        if grad.type == "shape":
            _declare_shape(block, written[0])
        for callback in callbacks or ():
            callback(block=block, context=context)


def _declare_shape(block: Block, name: str) -> None:
    """Declare a variable that holds a shape. As in Fluid, it has the type of a gradient."""
    variable, like = block.var(name), block._find_var_recursive(name.split(GRAD)[0])
    if GRAD in name and like is not None:
        variable.dtype, variable.shape = like.dtype, like.shape
    else:
        variable.dtype = VarType.BOOL


def _create_gradient(block: Block, name: str, like: Variable | None) -> None:
    """Create a gradient's variable, with the shape and type of the forward variable if that exists."""
    block.create_var(
        name=name,
        dtype=VarType.FP32 if like is None else like.dtype,
        shape=() if like is None else like.shape,
        type=VarType.LOD_TENSOR if like is None else like.type,
    )


def _select_parameters(block: Block, chosen: Sequence[Variable | str] | None) -> list[Variable]:
    """Return the parameters to pair with their gradients."""
    if chosen is None:
        return [p for p in block.program.all_parameters() if p.trainable]
    top = block.program.global_block()
    return [top.var(get_name("parameter_list", one)) for one in check_sequence("parameter_list", chosen)]


def _pair_with_gradients(
    block: Block, parameters: list[Variable], names: PassNames
) -> list[tuple[Variable, Variable]]:
    """Return the pairs of parameter and gradient of this pass; mark the operators that compute the
    gradients.
    """
    writers = {name: op for op in block.ops for name in op.output_arg_names}
    pairs = []
    for parameter in parameters:
        gradient = block.vars.get(names.get_gradient(parameter.name) or "")
        if gradient is None:
            continue
        writer = writers[gradient.name]
        writer._set_attr("op_role_var", [parameter.name, gradient.name, *writer.attrs.get("op_role_var", [])])
        pairs.append((parameter, gradient))
    return pairs
