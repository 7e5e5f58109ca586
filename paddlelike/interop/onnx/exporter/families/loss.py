"""Losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from paddlelike.core import VarType, dtype_row
from paddlelike.interop.onnx.exporter.families.control.blocks import make_graph
from paddlelike.interop.onnx.exporter.families.sequence import pad
from paddlelike.interop.onnx.exporter.graph import Step, Value, converts
from paddlelike.interop.onnx.exporter.sequences import make_mask, unpad_rows

_BOOL: Final = dtype_row(VarType.BOOL).onnx
_INT64: Final = dtype_row(VarType.INT64).onnx


@converts("softmax_with_cross_entropy")
def _convert_cross_entropy(step: Step) -> None:
    """Compute the negative logarithm of the label's probability; 0 for ``ignore_index``."""
    axis, x, label = step.attr("axis") % step.rank("Logits"), step.input("Logits"), step.input("Label")
    if step.graph.opset < 13 and axis != step.rank("Logits") - 1:
        step.refuse(f"axis is {axis}, which needs opset 13")
    logarithms = step.add("LogSoftmax", x, axis=axis)
    step.give("Softmax", step.add("Softmax", x, axis=axis))
    if step.attr("soft_label"):
        loss = (label * logarithms).reduce("ReduceSum", axis, keep=True)
        step.give("Loss", -loss)
        return
    ignored = label.equals(step.like(step.attr("ignore_index"), "Label"))
    places = ignored.where(0.0, label)
    loss = -step.add("GatherElements", logarithms, places, axis=axis)
    step.give("Loss", ignored.where(0.0, loss))


@converts("ctc_align")
def _convert_ctc_align(step: Step) -> None:
    """Remove blanks and tokens that repeat the previous token."""
    step.refuse_inputs("InputLength")
    lengths, dtype = step.lengths("Input"), step.dtype("Input")
    batch = pad(step, "Input").reshape(0, -1)  # (N, T)
    other = ~batch.equals(step.like(step.attr("blank"), "Input"))
    kept = other & make_mask(lengths)
    if step.attr("merge_repeated"):
        before = step.add("Pad", batch, step.ints(0, 1, 0, 0), step.constant(-1, dtype))
        before = step.add("Slice", before, step.ints(0), step.ints(-1), step.ints(1))
        kept = kept & ~batch.equals(before)
    flat = batch.reshape(-1, 1)[kept.reshape(-1)]
    counts = kept.cast("int64").reduce("ReduceSum", 1)
    step.give("Output", flat, lengths=counts)


@converts("crf_decoding")
def _convert_crf_decoding(step: Step) -> None:
    """Find the labels with the highest score; if Label is given, mark which labels are correct."""
    whole = step.input("Transition")
    start, end = (whole.take(step.scalar(row)) for row in (0, 1))
    between = whole[2:]
    if step.has("Length"):
        batch, lengths = step.input("Emission"), step.input("Length").reshape(-1).cast("int64")
    else:
        batch, lengths = pad(step, "Emission"), step.lengths("Emission")
    path, _ = _find_best_path(step, batch, lengths, (start, between, end), step.dtype("Emission"))
    steps = batch.dims(1, 2).reshape()
    mask = make_mask(lengths, steps)
    path = mask.where(path, step.scalar(0))
    if not step.has("Length"):
        path = unpad_rows(path.unsqueeze(2), lengths)
    if step.has("Label"):
        label = step.input("Label").reshape(path.dims())
        path = path.equals(label).cast(np.int64)
        if step.has("Length"):
            path = mask.where(path, step.scalar(0))
    step.graph.types[step.op.output("ViterbiPath")[0]] = VarType.INT64  # old programs declare another type
    step.give("ViterbiPath", path)


@converts("viterbi_decode")
def _convert_viterbi_decode(step: Step) -> None:
    batch, between = step.input("Input"), step.input("Transition")
    lengths = step.input("Length").reshape(-1).cast("int64")
    start = end = step.like([0], "Input")
    if step.attr("include_bos_eos_tag"):
        start = between.take(step.scalar(-1))
        end = between.take(step.scalar(-2))
    path, scores = _find_best_path(step, batch, lengths, (start, between, end), step.dtype("Input"))
    longest = lengths.reduce("ReduceMax", 0, keep=True)
    path = step.add("Slice", path, step.ints(0), longest, step.ints(1))
    step.give("Path", make_mask(lengths).where(path, step.scalar(0)))
    step.give("Scores", scores)


def _find_best_path(
    step: Step, batch: Value, lengths: Value, transition: tuple[Value, Value, Value], dtype: np.dtype[Any]
) -> tuple[Value, Value]:
    """Return the labels (N, T) of the best paths through scores (N, T, labels), and their scores (N,).

    ``transition`` holds the scores of first labels, of steps from label to label, and of last labels. Viterbi
    1967, as two scans: along the steps and back.
    """
    start, between, end = transition
    element = dtype_row(dtype).onnx
    rows = batch.transpose([1, 0, 2])  # (T, N, labels)
    mask = make_mask(lengths, batch.dims(1, 2).reshape())
    places = batch.dims(1, 2).reshape().range()  # fmt: skip
    later = mask & (places > step.scalar(0))
    moves = later.transpose([1, 0]).unsqueeze(2)  # (T, N, 1): whether a step follows another

    def ahead(state: Value, here: Value, moves_here: Value) -> list[Value]:
        ways = state.unsqueeze(2) + between
        best = ways.reduce("ReduceMax", 1) + here
        return [moves_here.where(best, state), step.add("ArgMax", ways, axis=1, keepdims=0)]

    first = rows.take(step.scalar(0)) + start
    last, origins = _scan(step, ahead, first, [(rows, element), (moves, _BOOL)], element)
    scores = last + end
    tag = step.add("ArgMax", scores, axis=1, keepdims=1)

    def back(state: Value, origin: Value, moves_here: Value) -> list[Value]:
        before = moves_here.where(step.add("GatherElements", origin, state, axis=1), state)
        return [before, step.add("Identity", before)]

    _, found = _scan(step, back, tag, [(origins, _INT64), (moves, _BOOL)], _INT64, backwards=True)
    found = found[1:]
    whole = step.concat(found, tag.unsqueeze(0))  # (T, N, 1)
    return whole.squeeze(2).transpose([1, 0]), scores.reduce("ReduceMax", 1)


def _scan(
    step: Step,
    run: Callable[..., list[Value]],
    state: Value,
    inputs: Sequence[tuple[Value, int]],
    element: int,
    *,
    backwards: bool = False,
) -> list[Value]:
    """Return the last state and the results of each step; inputs keep their element types."""
    from onnx import helper

    names = [step.graph.take_name(f"{step.op.type}.step") for _ in range(len(inputs) + 1)]
    types = [element, *(each for _, each in inputs)]
    ports = [helper.make_tensor_value_info(name, each, None) for name, each in zip(names, types, strict=True)]
    body, _ = make_graph(step, "step", lambda: run(*(Value(step.graph, name) for name in names)), ports)
    options: dict[str, Any] = {"body": body, "num_scan_inputs": len(inputs)}
    if backwards:
        options |= {"scan_input_directions": [1] * len(inputs), "scan_output_directions": [1]}
    return step.add_several("Scan", state, *(value for value, _ in inputs), count=2, **options)
