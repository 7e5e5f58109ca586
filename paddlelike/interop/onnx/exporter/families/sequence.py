"""Operators on sequences."""

from __future__ import annotations

import numpy as np

from paddlelike.core import VarType, numpy_dtype
from paddlelike.interop.onnx.exporter.graph import Step, Value, converts
from paddlelike.interop.onnx.exporter.sequences import find_owners, make_mask, pad_rows, unpad_rows


def pad(step: Step, slot: str = "X", value: float = 0.0) -> Value:
    """Return the sequences of a slot as a batch ``(N, T, ...)``."""
    filling = np.asarray(value, step.dtype(slot))
    return pad_rows(step.input(slot), step.lengths(slot), value=filling)


def find_starts(step: Step, lengths: Value) -> Value:
    """Return the index of each sequence's first row."""
    return step.add("CumSum", lengths, step.scalar(0), exclusive=1)


@converts("sequence_pool")
def _convert_pool(step: Step) -> Value:
    kind, lengths, rank = step.attr("pooltype").upper(), step.lengths(), step.rank()
    if kind in ("FIRST", "LAST"):
        places = find_starts(step, lengths)
        if kind == "LAST":
            places = places + lengths - 1
        out = step.input().take(places)
    elif kind == "MAX":
        batch = pad(step, value=np.finfo(step.dtype()).min)
        out = batch.reduce("ReduceMax", 1)
    else:
        out = pad(step).reduce("ReduceSum", 1)
        count = lengths.cast(step.dtype()).reshape(-1, *(1,) * (rank - 1))
        if kind == "AVERAGE":
            out = out / count
        elif kind == "SQRT":
            out = out / step.add("Sqrt", count)
        elif kind != "SUM":
            step.refuse(f"pooltype is {kind}")
    return out


@converts("sequence_softmax")
def _convert_softmax(step: Step) -> Value:
    batch = pad(step, value=np.finfo(step.dtype()).min).reshape(0, -1)  # (N, T)
    out = step.add("Softmax", batch, axis=1).unsqueeze(2)
    rows = unpad_rows(out, step.lengths())
    return rows.reshape(-1) if step.rank() == 1 else rows


@converts("sequence_conv")
def _convert_conv(step: Step) -> Value:
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
    wide = step.concat(*parts, axis=2) if size > 1 else parts[0]
    rows = unpad_rows(wide, step.lengths())
    return rows @ step.input("Filter")


@converts("sequence_expand", "sequence_expand_as")
def _convert_expand(step: Step) -> None:
    """Repeat each row of X by the number of rows of the corresponding sequence of Y."""
    if step.has_lengths("X"):
        step.refuse("X holds sequences too, which it would repeat as a whole")
    lengths = step.lengths("Y")
    owners, _ = find_owners(lengths)
    kept = lengths if step.op.type == "sequence_expand_as" else None
    step.give("Out", step.input().take(owners), lengths=kept)


@converts("sequence_reverse")
def _convert_reverse(step: Step) -> Value:
    batch = step.add("ReverseSequence", pad(step), step.lengths(), batch_axis=0, time_axis=1)
    return unpad_rows(batch, step.lengths())


@converts("sequence_concat")
def _convert_concat(step: Step) -> None:
    """Concatenate corresponding sequences of all inputs."""
    names = step.op.input("X")
    if any(name not in step.graph.lengths for name in names):
        step.refuse("an input of it holds no sequences")
    several = [step.graph.lengths[name] for name in names]
    total = several[0]
    for other in several[1:]:
        total = total + other
    starts, targets = find_starts(step, total), []
    for lengths in several:
        owners, places = find_owners(lengths)
        targets.append(starts.take(owners) + places)
        starts = starts + lengths
    rows = step.concat(*step.inputs("X"))
    target = step.concat(*targets).unsqueeze(1)
    blank = rows - rows
    step.give("Out", step.add("ScatterND", blank, target, rows), lengths=total)


@converts("sequence_pad")
def _convert_pad(step: Step) -> None:
    lengths, length = step.lengths(), step.attr("padded_length")
    steps = None if length == -1 else step.constant(length, np.int64)
    zero = np.zeros((), step.dtype())
    batch = pad_rows(step.input(), lengths, value=zero, steps=steps)
    mask = make_mask(lengths, steps)
    mask = mask.unsqueeze(*range(2, step.rank() + 1))
    step.give("Out", mask.where(batch, step.input("PadValue")))
    step.give("Length", step.add("Identity", lengths))


@converts("sequence_unpad")
def _convert_unpad(step: Step) -> None:
    lengths = step.input("Length").reshape(-1).cast("int64")
    step.give("Out", unpad_rows(step.input(), lengths), lengths=lengths)


@converts("sequence_mask")
def _convert_mask(step: Step) -> Value:
    lengths = step.input().cast("int64")
    if step.has("MaxLenTensor"):
        steps = step.input("MaxLenTensor").reshape().cast("int64")
    elif step.attr("maxlen") >= 0:
        steps = step.scalar(step.attr("maxlen"))
    else:
        steps = lengths.reduce("ReduceMax", *range(step.rank()))
    places = steps.range()
    mask = places < lengths.unsqueeze(step.rank())
    return mask.cast(numpy_dtype(VarType(step.attr("out_dtype"))))


@converts("sequence_reshape")
def _convert_sequence_reshape(step: Step) -> None:
    width, wanted = step.shape()[1], step.attr("new_dim")
    elements = step.lengths() * width
    lengths = elements / wanted
    step.give("Out", step.input().reshape(-1, wanted), lengths=lengths)


@converts("lod_reset")
def _convert_lod_reset(step: Step) -> None:
    if step.attr("append"):
        step.refuse("it appends a level")
    if step.has_lengths("Y"):
        lengths = step.lengths("Y")
    elif step.has("Y"):  # the offsets of the sequences
        offsets = step.input("Y").reshape(-1).cast("int64")
        end = np.iinfo(np.int64).max
        later = offsets[1:end]
        lengths = later - offsets[:-1]
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
    size = windows.dims(2, 4)
    count = size.reduce("ReduceProd", 0, keep=True)
    lengths = count.expand(windows.dims(0, 1))
    rows = windows.transpose([0, 2, 3, 1]).reshape(-1, channels * kh * kw)
    step.give("Out", rows, lengths=lengths)


def _mark_ends(step: Step) -> Value:
    """Return, for each row, the number of rows from it to the end of its sequence, int64."""
    owners, places = find_owners(step.lengths("X"))
    return step.lengths("X").take(owners) - places


def _look_ahead(rows: Value, by: int) -> Value:
    """Return the row that follows some steps later, or the last row."""
    count = rows.dims(0, 1)
    end = count.reshape()
    places = end.range()
    later = (places + by).minimum(count - 1)
    return rows.take(later)


@converts("sequence_enumerate")
def _convert_enumerate(step: Step) -> Value:
    """List the ids of each row and of the rows after it, with ``pad_value`` beyond the end."""
    left, ids = _mark_ends(step).unsqueeze(1), step.input().reshape(-1, 1)
    columns = [
        (left > ahead).where(_look_ahead(ids, ahead), step.like(step.attr('pad_value')))
        for ahead in range(step.attr("win_size"))
    ]  # fmt: skip
    return step.concat(*columns, axis=1)


@converts("sequence_erase")
def _convert_erase(step: Step) -> None:
    owners, _ = find_owners(step.lengths())
    ids = step.input().reshape(-1, 1)
    tokens = step.like([step.attr("tokens") or [np.iinfo(np.int32).min]])
    hits = ids.equals(tokens).cast("int32").reduce("ReduceMax", 1)
    kept = hits.equals(step.constant(0, np.int32))
    blank = step.lengths() - step.lengths()
    counts = step.add("ScatterElements", blank, owners, kept.cast(np.int64), axis=0, reduction="add")
    step.give("Out", step.input()[kept], lengths=counts)


@converts("row_conv")
def _convert_row_conv(step: Step) -> Value:
    """Multiply each row and those after it in its sequence by the rows of the filter."""
    left, out = _mark_ends(step).unsqueeze(1), None
    for ahead in range(step.shape("Filter")[0]):
        factor = step.input("Filter").take(step.constant(ahead, np.int64))
        part = _look_ahead(step.input(), ahead) * factor
        part = (left > ahead).where(part, 0.0)
        out = part if out is None else out + part
    assert out is not None
    return out


@converts("sequence_slice")
def _convert_slice(step: Step) -> None:
    """Cut a part out of each sequence."""
    owners, places = find_owners(step.lengths())
    start, count = (step.input(slot).reshape(-1).cast("int64") for slot in ("Offset", "Length"))
    first, counts = (one.take(owners) for one in (start, count))
    behind = places >= first
    kept = behind & (places < first + counts)
    step.give("Out", step.input()[kept], lengths=count)


@converts("sequence_scatter")
def _convert_scatter(step: Step) -> Value:
    """Add the updates of each sequence to one row of X, at the sequence's ids."""
    if step.graph.opset < 16 or step.rank() != 2:
        step.refuse("it adds, which needs opset 16, or X does not have two dims")
    owners, _ = find_owners(step.lengths("Ids"))
    ids = step.input("Ids").reshape(-1, 1).cast("int64")
    places = step.concat(owners.unsqueeze(1), ids, axis=1)
    updates = step.input("Updates").reshape(-1)
    return step.add("ScatterND", step.input(), places, updates, reduction="add")
