"""Operators on sequences."""

from __future__ import annotations

import numpy as np

from paddlelike.core import VarType, numpy_dtype
from paddlelike.interop.onnx.exporter.graph import Step, converts
from paddlelike.interop.onnx.exporter.sequences import find_owners, make_mask, pad_rows, unpad_rows


def pad(step: Step, slot: str = "X", value: float = 0.0) -> str:
    """Return the sequences of a slot as a batch ``(N, T, ...)``."""
    filling = np.asarray(value, step.dtype(slot))
    return pad_rows(step.graph, step.input(slot), step.lengths(slot), value=filling)


def find_starts(step: Step, lengths: str) -> str:
    """Return the index of each sequence's first row."""
    return step.add("CumSum", lengths, step.constant(0, np.int64), exclusive=1)


@converts("sequence_pool")
def _convert_pool(step: Step) -> str:
    kind, lengths, rank = step.attr("pooltype").upper(), step.lengths(), step.rank()
    if kind in ("FIRST", "LAST"):
        places = find_starts(step, lengths)
        if kind == "LAST":
            places = step.add("Sub", step.add("Add", places, lengths), step.ints(1))
        out = step.add("Gather", step.input(), places, axis=0)
    elif kind == "MAX":
        batch = pad(step, value=np.finfo(step.dtype()).min)
        out = step.reduce("ReduceMax", batch, [1], keep=False)
    else:
        out = step.reduce("ReduceSum", pad(step), [1], keep=False)
        count = step.reshape(step.cast(lengths, step.dtype()), -1, *(1,) * (rank - 1))
        if kind == "AVERAGE":
            out = step.add("Div", out, count)
        elif kind == "SQRT":
            out = step.add("Div", out, step.add("Sqrt", count))
        elif kind != "SUM":
            step.refuse(f"pooltype is {kind}")
    return out


@converts("sequence_softmax")
def _convert_softmax(step: Step) -> str:
    batch = step.reshape(pad(step, value=np.finfo(step.dtype()).min), 0, -1)  # (N, T)
    out = step.add("Unsqueeze", step.add("Softmax", batch, axis=1), step.ints(2))
    rows = unpad_rows(step.graph, out, step.lengths())
    return step.reshape(rows, -1) if step.rank() == 1 else rows


@converts("sequence_conv")
def _convert_conv(step: Step) -> str:
    """Multiply each row and its neighbours by the filter, with zeros beyond the ends."""
    if step.has("PaddingData") or step.attr("contextStride") != 1:
        step.refuse("its padding is trained, or contextStride is not 1")
    start, size = step.attr("contextStart"), step.attr("contextLength")
    before, after = max(-start, 0), max(start + size - 1, 0)
    batch = step.add("Pad", pad(step), step.ints(0, before, 0, 0, after, 0), step.like(0))
    end = np.iinfo(np.int64).max
    parts = []
    for index in range(size):
        low, high = index + max(start, 0), after + before - index - max(start, 0)
        bounds = step.ints(low), step.ints(-high if high > 0 else end), step.ints(1)
        parts.append(step.add("Slice", batch, *bounds))
    wide = step.add("Concat", *parts, axis=2) if size > 1 else parts[0]
    rows = unpad_rows(step.graph, wide, step.lengths())
    return step.add("MatMul", rows, step.input("Filter"))


@converts("sequence_expand", "sequence_expand_as")
def _convert_expand(step: Step) -> None:
    """Repeat each row of X by the number of rows of the corresponding sequence of Y."""
    if step.has_lengths("X"):
        step.refuse("X holds sequences too, which it would repeat as a whole")
    lengths = step.lengths("Y")
    owners, _ = find_owners(step.graph, lengths)
    kept = lengths if step.op.type == "sequence_expand_as" else None
    step.give("Out", step.add("Gather", step.input(), owners, axis=0), lengths=kept)


@converts("sequence_reverse")
def _convert_reverse(step: Step) -> str:
    batch = step.add("ReverseSequence", pad(step), step.lengths(), batch_axis=0, time_axis=1)
    return unpad_rows(step.graph, batch, step.lengths())


@converts("sequence_concat")
def _convert_concat(step: Step) -> None:
    """Concatenate corresponding sequences of all inputs."""
    names = step.op.input("X")
    if any(name not in step.graph.lengths for name in names):
        step.refuse("an input of it holds no sequences")
    several = [step.graph.lengths[name] for name in names]
    total = several[0]
    for other in several[1:]:
        total = step.add("Add", total, other)
    starts, targets = find_starts(step, total), []
    for lengths in several:
        owners, places = find_owners(step.graph, lengths)
        targets.append(step.add("Add", step.add("Gather", starts, owners, axis=0), places))
        starts = step.add("Add", starts, lengths)
    rows = step.add("Concat", *step.inputs("X"), axis=0)
    target = step.add("Unsqueeze", step.add("Concat", *targets, axis=0), step.ints(1))
    blank = step.add("Sub", rows, rows)
    step.give("Out", step.add("ScatterND", blank, target, rows), lengths=total)


@converts("sequence_pad")
def _convert_pad(step: Step) -> None:
    lengths, length = step.lengths(), step.attr("padded_length")
    steps = None if length == -1 else step.constant(length, np.int64)
    zero = np.zeros((), step.dtype())
    batch = pad_rows(step.graph, step.input(), lengths, value=zero, steps=steps)
    mask = make_mask(step.graph, lengths, steps)
    mask = step.unsqueeze(mask, *range(2, step.rank() + 1))
    step.give("Out", step.add("Where", mask, batch, step.input("PadValue")))
    step.give("Length", step.add("Identity", lengths))


@converts("sequence_unpad")
def _convert_unpad(step: Step) -> None:
    lengths = step.cast(step.reshape(step.input("Length"), -1), "int64")
    step.give("Out", unpad_rows(step.graph, step.input(), lengths), lengths=lengths)


@converts("sequence_mask")
def _convert_mask(step: Step) -> str:
    lengths = step.cast(step.input(), "int64")
    if step.has("MaxLenTensor"):
        steps = step.cast(step.reshape(step.input("MaxLenTensor")), "int64")
    elif step.attr("maxlen") >= 0:
        steps = step.constant(step.attr("maxlen"), np.int64)
    else:
        steps = step.reduce("ReduceMax", lengths, range(step.rank()), keep=False)
    places = step.add("Range", step.constant(0, np.int64), steps, step.constant(1, np.int64))
    mask = step.add("Less", places, step.add("Unsqueeze", lengths, step.ints(step.rank())))
    return step.cast(mask, numpy_dtype(VarType(step.attr("out_dtype"))))


@converts("sequence_reshape")
def _convert_sequence_reshape(step: Step) -> None:
    width, wanted = step.shape()[1], step.attr("new_dim")
    elements = step.add("Mul", step.lengths(), step.ints(width))
    lengths = step.add("Div", elements, step.ints(wanted))
    step.give("Out", step.reshape(step.input(), -1, wanted), lengths=lengths)


@converts("lod_reset")
def _convert_lod_reset(step: Step) -> None:
    if step.attr("append"):
        step.refuse("it appends a level")
    if step.has_lengths("Y"):
        lengths = step.lengths("Y")
    elif step.has("Y"):  # the offsets of the sequences
        offsets = step.cast(step.reshape(step.input("Y"), -1), "int64")
        end = np.iinfo(np.int64).max
        later = step.add("Slice", offsets, step.ints(1), step.ints(end))
        lengths = step.add("Sub", later, step.add("Slice", offsets, step.ints(0), step.ints(-1)))
    else:
        lengths = step.ints(*np.diff(step.attr("target_lod")).tolist())
    step.give("Out", step.input(), lengths=lengths)


@converts("im2sequence")
def _convert_im2sequence(step: Step) -> None:
    """Cut the windows of an image, row by row, as a sequence."""
    if step.has("Y"):
        step.refuse("the images have different sizes")
    (kh, kw), channels = step.attr("kernels"), step.shape()[1]
    if channels < 0:
        step.refuse(f"X has shape {step.shape()}")
    top, left, bottom, right = step.attr("paddings")
    taps = np.eye(kh * kw, dtype=step.dtype()).reshape(kh * kw, 1, kh, kw)
    weights = step.constant(np.tile(taps, (channels, 1, 1, 1)), step.dtype())
    options = {"group": channels, "strides": step.attr("strides"), "pads": [top, left, bottom, right]}
    windows = step.add("Conv", step.input(), weights, **options)  # (N, C kh kw, rows, columns)
    size = step.dims(windows, 2, 4)
    count = step.reduce("ReduceProd", size, [0], keep=True)
    lengths = step.add("Expand", count, step.dims(windows, 0, 1))
    rows = step.reshape(step.transpose(windows, [0, 2, 3, 1]), -1, channels * kh * kw)
    step.give("Out", rows, lengths=lengths)


def _mark_ends(step: Step) -> str:
    """Return, for each row, the number of rows from it to the end of its sequence, int64."""
    owners, places = find_owners(step.graph, step.lengths("X"))
    return step.add("Sub", step.add("Gather", step.lengths("X"), owners, axis=0), places)


def _look_ahead(step: Step, rows: str, by: int) -> str:
    """Return the row that follows some steps later, or the last row."""
    count = step.dims(rows, 0, 1)
    end = step.reshape(count)
    places = step.add("Range", step.constant(0, np.int64), end, step.constant(1, np.int64))
    later = step.add("Min", step.add("Add", places, step.ints(by)), step.add("Sub", count, step.ints(1)))
    return step.add("Gather", rows, later, axis=0)


@converts("sequence_enumerate")
def _convert_enumerate(step: Step) -> str:
    """List the ids of each row and of the rows after it, with ``pad_value`` beyond the end."""
    left, ids = step.unsqueeze(_mark_ends(step), 1), step.reshape(step.input(), -1, 1)
    columns = [
        step.add("Where", step.add("Greater", left, step.ints(ahead)), _look_ahead(step, ids, ahead),
                 step.like(step.attr("pad_value")))
        for ahead in range(step.attr("win_size"))
    ]  # fmt: skip
    return step.add("Concat", *columns, axis=1)


@converts("sequence_erase")
def _convert_erase(step: Step) -> None:
    owners, _ = find_owners(step.graph, step.lengths())
    ids = step.reshape(step.input(), -1, 1)
    tokens = step.like([step.attr("tokens") or [np.iinfo(np.int32).min]])
    hits = step.reduce("ReduceMax", step.cast(step.add("Equal", ids, tokens), "int32"), [1], keep=False)
    kept = step.add("Equal", hits, step.constant(0, np.int32))
    blank = step.add("Sub", step.lengths(), step.lengths())
    counts = step.add("ScatterElements", blank, owners, step.cast(kept, np.int64), axis=0, reduction="add")
    step.give("Out", step.add("Compress", step.input(), kept, axis=0), lengths=counts)


@converts("row_conv")
def _convert_row_conv(step: Step) -> str:
    """Multiply each row and those after it in its sequence by the rows of the filter."""
    left, out = step.unsqueeze(_mark_ends(step), 1), None
    for ahead in range(step.shape("Filter")[0]):
        factor = step.add("Gather", step.input("Filter"), step.constant(ahead, np.int64), axis=0)
        part = step.add("Mul", _look_ahead(step, step.input(), ahead), factor)
        part = step.add("Where", step.add("Greater", left, step.ints(ahead)), part, step.like(0))
        out = part if out is None else step.add("Add", out, part)
    assert out is not None
    return out


@converts("sequence_slice")
def _convert_slice(step: Step) -> None:
    """Cut a part out of each sequence."""
    owners, places = find_owners(step.graph, step.lengths())
    start, count = (step.cast(step.reshape(step.input(slot), -1), "int64") for slot in ("Offset", "Length"))
    first, counts = (step.add("Gather", one, owners, axis=0) for one in (start, count))
    behind = step.add("GreaterOrEqual", places, first)
    kept = step.add("And", behind, step.add("Less", places, step.add("Add", first, counts)))
    step.give("Out", step.add("Compress", step.input(), kept, axis=0), lengths=count)


@converts("sequence_scatter")
def _convert_scatter(step: Step) -> str:
    """Add the updates of each sequence to one row of X, at the sequence's ids."""
    if step.graph.opset < 16 or step.rank() != 2:
        step.refuse("it adds, which needs opset 16, or X does not have two dims")
    owners, _ = find_owners(step.graph, step.lengths("Ids"))
    ids = step.cast(step.reshape(step.input("Ids"), -1, 1), "int64")
    places = step.add("Concat", step.unsqueeze(owners, 1), ids, axis=1)
    updates = step.reshape(step.input("Updates"), -1)
    return step.add("ScatterND", step.input(), places, updates, reduction="add")
