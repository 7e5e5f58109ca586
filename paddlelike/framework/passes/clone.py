"""Passes: Program -> Program. None changes the program it is given."""

from __future__ import annotations

from collections.abc import Iterable

from paddlelike.core.dtypes import AttrType
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import OpRole
from paddlelike.framework.graph.program import Program
from paddlelike.framework.passes.views import find_needed_ops

__all__ = ["copy", "copy_for_inference", "copy_for_test", "drop_unused_variables", "prune"]

#: What the transpiler of distributed programs notes on a program.
_OF_A_JOB = (
    "_is_distributed",
    "_is_chief",
    "_endpoints",
    "_ps_endpoint",
    "_parameters_on_pservers",
    "_distributed_lookup_table",
)


def copy(program: Program) -> Program:
    """A full copy: parameters stay parameters, the seed is kept."""
    clone = Program()
    clone.blocks = []
    for block in program.blocks:
        twin = Block(clone, block.idx, block.parent_idx)
        twin.forward_block_idx = block.forward_block_idx
        twin.vars = {name: variable.clone_into(twin) for name, variable in block.vars.items()}
        twin.ops = [op.copy_into(twin) for op in block.ops]
        clone.blocks.append(twin)
    clone._seed = program._seed
    clone._backward_passes = program._backward_passes
    clone.current_block_idx = program.current_block_idx
    clone.encoded, clone.is_versioned = program.encoded, program.is_versioned
    clone._op_role, clone._op_role_var = program._op_role, list(program._op_role_var)
    for name in _OF_A_JOB:
        setattr(clone, name, getattr(program, name))
    return clone


def copy_for_test(program: Program) -> Program:
    """The forward part alone, in test mode: no backward, update or learning-rate operators."""
    clone = copy(program)
    clone._seed = 0
    drop = OpRole.Backward | OpRole.Optimize | OpRole.LRSched
    dropped: set[str] = set()
    for block in clone.blocks:
        gone = [op for op in block.ops if op.attrs.get("op_role", 0) & drop]
        block.ops = [op for op in block.ops if not op.attrs.get("op_role", 0) & drop]
        dropped |= {name for op in gone for name in (*op.input_arg_names, *op.output_arg_names)}
    if dropped:
        clone.encoded, clone.is_versioned = None, False  # Paddle's own clone loses its version here
    _drop_unreached_blocks(clone)
    _drop_variables(clone, dropped)
    _set_test_mode(clone)
    return clone


def copy_for_inference(program: Program, *, without_readers: bool) -> Program:
    """A copy in test mode; ``without_readers`` drops the operators that read from a queue."""
    clone = copy(program)
    clone._seed = 0
    if without_readers:
        top = clone.global_block()
        readers = {op.output("Out")[0] for op in top.ops if op.type == "read" and op.output("Out")}
        top.ops = [op for op in top.ops if op.type not in ("read", "create_double_buffer_reader")]
        for name in [n for n, v in top.vars.items() if v.type.name == "READER"]:
            del top.vars[name]
        del readers
    _set_test_mode(clone)
    return clone


def prune(program: Program, *, feeds: Iterable[str], targets: Iterable[str]) -> Program:
    """A copy that keeps the operators that ``targets`` need; what computes a fed variable is cut off.

    Without a seed and a version, as in Paddle.
    """
    clone = copy(program)
    clone._seed = 0
    clone.is_versioned = False
    top = clone.global_block()
    needed = find_needed_ops(top, targets=set(targets), fed=set(feeds))
    top.ops = [op for i, op in enumerate(top.ops) if i in needed]
    _drop_unreached_blocks(clone)
    drop_unused_variables(clone, keep=set(targets) | set(feeds))
    return clone


def drop_unused_variables(program: Program, keep: set[str]) -> None:
    """Drop, in place, the variables that no operator of ``program`` touches."""
    used = set(keep)
    for block in program.blocks:
        for op in block.ops:
            used.update(op.input_arg_names, op.output_arg_names)
    for block in program.blocks:
        block.vars = {name: v for name, v in block.vars.items() if name in used}


def _drop_variables(program: Program, candidates: set[str]) -> None:
    """Drop those of ``candidates`` that no remaining operator touches."""
    used = {
        name
        for block in program.blocks
        for op in block.ops
        for name in (*op.input_arg_names, *op.output_arg_names)
    }
    for block in program.blocks:
        block.vars = {n: v for n, v in block.vars.items() if n in used or n not in candidates}


def _drop_unreached_blocks(program: Program) -> None:
    """Drop, in place, the blocks that no remaining operator runs; the others are numbered anew."""
    reached = {0: True}  # in the order they are met
    waiting = [0]
    for index in waiting:  # grows on the way
        inner = {i: True for op in program.blocks[index].ops for i in op.sub_blocks()}
        waiting.extend(i for i in inner if i not in reached)
        reached |= inner
    if len(reached) == len(program.blocks):
        return
    numbers = {old: new for new, old in enumerate(sorted(reached))}
    program.blocks = [program.blocks[old] for old in numbers]
    for block in program.blocks:
        block.idx = numbers[block.idx]
        block.parent_idx = numbers.get(block.parent_idx, -1)
        block.forward_block_idx = numbers.get(block.forward_block_idx, -1)
        for op in block.ops:
            for name in op.attrs:
                if op.attr_type(name) == AttrType.BLOCK:
                    op.attrs[name] = numbers[op.attrs[name]]
                elif op.attr_type(name) == AttrType.BLOCKS:
                    op.attrs[name] = [numbers[index] for index in op.attrs[name]]


def _set_test_mode(program: Program) -> None:
    for block in program.blocks:
        for op in block.ops:
            if "is_test" in op.attrs:
                op.attrs["is_test"] = True
