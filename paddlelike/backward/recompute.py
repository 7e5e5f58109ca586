"""Recomputation: backward passes that compute activations a second time instead of keeping them.

Checkpoints cut the operators into segments. The backward pass of a segment begins with a copy of its
operators, which writes to variables of its own (``<name>.subprog_<segment>``); gradients read these. Chen et
al., Training deep nets with sublinear memory cost, 2016.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from paddlelike import unique_name
from paddlelike.backward import transform
from paddlelike.backward.paths import find_path, find_unused_outputs, has_gradient, make_gradients
from paddlelike.backward.transform import Step
from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework import Block, Operator, OpRole, Variable
from paddlelike.framework.opdef import GRAD, RECOMPUTED, GradOp, grad_name, registry

Span = tuple[int, int]  # the first operator of a segment, and the one after its last


def build_recomputing_steps(
    block: Block, loss: str, stops: set[str], checkpoints: Sequence[Variable | str]
) -> tuple[list[Step], list[Step | Operator]]:
    """Return the operators of the backward pass from ``loss``, including the recomputation of activations.

    The result also holds what :func:`finish_as_fluid` needs: the gradients outside of all segments, and the
    segments. Every dropout gets its own seed, so that both runs drop the same elements. Raises GraphError for
    an operator that runs a block.
    """
    ops = find_path(block, {loss}, stops, differentiable=False)
    for op in ops:
        if op.sub_blocks():
            raise GraphError(
                f"recomputation does not support operator {op.type!r}, which runs a block",
                hint="minimize without checkpoints",
            )
    ops = _seed_dropouts(block, ops)
    stops |= find_unused_outputs([op for op in ops if has_gradient(op)], {loss}, stops)
    uses = _Uses(ops)
    names = uses.sort([one if isinstance(one, str) else one.name for one in checkpoints])
    segments = uses.find_segments(names)
    kept = {*names, *uses.find_kept(block, segments)}
    copies: dict[str, str] = {}  # recomputed variables by name
    steps: list[Step] = []
    local: list[Step | Operator] = []
    end = len(ops)
    for number, (begin, stop) in enumerate(reversed(segments)):
        outside = [step for op in reversed(ops[stop:end]) for step in _differentiate(op, stops, {})]
        steps += outside
        end = begin
        segment = ops[begin:stop]
        local += [*outside, *segment]
        for op in segment:
            for name in (*op.input_arg_names, *op.output_arg_names):
                if name not in kept and not block._var_recursive(name).persistable:
                    copies.setdefault(name, f"{name}{RECOMPUTED}{number}")
        steps += [_copy(op, copies) for op in segment if _is_needed(block, op, kept)]
        for op in reversed(segment):
            steps += _differentiate(op, stops, copies)
    if not segments:
        steps += [step for op in reversed(ops) for step in _differentiate(op, stops, {})]
        local += steps
    return transform.complete_steps(steps, stops, {grad_name(loss)}, block.idx), local


def finish_as_fluid(block: Block, added: Sequence[Operator], local: Sequence[Step | Operator]) -> None:
    """Add the operators that Fluid adds at the end of a program with recomputation.

    As in Fluid, recomputed variables do not get a type, and gradients without their operator's attributes do
    not get a device. Two blocks that no operator runs keep the operators from which the pass was built.
    """
    created: set[str] = set()
    for op in added:
        if "op_role_var" not in op.attrs and op.type not in ("sum", "fill_constant", "fill_zeros_like"):
            op.attrs.pop("op_device", None)
        is_copy = any(RECOMPUTED in name for name in op.output_arg_names)
        source = (op.inputs.get("X") or op.inputs.get("Input") or [""])[0]
        for slot, names in op.outputs.items():
            for name in names:
                like = block._find_var_recursive(transform.find_variable_name(name))
                if GRAD in name and name not in created and like is not None:
                    created.add(name)
                    block._var_recursive(name).dtype = like.dtype
                elif is_copy and registry.find(op.type).keeps_dtype and slot in ("Out", "Output", "Y"):
                    block._var_recursive(name).dtype = block._var_recursive(source).dtype
                elif RECOMPUTED in name:
                    block._var_recursive(name).dtype = VarType.BOOL
    program, current = block.program, block.program.current_block_idx
    first, second = program._create_block(), program._create_block()
    rest = list(added)
    for one in local:
        _leave(first, one if isinstance(one, Operator) else _find_made(one, rest, first))
    for op in added:
        if any(RECOMPUTED in name for name in op.output_arg_names):
            _leave(second, op)
    program.current_block_idx = current


def _find_made(step: Step, rest: list[Operator], scraps: Block) -> Operator:
    """Return the operator that was appended for a step, and remove it from the candidates.

    The outputs of the operator may have other names than the outputs of the step.

    If the step was left out because its results are not needed, return the operator that it would have
    become.
    """
    for index, op in enumerate(rest):
        if op.type == step.grad.type and op.inputs == step.grad.inputs:
            return rest.pop(index)
    op = scraps.append_grad_op(step.grad, step.forward, OpRole.Backward)
    scraps._remove_op(len(scraps.ops) - 1)
    if step.grad.own_attrs:
        del op.attrs["op_device"]
    return op


def _leave(block: Block, op: Operator) -> None:
    attrs = op.attrs | {"op_role": OpRole.Backward}
    block.ops.append(Operator(block, op.type, dict(op.inputs), dict(op.outputs), attrs, op.line))


class _Uses:
    """For each variable, the indexes of the operators that read it and write it."""

    def __init__(self, ops: list[Operator]) -> None:
        self._ops = ops
        self._readers: dict[str, list[int]] = {}
        self._writers: dict[str, list[int]] = {}
        for index, op in enumerate(ops):
            for names, table in ((op.input_arg_names, self._readers), (op.output_arg_names, self._writers)):
                for name in names:
                    table.setdefault(name, []).append(index)

    def sort(self, names: list[str]) -> list[str]:
        """Return names in the order in which operators first write them."""
        used = [name for name in dict.fromkeys(names) if name in self._readers or name in self._writers]
        return sorted(used, key=lambda name: max(self._writers.get(name, [-1])))

    def find_segments(self, names: list[str]) -> list[Span]:
        """Return the segments: the operators before the first checkpoint, and those between neighbouring
        checkpoints.
        """
        if len(names) == 1:
            last = max(self._writers.get(names[0], [-1]))
            found = [(0, last + 1)] if last > 0 else []
        else:
            found = []
            for start, stop in itertools.pairwise(names):
                first = min(self._readers.get(start, [len(self._ops)]))
                last = max(self._writers.get(stop, [-1]))
                if first < last:
                    found.append((first, last + 1))
        return [(0, found[0][0]), *found] if found and found[0][0] else found

    def find_kept(self, block: Block, segments: list[Span]) -> set[str]:
        """Return the variables that stay in memory: inputs, seeds, and those that several segments use."""
        kept = {
            name
            for name in self._readers
            if name not in self._writers and not block._var_recursive(name).persistable
        }
        for op in self._ops:
            if op.type in ("seed", "read"):
                kept.update(op.output_arg_names)
        for begin, end in segments:
            for op in self._ops[begin:end]:
                kept.update(n for n in op.output_arg_names if any(i >= end for i in self._readers.get(n, ())))
                kept.update(n for n in op.input_arg_names if any(i < begin for i in self._writers.get(n, ())))
        return kept


def _seed_dropouts(block: Block, ops: list[Operator]) -> list[Operator]:
    """Put an operator that draws a seed in front of every dropout, and return all operators."""
    result = []
    for op in ops:
        if op.type == "dropout":
            result.append(_insert_seed(block, op))
        result.append(op)
    return result


def _insert_seed(block: Block, dropout: Operator) -> Operator:
    name = unique_name.generate(f"{unique_name.generate('seed')}.tmp")
    holder = block.create_var(name=name, dtype=VarType.INT32, stop_gradient=False)
    seed = int(dropout.attrs["seed"]) if dropout.attrs.get("fix_seed") else 0
    added = block._insert_op(dropout.idx, "seed", {}, {"Out": [holder]}, {"seed": seed})
    dropout.inputs = {**dropout.inputs, "Seed": [name]}
    for attribute in ("fix_seed", "seed"):
        dropout.attrs.pop(attribute, None)
    return added


def _is_needed(block: Block, op: Operator, kept: set[str]) -> bool:
    """Return whether an operator computes a value that must be recomputed."""
    return any(
        name not in kept and not (block.has_var(name) and block.var(name).persistable)
        for name in op.output_arg_names
    )


def _copy(op: Operator, names: dict[str, str]) -> Step:
    """Return a copy of an operator that reads and writes the recomputed variables."""
    hidden = ("op_role", "op_role_var", "op_namescope", "op_device", "op_callstack")
    attrs = {name: value for name, value in op.attrs.items() if name not in hidden}
    return Step(GradOp(op.type, _rename(op.inputs, names), _rename(op.outputs, names), attrs), op)


def _differentiate(op: Operator, stops: set[str], names: dict[str, str]) -> list[Step]:
    """Return the gradient operators of ``op``, which read the recomputed variables."""
    if not has_gradient(op):
        return []
    found = []
    for grad in make_gradients(op):
        kept = transform.drop_stopped_outputs(grad, op, stops, keep_empty=False)
        found.append(Step(kept._replace(inputs=_rename(kept.inputs, names)), op))
    return found


def _rename(slots: dict[str, list[str]], names: dict[str, str]) -> dict[str, list[str]]:
    return {slot: [names.get(name, name) for name in each] for slot, each in slots.items()}
