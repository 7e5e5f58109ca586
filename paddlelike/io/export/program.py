"""Programs for prediction: check the feeds, prune, and add or find feed and fetch operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from paddlelike import unique_name
from paddlelike.core import VarType
from paddlelike.errors import GraphError, LoadError
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program, Variable
from paddlelike.framework.graph.order import order_as_hashed
from paddlelike.framework.graph.variable import HOLDERS
from paddlelike.framework.passes import clone as passes
from paddlelike.framework.passes.views import collect_reads, find_needed_ops

_COPIES: Final = 3  # hash tables of a pruned program before Fluid adds feed and fetch


def make_inference_program(program: Program, feeds: list[str], targets: list[str]) -> Program:
    """Return the part of ``program`` that computes ``targets`` from ``feeds``, with feeds and fetches."""
    clone = passes.copy(program)
    top = clone.global_block()
    top.ops = [op for op in top.ops if op.type not in ("feed", "fetch")]
    for op in top.ops:
        op.is_target = False
    pruned = passes.prune(clone, feeds=feeds, targets=targets)
    pruned = passes.copy_for_inference(pruned, without_readers=True)
    for op in (op for block in pruned.blocks for op in block.ops):
        op.attr_passes += 1  # Fluid prunes a program by encoding and decoding it
    prepend_feed_ops(pruned, feeds)
    append_fetch_ops(pruned, targets)
    _order_variables(pruned)
    return pruned


def prepend_feed_ops(
    inference_program: Program, feed_target_names: Sequence[str], feed_holder_name: str = "feed"
) -> None:
    """Insert an operator at the front of a program for each fed variable, in reverse order."""
    if not feed_target_names:
        return
    block = inference_program.global_block()
    holder = block.create_var(name=feed_holder_name, type=VarType.FEED_MINIBATCH, persistable=True)
    for col, name in enumerate(feed_target_names):
        block._prepend_op(
            type="feed", inputs={"X": [holder]}, outputs={"Out": [block.var(name)]}, attrs={"col": col}
        )


def append_fetch_ops(
    inference_program: Program, fetch_target_names: Sequence[str], fetch_holder_name: str = "fetch"
) -> None:
    """Append an operator for each variable that is fetched."""
    block = inference_program.global_block()
    holder = block.create_var(name=fetch_holder_name, type=VarType.FETCH_LIST, persistable=True)
    for col, name in enumerate(fetch_target_names):
        block.append_op(type="fetch", inputs={"X": [name]}, outputs={"Out": [holder]}, attrs={"col": col})


def _order_variables(program: Program) -> None:
    """Put the variables into the order in which Fluid writes them.

    Fluid prunes, which sorts the variables, copies them from one hash table to the next, and adds feed and
    fetch.
    """
    for block in program.blocks:
        holders = [name for name in ("feed", "fetch") if name in block.vars]
        names = sorted(block.vars.keys() - set(holders))
        names = order_as_hashed([*order_as_hashed(names, _COPIES), *holders])
        block.vars = {name: block.vars[name] for name in names}
        block.is_ordered = True


def find_ports(program: Program, where: str) -> tuple[list[str], list[str]]:
    """Return the names of feeds and of fetches, each in the order of their columns.

    Raises
    ------
    LoadError
        A feed or fetch operator has no column, or not one variable.
    """
    block = program.global_block()
    found: dict[str, dict[int, str]] = {"feed": {}, "fetch": {}}
    for op in block.ops:
        if op.type not in found:
            continue
        names = op.output("Out") if op.type == "feed" else op.input("X")
        col = op.attrs.get("col")
        if len(names) != 1 or type(col) is not int or not block.has_var(names[0]):
            raise LoadError(
                f"{where} is not a model: a {op.type} operator has column {col!r} and variables {names}; "
                "an integer and one variable of the program are expected"
            )
        found[op.type][col] = names[0]
    feeds, fetches = ([names[col] for col in sorted(names)] for names in found.values())
    return feeds, fetches


def check_feeds(program: Program, feeds: list[str], targets: list[Variable]) -> None:
    """Check that every feed exists and is used by the targets, and that no further feed is needed.

    Raises
    ------
    GraphError
        A feed is missing, unknown or unused.
    """
    block = program.global_block()
    for target in targets:
        block._var_recursive(target.name)
    unknown = [name for name in feeds if not block.has_var(name)]
    pruned = passes.prune(
        program, feeds=[f for f in feeds if f not in unknown], targets=[t.name for t in targets]
    )
    read = {name for op in pruned.global_block().ops for name in op.input_arg_names}
    useless = [name for name in feeds if name not in unknown and name not in read]
    useless = [name for name in useless if name not in {t.name for t in targets}]
    if unknown or useless:
        problem = "are not in the program" if unknown else "are not used by the targets"
        raise GraphError(
            f"save_inference_model: feeds {unknown or useless} {problem} "
            f"(targets {[t.name for t in targets]})",
            hint="feed the inputs the targets are computed from: "
            + ", ".join(_find_inputs(program, targets)),
        )
    needed = sorted(n for n in read if block.has_var(n) and block.var(n).is_data and n not in feeds)
    if needed:
        raise GraphError(
            f"save_inference_model: the targets are also computed from {needed}, which is not fed",
            hint="add it to feeded_var_names, or choose targets that do not need it",
        )


def _find_inputs(program: Program, targets: list[Variable]) -> list[str]:
    """Return the variables from which the targets are computed: data, or outputs of the program's readers."""
    pruned = passes.prune(program, feeds=[], targets=[t.name for t in targets])
    block = pruned.global_block()
    read = {name for op in block.ops for name in op.input_arg_names if block.has_var(name)}
    data = {name for name in read if block.var(name).is_data and block.var(name).type not in HOLDERS}
    given = {name for op in block.ops if op.type == "read" for name in op.output_arg_names}
    return sorted(data | (given & read))


def warn_of_metrics(program: Program) -> None:
    """Warn if a program computes a metric over all batches."""
    if any(op.type == "auc" for op in program.global_block().ops):
        warn_user("the program computes auc, which keeps statistics of all batches; choose targets before it")


def warn_of_updated_feeds(program: Program, feeds: list[str], targets: list[str]) -> None:
    """Warn if the targets read a fed variable after an operator updates it; Fluid prunes that operator."""
    ops = program.global_block().ops
    needed = find_needed_ops(program.global_block(), targets=set(targets), fed=set(feeds))
    read: set[str] = set()
    for index, op in reversed(list(enumerate(ops))):
        if index in needed:
            read |= collect_reads(op)
        elif names := sorted(set(feeds) & read & collect_reads(op) & set(op.output_arg_names)):
            warn_user(
                f"operator {op.type!r} updates {', '.join(map(repr, names))}, which is fed: as in Fluid, the "
                "model leaves it out, and its targets are computed from what is fed; assign the input to "
                "another variable before it is updated"
            )


def clear_devices(program: Program) -> None:
    """Remove the devices of operators."""
    for op in program.global_block().ops:
        if op.attrs.get("op_device"):
            op._set_attr("op_device", "")


def append_scales(program: Program, targets: list[Variable]) -> list[Variable]:
    """Append a ``scale`` by 1 per target and return the outputs, which have the targets' public names.

    In a loaded model, a target that already has that name is such an output.
    """
    block = program.global_block()
    outputs = []
    for index, target in enumerate(targets):
        name = unique_name.generate(f"save_infer_model/scale_{index}.tmp")
        if target.name == name:
            outputs.append(target)
            continue
        out = block.create_var(name=name, dtype=target.dtype, persistable=False)
        block.append_op(
            type="scale",
            inputs={"X": [target]},
            outputs={"Out": [out]},
            attrs={"scale": 1.0, "bias": 0.0, "bias_after_scale": True},
        )
        outputs.append(out)
    return outputs
