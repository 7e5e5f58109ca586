"""Cases of the metrics of sequences."""

import itertools

import numpy as np

from paddlelike.core.tensor import LoDTensor
from tests.ops.harness.contract import Case

_rng = np.random.default_rng(16)
HYPS, REFS = _rng.integers(0, 4, (9, 1)), _rng.integers(0, 4, (12, 1))
_HYP_ENDS, _REF_ENDS = [0, 4, 5, 9], [0, 3, 7, 12]
PADDED_HYPS, PADDED_REFS = _rng.integers(0, 3, (2, 3, 6))
LENGTHS = np.array([4, 6, 1]), np.array([6, 2, 3])


def _distance(a, b):
    if not a or not b:
        return len(a) + len(b)
    same = _distance(a[:-1], b[:-1]) + (a[-1] != b[-1])
    return min(same, _distance(a[:-1], b) + 1, _distance(a, b[:-1]) + 1)


def _distances(hyps, refs, normalized):
    found = [
        _distance(list(h), list(r)) / (len(r) if normalized else 1) for h, r in zip(hyps, refs, strict=True)
    ]
    return {"SequenceNum": np.array([len(found)]), "Out": np.float32(found)[:, None]}


def _cut(rows, ends):
    return [rows[a:b, 0] for a, b in itertools.pairwise(ends)]


_TAGS = {"plain": "", "IOB": "BI", "IOE": "IE", "IOBES": "BIES"}


def _chunks(sequence, scheme, types, excluded):
    """Chunks of one sequence by walking over it, one tag after the other."""
    chunks, start, names = set(), None, _TAGS[scheme] or "x"
    tags = [(int(t) // len(names), names[int(t) % len(names)]) for t in sequence]
    for i, (kind, tag) in enumerate([*tags, (types, "B")]):
        before = tags[i - 1] if i else (types, "E")
        border = kind != before[0] or tag in "BS" or before[1] in "ES"
        if start is not None and (border or i == len(tags)):
            if before[0] not in excluded:
                chunks.add((start, i, before[0]))
            start = None
        if start is None and kind != types and i < len(tags):
            start = i
    return chunks


def _chunk_eval(found, true, scheme, types, excluded):
    counts = np.zeros(3, int)
    for f, t in zip(found, true, strict=True):
        a, b = (_chunks(one, scheme, types, excluded) for one in (f, t))
        counts += len(a), len(b), len(a & b)
    infer, label, right = counts
    p, r = right / max(infer, 1), right / max(label, 1)
    shares = np.float32([p, r, 2 * p * r / (p + r) if right else 0])
    names = ["Precision", "Recall", "F1-Score", "NumInferChunks", "NumLabelChunks", "NumCorrectChunks"]
    return {name: np.array([v]) for name, v in zip(names, [*shares, *counts], strict=True)}


def _chunk_case(scheme, *, excluded=(), padded=False):
    types = 3
    last = types * max(len(_TAGS[scheme]), 1)
    true = _rng.integers(0, last + 1, (60, 1))
    found = np.where(_rng.random((60, 1)) < 0.8, true, _rng.integers(0, last + 1, (60, 1)))
    attrs = {
        "chunk_scheme": scheme,
        "num_chunk_types": types,
        "excluded_chunk_types": list(excluded),
    }
    if padded:
        lengths = np.array([20, 9, 15])
        found, true = found.reshape(3, 20), true.reshape(3, 20)
        inputs = {"Inference": found, "Label": true, "SeqLength": lengths}
        sequences = [[row[:n] for row, n in zip(rows, lengths, strict=True)] for rows in (found, true)]
    else:
        ends = [0, 7, 8, 31, 60]
        inputs = {name: LoDTensor(rows, [ends]) for name, rows in (("Inference", found), ("Label", true))}
        sequences = [_cut(rows, ends) for rows in (found, true)]
    note = scheme + ("-excluded" if excluded else "") + ("-padded" if padded else "")
    return Case(
        "chunk_eval",
        inputs,
        lambda: _chunk_eval(*sequences, scheme, types, excluded),
        attrs,
        note=note,
        rtol=4e-7,  # four roundings of float32 in F1
    )


CASES = [
    *(
        Case(
            "edit_distance",
            {"Hyps": LoDTensor(HYPS, [_HYP_ENDS]), "Refs": LoDTensor(REFS, [_REF_ENDS])},
            lambda normalized: _distances(_cut(HYPS, _HYP_ENDS), _cut(REFS, _REF_ENDS), normalized),
            {"normalized": normalized},
            note="normalized" if normalized else "",
            check_shape=False,  # declared as ids
        )
        for normalized in (False, True)
    ),
    Case(
        "edit_distance",
        {"Hyps": PADDED_HYPS, "Refs": PADDED_REFS, "HypsLength": LENGTHS[0], "RefsLength": LENGTHS[1]},
        lambda normalized: _distances(
            [row[:n] for row, n in zip(PADDED_HYPS, LENGTHS[0], strict=True)],
            [row[:n] for row, n in zip(PADDED_REFS, LENGTHS[1], strict=True)],
            normalized,
        ),
        note="padded",
        check_shape=False,
    ),
    *(_chunk_case(scheme) for scheme in _TAGS),
    _chunk_case("IOB", excluded=(1,)),
    _chunk_case("IOBES", padded=True),
]
