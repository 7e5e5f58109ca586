"""Areas under the curves of a classifier, from the counts of positives and negatives per score."""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import Array


def compute_roc_area(pos: Array, neg: Array) -> float:
    """Return the area under the ROC curve, given the counts of negatives and positives per score."""
    pos, neg = _drop_empty(pos, neg)
    if not len(pos):
        return 0.0
    found = pos[::-1].cumsum()
    twice = found + found - pos[::-1]  # the positives found before and after each score
    area = float(neg[::-1].astype(float).dot(twice.astype(float))) / 2
    square = float(found[-1]) * float(np.add.reduce(neg))
    return area / square if square else area


def compute_precision_recall_area(pos: Array, neg: Array) -> float:
    """Return the average precision: the sum of precision times the rise of recall, as the threshold falls.

    0 when there are no positives. Manning et al., Introduction to Information Retrieval, 2008, section 8.4.
    """
    pos, neg = _drop_empty(pos, neg)
    if not len(pos):
        return 0.0
    found_pos, found_neg = np.cumsum(pos[::-1], dtype=float), np.cumsum(neg[::-1], dtype=float)
    found = found_pos + found_neg
    if not found_pos[-1]:
        return 0.0
    precision = np.divide(found_pos, found, out=np.zeros_like(found), where=found > 0)
    return float((pos[::-1] * precision).sum() / found_pos[-1])


def _drop_empty(pos: Array, neg: Array) -> tuple[Array, Array]:
    """Drop scores without counts, which most scores are: they add nothing to an area."""
    used = np.logical_or(pos, neg).nonzero()[0]
    return pos[used], neg[used]
