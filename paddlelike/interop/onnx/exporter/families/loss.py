"""Losses."""

from __future__ import annotations

from paddlelike.interop.onnx.exporter.converters import converts
from paddlelike.interop.onnx.exporter.families.sequence import pad
from paddlelike.interop.onnx.exporter.graph import Step
from paddlelike.interop.onnx.exporter.sequences import make_mask


@converts("softmax_with_cross_entropy")
def _convert_cross_entropy(step: Step) -> None:
    """``Loss``: the negative logarithm of the label's probability; 0 where it is ``ignore_index``."""
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
    """The tokens without blanks, and without those that repeat the one before."""
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
