"""Write a program that is being trained as a checkpoint of CNTK's trainer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from paddlelike.core import Scope, global_scope
from paddlelike.errors import SaveError, UnsupportedError
from paddlelike.formats.cntk.dictionary import SizeT
from paddlelike.framework import Program, Variable
from paddlelike.interop.cntk.checkpoints.learner import CntkLearner, write_learner
from paddlelike.interop.cntk.checkpoints.tree import LOSS, METRIC, as_external, order_parameters
from paddlelike.interop.cntk.checkpoints.updates import (
    check_kinds,
    collect_updates,
    count_updates,
    encode_state,
    invert_rate,
    list_rates,
)
from paddlelike.interop.cntk.function import read_function
from paddlelike.interop.cntk.save import CntkReport, make_function, translate, write_files
from paddlelike.interop.cntk.writing.graph import ALL_AXES, Graph, Ref, static_axis
from paddlelike.io.export.program import make_inference_program

Path = str | os.PathLike[str]


def export_cntk_checkpoint(
    program: Program,
    file: Path,
    feeds: Sequence[str],
    outputs: Sequence[Variable | str],
    loss: Variable | str,
    metric: Variable | str | None = None,
    external_state: Mapping[str, Any] | None = None,
    *,
    samples: int = 0,
    minibatches: int = 0,
    batch_size: int | None = None,
    unit_gain: bool = True,
    scope: Scope | None = None,
) -> CntkReport:
    """Write a program with its optimizer as ``file`` and ``<file>.ckp``, which CNTK's trainer restores.

    In CNTK ``cntk.Function.load(file)`` opens the model: a tuple of the outputs, then the loss and the
    metric, each per sample and as a sum. A ``Trainer`` with these outputs and a learner of the same kind
    restores the checkpoint and trains on with the same numbers.

    Parameters
    ----------
    program
        The training program, whose optimizer has been minimized.
    file
        The path of the model; the checkpoint goes beside it, as ``<file>.ckp``.
    feeds
        The names of the inputs: features and labels.
    outputs
        The model's outputs.
    loss, metric
        Means over the minibatch (``layers.mean``), or values for each sample.
    external_state
        The script's own state: None, numbers, texts, lists, dictionaries, float arrays.
    samples, minibatches
        The numbers of samples and minibatches trained so far.
    batch_size
        The samples of a minibatch, on which Adam's state and running averages depend in CNTK; None:
        ``samples / minibatches``.
    unit_gain
        Whether the learner has CNTK's default, momentum with unit gain: the rate is divided by ``1 - mu``.
    scope
        Holds the values. None means the current scope.

    Returns
    -------
    CntkReport
        The numbers of the operators by type, and the names of the inputs and outputs.

    Raises
    ------
    UnsupportedError
        The program holds operators that CNTK cannot express, or a loss that is not a mean; all are listed.
    SaveError
        The optimizer has a kind that CNTK does not have, or a file cannot be written.
    FormatError
        ``external_state`` holds a type that CNTK's dictionaries do not have.

    See Also
    --------
    fluid.export_cntk, fluid.import_cntk, fluid.import_cntk_checkpoint, fluid.import_onnx
    fluid.export_onnx

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 2])
    ...     out = fluid.layers.fc(x, 2)
    ...     loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    ...     _ = fluid.optimizer.Momentum(0.01, 0.9).minimize(loss)
    >>> with fluid.scope_guard(fluid.Scope()), tempfile.TemporaryDirectory() as home:
    ...     _ = fluid.Executor().run(startup)
    ...     report = fluid.export_cntk_checkpoint(main, f"{home}/my.dnn", ["x", "y"], [out], loss)
    >>> report.inputs, report.outputs
    (['x', 'y'], ['fc_0.tmp_1'])
    """
    values = global_scope() if scope is None else scope
    names = [one if isinstance(one, str) else one.name for one in outputs]
    ends = [one if isinstance(one, str) else one.name for one in (loss, metric) if one is not None]
    sources = [_find_source(program, name) for name in ends]
    forward = make_inference_program(program.clone(for_test=True), list(feeds), [*names, *sources])
    batch = batch_size or samples / max(minibatches, 1) or 1.0
    graph, counts = translate(forward, list(feeds), values, "export_cntk_checkpoint", batch)
    refs = [graph.values[name] for name in names]
    for name, label in zip(sources, (LOSS, METRIC), strict=False):
        refs += _add_sum(graph, graph.values[name], label)
    tree = make_function(graph, refs)
    updates = collect_updates(program)
    check_kinds(updates, SaveError)
    if not updates:
        raise SaveError(
            "export_cntk_checkpoint: the program updates no parameters",
            hint="call minimize() of an optimizer first",
        )
    order = order_parameters(tree, read_function(tree))
    missing = [name for name in order if name not in updates]
    if missing:
        raise SaveError(f"export_cntk_checkpoint: nothing updates {', '.join(missing[:8])}")
    rates = {name: rate for name, _, rate in list_rates(updates, values)}
    op = updates[order[0]]
    own = {name: updates[name] for name in order}
    if len({rates[name] for name in order}) > 1 or len({one.type for one in own.values()}) > 1:
        raise SaveError("export_cntk_checkpoint: the parameters have different learning rates or optimizers")
    learner = CntkLearner(
        samples,
        minibatches,
        0,
        {0: invert_rate(op, rates[order[0]], batch=batch, reference=0, unit_gain=unit_gain)},
        0,
        0,
        0,
        count_updates(own, values),
        {
            name: encode_state(one, values, rate=rates[name], batch=batch, unit_gain=unit_gain)
            for name, one in own.items()
        },
    )
    state = {
        "Version": SizeT(1),
        "DistributedState": {},
        "Learners": [write_learner(learner)],
        "ExternalState": as_external(external_state or {}),
    }
    size = write_files(file, tree, state)
    return CntkReport(os.fspath(file), list(feeds), names, dict(counts), len(graph.functions), size)


def _find_source(program: Program, name: str) -> str:
    """Return the variable, with one value per sample, whose mean is a loss."""
    block = program.global_block()
    variable = block.var(name)
    if variable.shape[:1] == (-1,):
        return name
    for op in block.ops:
        if name in op.output_arg_names and op.type in ("mean", "reduce_mean"):
            source = block.var(op.input("X")[0])
            if source.shape[:1] == (-1,) and -1 not in source.shape[1:]:
                return source.name
    raise UnsupportedError(
        f"export_cntk_checkpoint: {name} of shape {list(variable.shape)} is not a mean over samples",
        hint="make the loss by layers.mean(cost), with a cost for each sample",
    )


def _add_sum(graph: Graph, ref: Ref, label: str) -> list[Ref]:
    """Return the value for each sample, and its sum over the minibatch, which CNTK's trainer minimizes."""
    if ref.shape not in ((), (1,)):
        for dim in range(ref.rank):
            axis = {
                "axis": static_axis(dim, ref.rank),
                "reductionOpName": "Mean",
                "reductionKeepDimensions": True,
            }
            shape = [1 if at <= dim else size for at, size in enumerate(ref.shape)]
            ref = graph.add("ReduceElements", [ref], axis, shape=shape)
    whole = {"axis": ALL_AXES, "reductionOpName": "Sum", "reductionKeepDimensions": False}
    total = graph.add("ReduceElements", [ref], whole, shape=[], like=replace(ref, dynamic=False))
    graph.functions[-1]["name"] = label
    return [ref, total]
