"""Losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from paddlelike.core import VarType, dtype_row
from paddlelike.interop.onnx.exporter.families.control.blocks import make_graph
from paddlelike.interop.onnx.exporter.families.sequence import pad
from paddlelike.interop.onnx.exporter.graph import Step, converts
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
        loss = step.reduce("ReduceSum", step.add("Mul", label, logarithms), [axis], keep=True)
        step.give("Loss", step.add("Neg", loss))
        return
    ignored = step.add("Equal", label, step.like(step.attr("ignore_index"), "Label"))
    places = step.add("Where", ignored, step.like(0, "Label"), label)
    loss = step.add("Neg", step.add("GatherElements", logarithms, places, axis=axis))
    step.give("Loss", step.add("Where", ignored, step.like(0, "Logits"), loss))


@converts("ctc_align")
def _convert_ctc_align(step: Step) -> None:
    """Remove blanks and tokens that repeat the previous token."""
    step.refuse_inputs("InputLength")
    lengths, dtype = step.lengths("Input"), step.dtype("Input")
    batch = step.reshape(pad(step, "Input"), 0, -1)  # (N, T)
    other = step.add("Not", step.add("Equal", batch, step.like(step.attr("blank"), "Input")))
    kept = step.add("And", other, make_mask(step.graph, lengths))
    if step.attr("merge_repeated"):
        before = step.add("Pad", batch, step.ints(0, 1, 0, 0), step.constant(-1, dtype))
        before = step.add("Slice", before, step.ints(0), step.ints(-1), step.ints(1))
        kept = step.add("And", kept, step.add("Not", step.add("Equal", batch, before)))
    flat = step.add("Compress", step.reshape(batch, -1, 1), step.reshape(kept, -1), axis=0)
    counts = step.reduce("ReduceSum", step.cast(kept, "int64"), [1], keep=False)
    step.give("Output", flat, lengths=counts)


@converts("crf_decoding")
def _convert_crf_decoding(step: Step) -> None:
    """Find the labels with the highest score; if Label is given, mark which labels are correct."""
    whole = step.input("Transition")
    start, end = (step.add("Gather", whole, step.constant(row, np.int64), axis=0) for row in (0, 1))
    between = step.add("Slice", whole, step.ints(2), step.ints(np.iinfo(np.int64).max))
    if step.has("Length"):
        batch, lengths = step.input("Emission"), step.cast(step.reshape(step.input("Length"), -1), "int64")
    else:
        batch, lengths = pad(step, "Emission"), step.lengths("Emission")
    path, _ = _find_best_path(step, batch, lengths, (start, between, end), step.dtype("Emission"))
    steps = step.reshape(step.dims(batch, 1, 2))
    mask = make_mask(step.graph, lengths, steps)
    path = step.add("Where", mask, path, step.constant(0, np.int64))
    if not step.has("Length"):
        path = unpad_rows(step.graph, step.unsqueeze(path, 2), lengths)
    if step.has("Label"):
        label = step.add("Reshape", step.input("Label"), step.add("Shape", path))
        path = step.cast(step.add("Equal", path, label), np.int64)
        if step.has("Length"):
            path = step.add("Where", mask, path, step.constant(0, np.int64))
    step.graph.types[step.op.output("ViterbiPath")[0]] = VarType.INT64  # old programs declare another type
    step.give("ViterbiPath", path)


@converts("viterbi_decode")
def _convert_viterbi_decode(step: Step) -> None:
    batch, between = step.input("Input"), step.input("Transition")
    lengths = step.cast(step.reshape(step.input("Length"), -1), "int64")
    start = end = step.like([0], "Input")
    if step.attr("include_bos_eos_tag"):
        start = step.add("Gather", between, step.constant(-1, np.int64), axis=0)
        end = step.add("Gather", between, step.constant(-2, np.int64), axis=0)
    path, scores = _find_best_path(step, batch, lengths, (start, between, end), step.dtype("Input"))
    longest = step.reduce("ReduceMax", lengths, [0], keep=True)
    path = step.add("Slice", path, step.ints(0), longest, step.ints(1))
    step.give("Path", step.add("Where", make_mask(step.graph, lengths), path, step.constant(0, np.int64)))
    step.give("Scores", scores)


def _find_best_path(
    step: Step, batch: str, lengths: str, transition: tuple[str, str, str], dtype: np.dtype[Any]
) -> tuple[str, str]:
    """Return the labels (N, T) of the best paths through scores (N, T, labels), and their scores (N,).

    ``transition`` holds the scores of first labels, of steps from label to label, and of last labels. Viterbi
    1967, as two scans: along the steps and back.
    """
    start, between, end = transition
    element = dtype_row(dtype).onnx
    rows = step.transpose(batch, [1, 0, 2])  # (T, N, labels)
    mask = make_mask(step.graph, lengths, step.reshape(step.dims(batch, 1, 2)))
    places = step.add("Range", step.constant(0, np.int64), step.reshape(step.dims(batch, 1, 2)),
                      step.constant(1, np.int64))  # fmt: skip
    later = step.add("And", mask, step.add("Greater", places, step.constant(0, np.int64)))
    moves = step.unsqueeze(step.transpose(later, [1, 0]), 2)  # (T, N, 1): whether a step follows another

    def ahead(state: str, here: str, moves_here: str) -> list[str]:
        ways = step.add("Add", step.unsqueeze(state, 2), between)
        best = step.add("Add", step.reduce("ReduceMax", ways, [1], keep=False), here)
        return [step.add("Where", moves_here, best, state), step.add("ArgMax", ways, axis=1, keepdims=0)]

    first = step.add("Add", step.add("Gather", rows, step.constant(0, np.int64), axis=0), start)
    last, origins = _scan(step, ahead, first, [(rows, element), (moves, _BOOL)], element)
    scores = step.add("Add", last, end)
    tag = step.add("ArgMax", scores, axis=1, keepdims=1)

    def back(state: str, origin: str, moves_here: str) -> list[str]:
        before = step.add("Where", moves_here, step.add("GatherElements", origin, state, axis=1), state)
        return [before, step.add("Identity", before)]

    _, found = _scan(step, back, tag, [(origins, _INT64), (moves, _BOOL)], _INT64, backwards=True)
    found = step.add("Slice", found, step.ints(1), step.ints(np.iinfo(np.int64).max))
    whole = step.add("Concat", found, step.unsqueeze(tag, 0), axis=0)  # (T, N, 1)
    return step.transpose(step.squeeze(whole, 2), [1, 0]), step.reduce("ReduceMax", scores, [1], keep=False)


def _scan(
    step: Step,
    run: Callable[..., list[str]],
    state: str,
    inputs: Sequence[tuple[str, int]],
    element: int,
    *,
    backwards: bool = False,
) -> list[str]:
    """Return the last state and the results of each step; inputs keep their element types."""
    from onnx import helper

    names = [step.graph.take_name(f"{step.op.type}.step") for _ in range(len(inputs) + 1)]
    types = [element, *(each for _, each in inputs)]
    ports = [helper.make_tensor_value_info(name, each, None) for name, each in zip(names, types, strict=True)]
    body, _ = make_graph(step, "step", lambda: run(*names), ports)
    options: dict[str, Any] = {"body": body, "num_scan_inputs": len(inputs)}
    if backwards:
        options |= {"scan_input_directions": [1] * len(inputs), "scan_output_directions": [1]}
    return step.add_several("Scan", state, *(value for value, _ in inputs), count=2, **options)
