"""Areas under the curves of a classifier, from the counts of positives and negatives per score."""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import Array

__all__ = ["compute_precision_recall_area", "compute_roc_area"]


def compute_roc_area(pos: Array, neg: Array) -> float:
    """Return the area under the curve of (negatives, positives) found as the threshold falls."""
    pos, neg = _drop_empty(pos, neg)
    if not len(pos):
        return 0.0
    found_pos, found_neg = np.cumsum(pos[::-1], dtype=float), np.cumsum(neg[::-1], dtype=float)
    before = np.concatenate(([0.0], found_pos[:-1]))
    area = float((neg[::-1] * (found_pos + before)).sum() / 2)
    square = found_pos[-1] * found_neg[-1]
    return area / float(square) if square else area


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
    """Return the counts without scores that nothing has: most, which add nothing to an area."""
    used = np.flatnonzero(pos | neg)
    return pos[used], neg[used]
