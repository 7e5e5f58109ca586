"""positive_negative_pair: the number of correctly ordered pairs of documents of a query."""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Int, OpDef, Spec, register


@register
class PositiveNegativePair(OpDef):
    """Pairs of rows of one query whose labels differ: PositivePair, NegativePair, NeutralPair ``(1,)``.

    Score ``(N, W)``, read in ``column``; Label, QueryID (int64) and Weight ``(N, 1)``. A pair is positive if
    its scores are in the order of its labels, else negative; as in Paddle, equal scores count as neutral and
    as negative. The weight of a pair is the mean of its rows' weights. The accumulated counts are added.
    """

    type = "positive_negative_pair"
    inputs = (
        "Score", "Label", "QueryID", "AccumulatePositivePair?", "AccumulateNegativePair?",
        "AccumulateNeutralPair?", "Weight?",
    )  # fmt: skip
    outputs = ("PositivePair", "NegativePair", "NeutralPair?")
    attrs = {"column": Int(0)}

    @staticmethod
    def infer(score: Spec, label: Spec, query: Spec, *others: Spec | None) -> tuple[Spec, Spec, Spec]:
        if len(score.shape) != 2 or len(label.shape) != 2 or len(query.shape) != 2:
            raise ShapeError(
                f"positive_negative_pair: Score has shape {score.shape}, Label {label.shape}, QueryID "
                f"{query.shape}; they need 2 dims"
            )
        one = Spec((1,), score.dtype)
        return one, one, one

    @staticmethod
    def forward(
        score: Array,
        label: Array,
        query: Array,
        positive: Array | None,
        negative: Array | None,
        neutral: Array | None,
        weight: Array | None,
        *,
        column: int,
    ) -> tuple[Array, Array, Array]:
        scores, labels, queries = score[:, column], label.reshape(-1), query.reshape(-1)
        weights = np.ones(len(scores), score.dtype) if weight is None else weight.reshape(-1)
        totals: Any = np.zeros(3, np.float64)
        if positive is not None and negative is not None and neutral is not None:
            totals += [float(each.reshape(-1)[0]) for each in (positive, negative, neutral)]
        for each in np.unique(queries):
            rows = np.flatnonzero(queries == each)
            first, second = (rows[index] for index in np.triu_indices(len(rows), 1))
            differ = labels[first] != labels[second]
            first, second = first[differ], second[differ]
            mean = (weights[first] + weights[second]) * 0.5
            right = (scores[first] - scores[second]) * (labels[first] - labels[second]) > 0
            equal = scores[first] == scores[second]
            totals += [mean[right].sum(), mean[~right].sum(), mean[equal].sum()]
        found = totals.astype(score.dtype)
        return found[:1], found[1:2], found[2:]
