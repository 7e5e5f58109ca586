"""Sequences: CNTK's sequence axis is a LoD of one level here."""

from __future__ import annotations

from paddlelike.interop.cntk.function import CHOSEN
from paddlelike.interop.cntk.reading.readers import reads
from paddlelike.interop.cntk.reading.step import Step, Value


@reads("ReconcileDynamicAxis")
def _read_reconcile(step: Step) -> Value:
    """A value for each sample or step of another one: that of its sequence, or one for all."""
    value, other = step.value(), step.value(1)
    if value.dynamic and value.sequence == other.sequence:
        return value
    if value.dynamic:
        if not other.sequence:
            step.refuse("it gives the steps of sequences to samples")
        inputs = {"X": value.variable, "Y": other.variable}
        return value._replace(variable=step.emit("sequence_expand_as", inputs), sequence=True)
    rank = max(value.rank, 1)
    zeros = step.unary("fill_zeros_like", step.cast(other.variable, value.variable.dtype))
    flat = other._replace(variable=step.reshape(other, [-1]), rank=1)
    zeros = step.unary("fill_zeros_like", flat.variable)
    row = step.unary("reduce_sum", zeros, dim=[1], keep_dim=True, reduce_all=False)
    column = step.reshape(flat._replace(variable=row), [1] * rank)
    out = step.binary("elementwise_add", column, value.variable)
    made = other._replace(variable=out, rank=rank)
    return step.give(step.reshape(made, value.shape), other, value.rank)


@reads("GatherPacked")
def _read_chosen(step: Step) -> Value:
    """The first or the last step of each sequence."""
    which = step.node.attributes.get(CHOSEN)
    value = step.value()
    if which is None or not value.sequence:
        step.refuse("it chooses other steps of sequences than the first or the last")
    out = step.pool_sequence(value.variable, which)
    return value._replace(variable=out, sequence=False)


@reads("ToSequence")
def _read_to_sequence(step: Step) -> Value:
    """The first static dim becomes the steps; without lengths all sequences are as long."""
    value = step.value()
    if len(step.values) > 1 or not value.dynamic or value.sequence or value.rank < 1 or value.shape[0] < 1:
        step.refuse("it has lengths, or its input has no dim of steps")
    lengths = step.fill_rows(value, value.shape[0])
    out = step.emit("sequence_unpad", {"X": value.variable, "Length": lengths})
    return Value(out, dynamic=True, sequence=True, rank=value.rank - 1)


@reads("UnpackSequence")
def _read_unpack(step: Step) -> Value:
    """The steps become a static dim, padded to the longest: for a reduction over them."""
    value = step.value()
    if not value.sequence or not step.attr("sequenceUnpackSuppressMaskOutput", bool, False):
        step.refuse("it gives a mask")
    return value._replace(unpacked=True)
