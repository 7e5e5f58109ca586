"""Gradient operators of a path of forward operators, including operators that run blocks."""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.backward import transform
from paddlelike.backward.paths import find_constants, find_path, has_gradient, make_gradients
from paddlelike.backward.transform import GradBlock, Step
from paddlelike.core import VarType
from paddlelike.framework import Block, Operator, follows_fluid, warn_quirk
from paddlelike.framework.opdef import BlockGradient, GradOp, grad_name, registry


def build_steps(
    block: Block, path: list[Operator], stops: set[str], given: set[str] | None, starts: Sequence[Step] = ()
) -> list[Step]:
    """Return the operators of the backward pass of ``path``; several contributions to one gradient are
    summed.

    ``given`` are the gradients that exist before the pass, or None inside of a loop. An operator is left out
    if none of its incoming gradients exists. ``starts`` are put in front.
    """
    steps: list[Step] = []
    existing = set(given or ())
    for op in reversed(path):
        if op.sub_blocks():
            new_steps = _build_block_steps(op, existing)
        else:
            new_steps = [Step(grad, op) for grad in make_gradients(op)]
        for step in map(transform.mark_values, new_steps):
            grad = transform.drop_stopped_outputs(step.grad, op, stops, keep_empty=step.inner is not None)
            steps.append(Step(grad, op, step.inner))
            existing.update(transform.collect_gradients(grad.outputs))
    if not block.idx and block.program._backward_passes > 1 and follows_fluid("later_pass"):
        for at, step in enumerate(steps):
            if not transform.collect_gradients(step.grad.inputs):
                steps[at] = step._replace(grad=step.grad._replace(outputs={}))  # keeps the loop's new block
                if step.inner is not None:
                    warn_quirk("later_pass")
    known = None
    if follows_fluid("overwritten_gradient") and (block.idx or block.program._backward_passes < 2):
        given = given if block.idx else None  # in Fluid later passes look for existing gradients
        known = {name for op in path for name in (*op.input_arg_names, *op.output_arg_names)}
    steps = transform.complete_steps(steps, stops, given, block.idx, starts, known)
    if any(_ends_at_last_step(step.grad, block) for step in steps):
        warn_quirk("loop_gradient")
    return steps


def _build_block_steps(op: Operator, existing: set[str]) -> list[Step]:
    """Create the gradient block of an operator that runs a block; return the gradient operators."""
    program = op.block.program
    (index,) = op.sub_blocks()
    forward = program.blocks[index]
    block = program._create_block()
    block.forward_block_idx = index
    around = block.parent
    assert around is not None
    is_loop = op.type == "while" and follows_fluid("overwritten_gradient")
    given = None if is_loop else existing | _find_carried_gradients(op)
    path = forward.ops
    if op.type == "conditional_block":
        path = find_path(
            forward, {name for name in op.output_arg_names if grad_name(name) in existing}, set()
        )
    path = [inner for inner in path if has_gradient(inner)]
    steps = build_steps(forward, path, find_constants(forward), given)
    program._rollback()
    gradient = BlockGradient(
        block.idx,
        [step.grad for step in steps],
        lambda name: forward._has_var_recursive(name) or around._has_var_recursive(name),
        lambda name: is_loop or name in existing,
    )
    inner = GradBlock(block, steps)
    return [Step(grad, op, inner) for grad in registry.find(op.type).make_block_grad(op, gradient)]


def _ends_at_last_step(grad: GradOp, block: Block) -> bool:
    """Return whether a ``while_grad`` reads and writes the gradient of the same tensor."""
    if grad.type != "while_grad" or not grad.outputs:
        return False
    shared = set(grad.inputs["Out@GRAD"]).intersection(grad.outputs["X@GRAD"])
    tensors = [block._find_var_recursive(transform.find_variable_name(name)) for name in shared]
    return any(var is not None and var.type == VarType.LOD_TENSOR for var in tensors)


def _find_carried_gradients(op: Operator) -> set[str]:
    """Return the gradients that a step of a loop passes to the step before it."""
    if op.type == "recurrent":
        return {grad_name(name) for name in (*op.attrs["states"], *op.output("outputs"))}
    constants = find_constants(op.block)
    return {grad_name(n) for n in op.input("X") if n in op.output("Out") and n not in constants}
