"""Matching anchors with boxes of the truth, and the targets that follow from it.

Parameters
----------
dist_matrix
    Overlaps (K, M) of true boxes and anchors, one sequence per image.
match_type
    ``"bipartite"``, or ``"per_prediction"`` to match the other columns too; None for the first.
dist_threshold
    The least overlap for these; None for 0.5.
matched_indices
    The row of each anchor, int32 (N, M), -1 for none.
negative_indices
    Anchors that stand for the background, int32 (rows, 1); None for none.
mismatch_value
    The target of an anchor without a match; None for 0.
"""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variable
from paddlelike.layers.emit import emit_all

__all__ = ["bipartite_match", "target_assign"]


def bipartite_match(
    dist_matrix: Variable,
    match_type: str | None = None,
    dist_threshold: float | None = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Return, for each column of ``dist_matrix``, the row it is matched with (int32) and their distance.

    ``dist_matrix`` (K, M) has the rows of an image as one sequence; both results are (N, M), rows counted
    within the image, -1 and 0 for a column without a match. The greatest distance is matched first, each row
    once. ``match_type`` "per_prediction" then matches every other column with its greatest distance, if that
    is at least ``dist_threshold`` (0.5); "bipartite", the default, does not. Operator ``bipartite_match``.

    Raises TypeError unless ``dist_matrix`` is a variable of a supported dtype.

    >>> from paddlelike.input import data
    >>> indices, distances = bipartite_match(data("overlaps", [None, 20], lod_level=1))
    >>> indices.dtype.name, distances.shape
    ('INT32', (-1, 20))
    """
    check_variable("bipartite_match", "dist_matrix", dist_matrix)
    attrs = {"match_type": match_type, "dist_threshold": dist_threshold}
    indices, distances = emit_all(
        "bipartite_match",
        {"DistMat": dist_matrix},
        {"ColToRowMatchIndices": "int32", "ColToRowMatchDist": dist_matrix.dtype},
        {key: value for key, value in attrs.items() if value is not None},
        name=name,
    )
    return indices, distances


def target_assign(
    input: Variable,
    matched_indices: Variable,
    negative_indices: Variable | None = None,
    mismatch_value: int | None = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Return the row of ``input`` that each anchor is matched with, and weights.

    ``input`` (rows, P, K) has the rows of an image as one sequence, P being the anchors or a divisor of their
    number; ``matched_indices`` (N, M) int32 as :func:`bipartite_match` gives them. The targets are (N, M, K),
    ``mismatch_value`` (0) where an anchor has no match; the weights (N, M, 1) float32 are 1 where it has one,
    and for ``negative_indices`` (rows, 1), anchors that stand for the background, else 0. Operator
    ``target_assign``.

    Raises TypeError unless ``input`` is a variable of a supported dtype.

    Parameters
    ----------
    input
        (rows, P, K), one sequence per image.

    >>> from paddlelike.input import data
    >>> labels = data("labels", [None, 1, 1], "int32", lod_level=1)
    >>> matched = data("matched", [None, 20], "int32")
    >>> [one.shape for one in target_assign(labels, matched, mismatch_value=0)]
    [(-1, 20, 1), (-1, 20, 1)]
    """
    check_variable("target_assign", "input", input)
    target, weight = emit_all(
        "target_assign",
        {"X": input, "MatchIndices": matched_indices, "NegIndices": negative_indices},
        {"Out": input.dtype, "OutWeight": "float32"},
        {} if mismatch_value is None else {"mismatch_value": mismatch_value},
        name=name,
    )
    return target, weight
