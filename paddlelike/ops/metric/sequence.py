"""Metrics of sequences: edit_distance, chunk_eval.

Sequences are rows cut by LoD, or padded to (batch, time) with their lengths.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    REQUIRED,
    Array,
    Bool,
    Context,
    Int,
    Ints,
    OpDef,
    Spec,
    String,
    register,
)
from paddlelike.ops.kernels.fast import sequence as fast


def _split_sequences(ctx: Context, slot: str, rows: Array, lengths: Array | None) -> list[Array]:
    """Return the sequences of a slot, each as an array of one dim."""
    if lengths is not None:
        padded = rows.reshape(len(rows), -1)
        return [row[:n] for row, n in zip(padded, lengths.reshape(-1), strict=True)]
    lod = ctx.lod(slot)
    if not lod:
        raise EnforceNotMet(
            f"{ctx.op.type}: {slot} has no LoD",
            hint="feed a LoDTensor, or a padded tensor together with the lengths",
        )
    return np.split(rows.reshape(-1)[: lod[-1][-1]], lod[-1][1:-1])  # of wider rows, the first numbers of all


@register
class EditDistance(OpDef):
    """``Out``: the number of insertions, deletions and replacements that turn each of Hyps into its Refs.

    Out is (N, 1); with ``normalized`` the numbers are divided by the lengths of the references. SequenceNum
    is N. Source: Levenshtein, 1966.
    """

    type = "edit_distance"
    inputs = ("Hyps", "Refs", "HypsLength?", "RefsLength?")
    outputs = ("SequenceNum", "Out")
    attrs = {"normalized": Bool(False)}

    @staticmethod
    def infer(
        hyps: Spec, refs: Spec, hyps_length: Spec | None, refs_length: Spec | None
    ) -> tuple[Spec, Spec]:
        if (hyps_length is None) != (refs_length is None):
            raise ShapeError(
                "edit_distance: HypsLength and RefsLength must be given together; one is missing"
            )
        # distances are float32 (sequences, 1), but Paddle declares them as the ids
        return Spec((1,), VarType.INT64), Spec(refs.shape, hyps.dtype)

    @staticmethod
    def forward(
        ctx: Context,
        hyps: Array,
        refs: Array,
        hyps_length: Array | None,
        refs_length: Array | None,
        *,
        normalized: bool,
    ) -> tuple[Array, Array]:
        found = _split_sequences(ctx, "Hyps", hyps, hyps_length)
        wanted = _split_sequences(ctx, "Refs", refs, refs_length)
        if len(found) != len(wanted):
            raise EnforceNotMet(f"edit_distance: Hyps has {len(found)} sequences, Refs {len(wanted)}")
        out = np.array(
            [_compute_distance(hyp, ref) for hyp, ref in zip(found, wanted, strict=True)], np.float32
        )
        if normalized:
            size = np.array([len(ref) for ref in wanted], np.float32)
            if not size.all():
                raise EnforceNotMet(
                    f"edit_distance: sequence {int(size.argmin())} of Refs is empty, "
                    "so no distance to it can be normalized"
                )
            out /= size
        return np.array([len(out)], np.int64), out.reshape(-1, 1)


def _compute_distance(hyp: Array, ref: Array) -> int:
    """Return the edit distance, row by row of the table of prefixes; insertions are a running minimum."""
    if (kernel := fast.compare_sequences.choose(len(hyp) * len(ref), hyp, ref)) is not None:
        return int(kernel(hyp, ref, np.empty(len(ref) + 1, np.int64)))
    columns = np.arange(len(ref) + 1)
    row = columns.copy()
    for index, token in enumerate(hyp, 1):
        best = np.empty_like(row)
        best[0] = index
        np.minimum(row[1:] + 1, row[:-1] + (ref != token), out=best[1:])
        row = np.minimum.accumulate(best - columns) + columns
    return int(row[-1])


class _Tags(NamedTuple):
    """The index of each kind of tag in a scheme; -1 if the scheme lacks it."""

    kinds: int
    begin: int = -1
    inside: int = -1
    end: int = -1
    single: int = -1


SCHEMES: Final = {
    "plain": _Tags(1),
    "IOB": _Tags(2, begin=0, inside=1),
    "IOE": _Tags(2, inside=0, end=1),
    "IOBES": _Tags(4, begin=0, inside=1, end=2, single=3),
}


@register
class ChunkEval(OpDef):
    """Precision, recall and F1 of chunks found in sequences of tags, and the counts of chunks.

    A tag is ``chunk type * tags of the scheme + tag``; ``num_chunk_types * tags`` is outside of all chunks. A
    chunk is correct if its start, end and type are.
    """

    type = "chunk_eval"
    inputs = ("Inference", "Label", "SeqLength?")
    outputs = ("Precision", "Recall", "F1-Score", "NumInferChunks", "NumLabelChunks", "NumCorrectChunks")
    attrs = {
        "num_chunk_types": Int(REQUIRED),
        "chunk_scheme": String("IOB"),
        "excluded_chunk_types": Ints([]),
    }

    @staticmethod
    def infer(inference: Spec, label: Spec, lengths: Spec | None, *, chunk_scheme: str) -> tuple[Spec, ...]:
        if chunk_scheme not in SCHEMES:
            raise ShapeError(f"chunk_eval: chunk_scheme is {chunk_scheme!r}, expected one of {list(SCHEMES)}")
        share, count = Spec((1,), VarType.FP32), Spec((1,), VarType.INT64)
        return share, share, share, count, count, count

    @staticmethod
    def forward(
        ctx: Context,
        inference: Array,
        label: Array,
        lengths: Array | None,
        *,
        num_chunk_types: int,
        chunk_scheme: str,
        excluded_chunk_types: list[int],
    ) -> tuple[Array, ...]:
        chunks = []
        for slot, rows in (("Inference", inference), ("Label", label)):
            sequences = _split_sequences(ctx, slot if lengths is not None else "Label", rows, lengths)
            chunks.append(_find_chunks(sequences, chunk_scheme, num_chunk_types, excluded_chunk_types))
        found, true = chunks
        correct = len(found & true)
        # float32 throughout, in the order of operators/chunk_eval_op.h: equal to the last bit
        hits = np.float32(correct)
        precision = hits / np.float32(len(found)) if found else np.float32(0)
        recall = hits / np.float32(len(true)) if true else np.float32(0)
        f1 = 2 * precision * recall / (precision + recall) if correct else np.float32(0)
        shares = [np.array([value], np.float32) for value in (precision, recall, f1)]
        numbers = [np.array([value], np.int64) for value in (len(found), len(true), correct)]
        return (*shares, *numbers)


def _find_chunks(
    sequences: list[Array], scheme: str, types: int, excluded: list[int]
) -> set[tuple[int, int, int]]:
    """Return the chunks as (first row, last row, type)."""
    tags = SCHEMES[scheme]
    rows = np.concatenate(sequences) if sequences else np.zeros(0, np.int64)
    if rows.size and not 0 <= rows.min() <= rows.max() <= types * tags.kinds:
        raise EnforceNotMet(
            f"chunk_eval: tags go from {rows.min()} to {rows.max()}, "
            f"expected 0 .. {types * tags.kinds} for {types} chunk types of scheme {scheme}"
        )
    kind, tag = rows // tags.kinds, rows % tags.kinds
    first = np.zeros(len(rows) + 1, bool)  # the rows that start a sequence, and the end of all
    first[np.cumsum([0, *map(len, sequences)])] = True

    before_kind, before_tag = np.roll(kind, 1), np.roll(tag, 1)
    starts_anew = np.isin(tag, (tags.begin, tags.single))
    ended = np.isin(before_tag, (tags.end, tags.single))
    border = first[:-1] | (kind != before_kind) | starts_anew | ended
    inside = kind != types
    starts = np.flatnonzero(border & inside)
    stops = np.append(np.flatnonzero(border), len(rows))
    ends = stops[np.searchsorted(stops, starts, side="right")] - 1
    return {
        (first_row, last_row, chunk)
        for first_row, last_row, chunk in zip(
            starts.tolist(), ends.tolist(), kind[starts].tolist(), strict=True
        )
        if chunk not in excluded
    }
