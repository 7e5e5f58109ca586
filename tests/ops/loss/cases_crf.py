"""Cases of chain CRFs and CTC, by counting every labelling."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from paddlelike.core import LoDTensor
from tests.ops.harness.contract import Case
from tests.ops.sequence.cases_sequence import join, split

Array = np.ndarray[Any, Any]

_rng = np.random.default_rng(13)
D, ENDS = 3, [0, 3, 4, 8]
EMISSION = _rng.standard_normal((8, D)) * 2
PADDED = _rng.standard_normal((3, 4, D)) * 2
TRANSITION = _rng.standard_normal((D + 2, D))
LABELS = _rng.integers(0, D, (8, 1))
CHAINS, CHAIN_LABELS = LoDTensor(EMISSION, [ENDS]), LoDTensor(LABELS, [ENDS])
PADDED_LABELS = _rng.integers(0, D, (3, 4, 1))
LENGTHS = np.array([[3], [1], [4]])


NO_START = TRANSITION.copy()
NO_START[0, 0] = np.nan  # no path begins with this label


def _score(rows: Array, transition: Array, labels: Sequence[int]) -> float:
    score = transition[0, labels[0]] + transition[1, labels[-1]]
    score += sum(rows[t, label] for t, label in enumerate(labels))
    return float(score + sum(transition[2 + a, b] for a, b in itertools.pairwise(labels)))


def _all_labels(rows: Array) -> list[tuple[int, ...]]:
    return list(itertools.product(range(D), repeat=len(rows)))


def _cost(rows: Array, transition: Array, labels: Array) -> list[float]:
    total = sum(np.exp(_score(rows, transition, every)) for every in _all_labels(rows))
    return [float(np.log(total)) - _score(rows, transition, labels.ravel().tolist())]


def _costs(chains: list[Array], labels: list[Array], transition: Array) -> dict[str, Array]:
    pairs = zip(chains, labels, strict=True)
    return {"LogLikelihood": np.array([_cost(rows, transition, one) for rows, one in pairs])}


def _best(rows: Array, transition: Array) -> Array:
    return np.array(max(_all_labels(rows), key=lambda every: _score(rows, transition, every)))[:, None]


def _cut(x: Array) -> list[Array]:
    return [rows[:n] for rows, n in zip(x, LENGTHS[:, 0], strict=True)]


LOGITS = _rng.standard_normal((9, 4))
LOGIT_ENDS, WORD_ENDS = [0, 4, 5, 9], [0, 2, 3, 5]
WORDS = np.array([[1], [2], [3], [1], [1]], np.int32)
PADDED_LOGITS = _rng.standard_normal((4, 2, 4))
PADDED_WORDS = np.array([[2, 2], [1, 0]], np.int32)


def _spell(path: Sequence[int], blank: int) -> list[int]:
    return [label for label, _ in itertools.groupby(path) if label != blank]


def _ctc(rows: Array, words: list[int], blank: int) -> list[float]:
    chances = np.exp(rows) / np.exp(rows).sum(1, keepdims=True)
    paths = itertools.product(range(rows.shape[1]), repeat=len(rows))
    total = sum(
        np.prod([chances[t, label] for t, label in enumerate(path)])
        for path in paths
        if _spell(path, blank) == words
    )
    return [-float(np.log(total))]


def _ctc_lod(Logits: Array, blank: int) -> dict[str, Array]:
    pairs = zip(split(Logits, LOGIT_ENDS), split(WORDS[:, 0], WORD_ENDS), strict=True)
    return {"Loss": np.array([_ctc(rows, words.tolist(), blank) for rows, words in pairs])}


def _ctc_padded(Logits: Array, LogitsLength: Array, LabelLength: Array) -> dict[str, Array]:
    return {
        "Loss": np.array(
            [
                _ctc(Logits[:n, i], PADDED_WORDS[i, :m].tolist(), 0)
                for i, (n, m) in enumerate(zip(LogitsLength, LabelLength, strict=True))
            ]
        )
    }


CASES = [
    Case(
        "linear_chain_crf",
        {"Emission": CHAINS, "Transition": TRANSITION, "Label": CHAIN_LABELS},
        lambda Emission, Transition: _costs(split(Emission, ENDS), split(LABELS, ENDS), Transition),
        check_shape=False,  # the cost is declared with a row per row
        through=("LogLikelihood",),
    ),
    Case(
        "linear_chain_crf",
        {"Emission": PADDED, "Transition": TRANSITION, "Label": PADDED_LABELS, "Length": LENGTHS},
        lambda Emission, Transition: _costs(_cut(Emission), _cut(PADDED_LABELS), Transition),
        note="padded",
        through=("LogLikelihood",),
    ),
    Case(
        "crf_decoding",
        {"Emission": CHAINS, "Transition": TRANSITION},
        lambda: join([_best(rows, TRANSITION) for rows in split(EMISSION, ENDS)]),
    ),
    Case(
        "crf_decoding",
        {"Emission": CHAINS, "Transition": NO_START},
        lambda: join([_best(rows, np.nan_to_num(NO_START, nan=-np.inf)) for rows in split(EMISSION, ENDS)]),
        note="nan",
    ),
    Case(
        "crf_decoding",
        {"Emission": CHAINS, "Transition": TRANSITION, "Label": CHAIN_LABELS},
        lambda: join([
            (_best(rows, TRANSITION) == labels).astype(np.int64)
            for rows, labels in zip(split(EMISSION, ENDS), split(LABELS, ENDS), strict=True)
        ]),
        note="label",
    ),
    *(
        Case(
            "warpctc",
            {"Logits": LoDTensor(LOGITS, [LOGIT_ENDS]), "Label": LoDTensor(WORDS, [WORD_ENDS])},
            _ctc_lod,
            {"blank": blank},
            note=f"blank-{blank}",
            through=("Loss",),
        )
        for blank in (0,)
    ),
    Case(
        "warpctc",
        {"Logits": PADDED_LOGITS, "Label": PADDED_WORDS, "LogitsLength": np.array([4, 3]),
         "LabelLength": np.array([2, 1])},
        _ctc_padded,
        note="padded",
        through=("Loss",),
    ),
    Case(
        "ctc_align",
        {"Input": LoDTensor(np.array([[0], [1], [1], [0], [1], [2], [2], [0], [2]]), [[0, 5, 9]])},
        lambda: LoDTensor(np.array([[1], [1], [2], [2]]), [[0, 2, 4]]),
        check_shape=False,
    ),
]  # fmt: skip
