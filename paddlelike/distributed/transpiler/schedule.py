"""Learning-rate schedules, moved to the servers: each server computes them once a round."""

from __future__ import annotations

from paddlelike.distributed.transpiler.config import Job
from paddlelike.distributed.transpiler.training import own_attrs, schedule_ops
from paddlelike.framework import Block, Operator, OpRole, Program, Variable


def count_asynchronously(program: Program, startup: Program, job: Job) -> Variable | None:
    """Let every trainer count its steps, and the servers sum the counts.

    Without rounds a server cannot count steps, so ``increment`` becomes the sum of the trainers' counts.
    Return the counter that this trainer sends, or None if no schedule counts steps.
    """
    block, first = program.global_block(), startup.global_block()
    mine = None
    for op in schedule_ops(block):
        if op.type != "increment":
            continue
        counter = block._var_recursive(op.output("Out")[0])
        names = [f"{counter.name}.trainer_{i}" for i in range(job.trainers)]
        counts = [_clone_as(block, name, counter) for name in names]
        for init in first.ops:
            if init.type == "fill_constant" and init.output("Out") == [counter.name]:
                init._set_attr("value", float(-job.trainers))
        for name in names:
            _initialize_with_one(first, name, counter)
        if job.trainer_id < job.trainers:  # a server of a job with fewer trainers has an id of no trainer
            mine = counts[job.trainer_id]
        _replace(block, op, counts)
    return mine


def _clone_as(block: Block, name: str, like: Variable) -> Variable:
    return block.create_var(
        name=name, type=like.type, shape=like.shape, dtype=like.dtype, persistable=like.persistable
    )


def _initialize_with_one(block: Block, name: str, like: Variable) -> None:
    from paddlelike.initializer import Constant

    Constant(1)(_clone_as(block, name, like), block)


def _replace(block: Block, op: Operator, counts: list[Variable]) -> None:
    at = op.idx
    outputs = {"Out": op.output("Out")}
    block._insert_op(at, "sum", {"X": counts}, outputs, {"op_role": OpRole.LRSched})
    block._remove_op(at + 1)


def add_schedule(server: Program, source: Program) -> Block | None:
    """Put the operators for learning rates into a new block; return it, or None without operators."""
    ops = schedule_ops(source.global_block())
    if not ops:
        return None
    block = server._create_block(server.num_blocks - 1)
    for op in ops:
        copy = _copy(op, block, server.global_block())
        _copy_sub_block(copy, op, block, source)
    return block


def _copy(op: Operator, block: Block, declare_in: Block) -> Operator:
    """Append a copy of an operator of another program; declare its variables in ``declare_in``."""
    for name in (*op.input_arg_names, *op.output_arg_names):
        if not declare_in.has_var(name):
            declare_in._clone_variable(op.block._var_recursive(name))
    return block.append_op(op.type, op.inputs, op.outputs, own_attrs(op))


def _copy_sub_block(copy: Operator, op: Operator, block: Block, source: Program) -> None:
    """Copy the block that an operator runs, and make the copied operator run the copied block."""
    if "sub_block" not in op.attrs:
        return
    original = source.blocks[op.attrs["sub_block"]]
    inner = block.program._create_block(block.idx)
    for var in original.vars.values():
        inner._clone_variable(var)
    for one in original.ops:
        _copy_sub_block(_copy(one, inner, inner), one, inner, source)
    copy._set_attr("sub_block", inner.idx)
