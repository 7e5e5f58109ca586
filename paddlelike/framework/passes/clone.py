"""Copies of programs: full, for tests, for inference, pruned. The original program never changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from paddlelike.core import AttrType
from paddlelike.framework.environment import PADDLE2_VERSION
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator, OpRole
from paddlelike.framework.graph.order import order_as_hashed
from paddlelike.framework.graph.program import Program
from paddlelike.framework.passes.views import find_needed_ops
from paddlelike.framework.quirks import warn_quirk


def copy(program: Program, *, tables: int = 1) -> Program:
    """Return a full copy: parameters stay parameters, the seed is kept.

    Its variables have the order of Fluid's copy, which inserts them into ``tables`` hash tables in turn.
    """
    clone = Program()
    clone.blocks = []
    for block in program.blocks:
        twin = Block(clone, block.idx, block.parent_idx)
        twin.forward_block_idx = block.forward_block_idx
        names = order_as_hashed(block.vars, tables)
        twin.vars = {name: block.vars[name].clone_into(twin) for name in names}
        twin.ops = [op.copy_into(twin) for op in block.ops]
        clone.blocks.append(twin)
    clone._seed = program._seed
    clone._backward_passes = program._backward_passes
    clone.current_block_idx = program.current_block_idx
    clone.encoded, clone.is_versioned = program.encoded, program.is_versioned
    clone.has_operator_versions = program.has_operator_versions
    clone._op_role, clone._op_role_var = program._op_role, list(program._op_role_var)
    clone._copy_dist_param_info_from(program)
    return clone


def copy_for_test(program: Program) -> Program:
    """Return the forward part in test mode: no backward, update or learning-rate operators.

    As in Fluid, a program without the gradient of a loss is copied whole: for example after ``gradients``, or
    with a schedule but without ``minimize``.
    """
    clone = copy(program, tables=5)
    clone._seed = 0
    drop = OpRole.Backward | OpRole.Optimize | OpRole.LRSched
    roles = [op.attrs.get("op_role", 0) for op in program.global_block().ops]
    if OpRole.Backward | OpRole.Loss not in roles:
        has_schedule = any(role & OpRole.LRSched for role in roles)
        drop = OpRole.LRSched if has_schedule and not warn_quirk("clone_schedule") else OpRole.Forward
    dropped_names: set[str] = set()
    for block in clone.blocks:
        dropped = [op for op in block.ops if op.attrs.get("op_role", 0) & drop]
        block.ops = [op for op in block.ops if not op.attrs.get("op_role", 0) & drop]
        dropped_names |= {name for op in dropped for name in (*op.input_arg_names, *op.output_arg_names)}
    if dropped_names:
        if clone.paddle_version < PADDLE2_VERSION:  # later versions determine the meaning of operators
            clone.encoded, clone.is_versioned = None, False  # Paddle's own clone loses its version here
        for op in (op for block in clone.blocks for op in block.ops):
            op.attr_passes += 1  # Paddle's clone was read from a message
    _drop_unreached_blocks(clone)
    _drop_variables(clone, dropped_names)
    _set_test_mode(clone)
    return clone


def copy_for_inference(program: Program, *, without_readers: bool) -> Program:
    """Return a copy in test mode; ``without_readers`` drops the operators that read from a queue."""
    clone = copy(program)
    clone._seed = 0
    if without_readers:
        top = clone.global_block()
        top.ops = [op for op in top.ops if op.type not in ("read", "create_double_buffer_reader")]
        for name in [n for n, v in top.vars.items() if v.type.name == "READER"]:
            del top.vars[name]
    _set_test_mode(clone)
    return clone


def prune(
    program: Program, *, feeds: Iterable[str], targets: Iterable[str], ops: Collection[Operator] = ()
) -> Program:
    """Return a copy with the operators that ``targets`` need, without those that compute a fed variable.

    ``ops`` are further targets: operators of the program.

    The copy has no seed and no version, as in Paddle 1.8. A program of Paddle 2 keeps its version, which
    determines the meaning of its operators.
    """
    clone = copy(program)
    clone._seed = 0
    clone.is_versioned = clone.paddle_version >= PADDLE2_VERSION
    top = clone.global_block()
    kept = [mine for mine, op in zip(top.ops, program.global_block().ops, strict=True) if op in ops]
    needed = find_needed_ops(top, targets=set(targets), fed=set(feeds), kept=kept)
    top.ops = [op for i, op in enumerate(top.ops) if i in needed]
    _drop_unreached_blocks(clone)
    drop_unused_variables(clone, keep=set(targets) | set(feeds))
    return clone


def drop_unused_variables(program: Program, keep: set[str]) -> None:
    """Drop the variables that no operator of ``program`` uses, except ``keep``, in place."""
    used = set(keep)
    for block in program.blocks:
        for op in block.ops:
            used.update(op.input_arg_names, op.output_arg_names)
    for block in program.blocks:
        block.vars = {name: v for name, v in block.vars.items() if name in used}


def _drop_variables(program: Program, candidates: set[str]) -> None:
    """Drop the ``candidates`` that no remaining operator uses, in place."""
    used = {
        name
        for block in program.blocks
        for op in block.ops
        for name in (*op.input_arg_names, *op.output_arg_names)
    }
    for block in program.blocks:
        block.vars = {n: v for n, v in block.vars.items() if n in used or n not in candidates}


def _drop_unreached_blocks(program: Program) -> None:
    """Drop the blocks that no remaining operator runs and give the others new indexes, in place."""
    reached = {0: True}  # an ordered set
    waiting = [0]
    for index in waiting:  # grows while it is iterated
        inner = {i: True for op in program.blocks[index].ops for i in op.sub_blocks()}
        waiting.extend(i for i in inner if i not in reached)
        reached |= inner
    if len(reached) == len(program.blocks):
        return
    new_index = {old: new for new, old in enumerate(sorted(reached))}
    program.blocks = [program.blocks[old] for old in new_index]
    for block in program.blocks:
        block.idx = new_index[block.idx]
        block.parent_idx = new_index.get(block.parent_idx, -1)
        block.forward_block_idx = new_index.get(block.forward_block_idx, -1)
        for op in block.ops:
            for name in op.attrs:
                if op.attr_type(name) == AttrType.BLOCK:
                    op.attrs[name] = new_index[op.attrs[name]]
                elif op.attr_type(name) == AttrType.BLOCKS:
                    op.attrs[name] = [new_index[index] for index in op.attrs[name]]


def _set_test_mode(program: Program) -> None:
    for block in program.blocks:
        for op in block.ops:
            if "is_test" in op.attrs:
                op.attrs["is_test"] = True
