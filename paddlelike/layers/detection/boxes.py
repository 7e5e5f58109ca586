"""Boxes: overlaps, encoding, clipping, and matching with the true boxes.

Parameters
----------
prior_box
    The anchors: (M, 4).
prior_box_var
    The variances: (M, 4), or four numbers.
box_normalized
    Whether boxes are shares of the image. Otherwise they are pixels, and the last row and column belong to a
    box.
dist_matrix
    Overlaps (K, M) of true boxes and anchors, one sequence per image.
match_type
    ``"bipartite"``, or ``"per_prediction"`` to match the other columns too; None for ``"bipartite"``.
dist_threshold
    The least overlap, from 0 to 1, for a match of the other columns; None for 0.5.
matched_indices
    The row of each anchor, int32 (N, M), -1 for none.
negative_indices
    Anchors that stand for the background, int32 (rows, 1); None for none.
mismatch_value
    The target of an anchor without a match; None for 0.
"""

from __future__ import annotations

from paddlelike.framework import Variable
from paddlelike.layers.emit import WIDE_FLOATS, check_variable, describe, emit, emit_all

__all__ = [
    "bipartite_match",
    "box_clip",
    "box_coder",
    "box_decoder_and_assign",
    "iou_similarity",
    "polygon_box_transform",
    "target_assign",
]


def box_coder(
    prior_box: Variable,
    prior_box_var: Variable | list[float],
    target_box: Variable,
    code_type: str = "encode_center_size",
    box_normalized: bool = True,
    name: str | None = None,
    axis: int = 0,
) -> Variable:
    """Return ``target_box`` encoded relative to the anchors ``prior_box`` (M, 4), or decoded from them.

    A code is the shift of the center, in widths and heights of the anchor, and the logarithms of the ratios
    of the sides, all divided by ``prior_box_var``. "encode_center_size" turns boxes (N, 4) into codes (N, M,
    4): every box against every anchor. "decode_center_size" turns codes (N, M, 4), or (M, N, 4) with
    ``axis`` 1, into as many boxes. Boxes are (xmin, ymin, xmax, ymax), in pixels unless ``box_normalized``.
    Operator ``box_coder``.

    Parameters
    ----------
    target_box
        Boxes (N, 4) to encode, or codes (N, M, 4) to decode.
    code_type
        ``"encode_center_size"`` or ``"decode_center_size"``.
    axis
        The dim of the codes that counts the boxes: 1 for (M, N, 4).

    Returns
    -------
    Variable
        (N, M, 4), in the dtype of ``target_box``: codes or boxes.

    Raises
    ------
    TypeError
        ``prior_box_var`` is neither a variable nor a list.

    >>> from paddlelike.input import data
    >>> anchors, boxes = data("anchors", [20, 4]), data("boxes", [None, 4], lod_level=1)
    >>> box_coder(anchors, [0.1, 0.1, 0.2, 0.2], boxes).shape
    (-1, 20, 4)
    """
    check_variable("box_coder", "prior_box", prior_box)
    check_variable("box_coder", "target_box", target_box)
    attrs = {"code_type": code_type, "box_normalized": box_normalized, "axis": axis}
    inputs = {"PriorBox": prior_box, "TargetBox": target_box}
    if isinstance(prior_box_var, Variable):
        inputs["PriorBoxVar"] = prior_box_var
    elif isinstance(prior_box_var, list):
        attrs["variance"] = prior_box_var
    else:
        raise TypeError(
            f"layer 'box_coder': prior_box_var must be a variable or a list of 4 numbers, got "
            f"{describe(prior_box_var)}\n  hint: [1.0, 1.0, 1.0, 1.0] leaves the code as it is"
        )
    return emit("box_coder", inputs, attrs, name=name, slot="OutputBox", dtype=prior_box.dtype)


def box_clip(input: Variable, im_info: Variable, name: str | None = None) -> Variable:
    """Return the boxes of every image, clipped to the borders of the image.

    The borders are the size of the image before it was scaled: height / scale and width / scale. Operator
    ``box_clip``.

    Parameters
    ----------
    input
        Boxes in pixels, (rows, ..., 4), one sequence per image.
    im_info
        (height, width, scale) of each image, (N, 3).

    Returns
    -------
    Variable
        In the shape, dtype and LoD of ``input``.

    Raises
    ------
    TypeError
        ``input`` or ``im_info`` is not a variable of floats.

    >>> from paddlelike.input import data
    >>> box_clip(data("boxes", [None, 4], lod_level=1), data("info", [None, 3])).shape
    (-1, 4)
    """
    check_variable("box_clip", "input", input, WIDE_FLOATS)
    check_variable("box_clip", "im_info", im_info, WIDE_FLOATS)
    return emit("box_clip", {"Input": input, "ImInfo": im_info}, name=name, slot="Output")


def box_decoder_and_assign(
    prior_box: Variable,
    prior_box_var: Variable,
    target_box: Variable,
    box_score: Variable,
    box_clip: float,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Return the decoded boxes of all classes, and the box of the best class for every anchor.

    ``prior_box`` is (N, 4), in pixels, ``prior_box_var`` (4,). The background is never the best class.
    Operator ``box_decoder_and_assign``. Cai and Vasconcelos, Cascade R-CNN, 2018.

    Parameters
    ----------
    target_box
        Codes (N, 4 * classes).
    box_score
        Scores (N, classes), the background first.
    box_clip
        The upper bound of the logarithms of the sides.

    Returns
    -------
    boxes : Variable
        (N, 4 * classes): the box of each class.
    assigned : Variable
        (N, 4): the box of the class with the best score.

    Raises
    ------
    TypeError
        An input is not a variable.

    >>> from paddlelike.input import data
    >>> anchors, variances = data("anchors", [None, 4]), data("variances", [4])
    >>> codes, scores = data("codes", [None, 12]), data("scores", [None, 3])
    >>> [one.shape for one in box_decoder_and_assign(anchors, variances, codes, scores, 4.135)]
    [(-1, 12), (-1, 4)]
    """
    check_variable("box_decoder_and_assign", "prior_box", prior_box)
    decoded, assigned = emit_all(
        "box_decoder_and_assign",
        {"PriorBox": prior_box, "PriorBoxVar": prior_box_var, "TargetBox": target_box, "BoxScore": box_score},
        {"DecodeBox": prior_box.dtype, "OutputAssignBox": prior_box.dtype},
        {"box_clip": box_clip},
        name=name,
    )
    return decoded, assigned


def iou_similarity(
    x: Variable, y: Variable, box_normalized: bool = True, name: str | None = None
) -> Variable:
    """Return the overlap of every box of ``x`` (N, 4) with every box of ``y`` (M, 4): (N, M).

    The overlap is the area of the intersection divided by the area of the union; boxes are (xmin, ymin, xmax,
    ymax), in pixels unless ``box_normalized``. Operator ``iou_similarity``.

    Parameters
    ----------
    x
        Boxes (N, 4), with or without LoD.
    y
        Boxes (M, 4).

    Returns
    -------
    Variable
        (N, M), numbers from 0 to 1, in the dtype of ``x`` and with its LoD.

    Raises
    ------
    TypeError
        ``x`` or ``y`` is not a variable.

    >>> from paddlelike.input import data
    >>> iou_similarity(data("x", [None, 4], lod_level=1), data("y", [20, 4])).shape
    (-1, 20)
    """
    check_variable("iou_similarity", "x", x)
    check_variable("iou_similarity", "y", y)
    return emit("iou_similarity", {"X": x, "Y": y}, {"box_normalized": box_normalized}, name=name)


def polygon_box_transform(input: Variable, name: str | None = None) -> Variable:
    """Return coordinates of corners from their distances to the pixels of a map four times smaller.

    ``input`` (N, 2 * corners, H, W) gives ``4 * w - input`` in even channels and ``4 * h - input`` in odd
    ones. Operator ``polygon_box_transform``. Zhou et al., EAST, 2017.

    Parameters
    ----------
    input
        Distances (N, 2 * corners, H, W).

    Returns
    -------
    Variable
        In the shape and dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32 or float64.

    >>> from paddlelike.input import data
    >>> polygon_box_transform(data("x", [None, 8, 16, 16])).shape
    (-1, 8, 16, 16)
    """
    check_variable("polygon_box_transform", "input", input, WIDE_FLOATS)
    return emit("polygon_box_transform", {"Input": input}, {}, name=name, slot="Output")


def bipartite_match(
    dist_matrix: Variable,
    match_type: str | None = None,
    dist_threshold: float | None = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Return for each column of ``dist_matrix`` the matched row (int32) and the distance between both.

    Both results are (N, M); rows are counted within the image, and a column without a match has -1 and 0. The
    greatest distance is matched first, each row once. ``match_type`` "per_prediction" then matches every
    other column with the row of its greatest distance, if that is at least ``dist_threshold`` (0.5). Operator
    ``bipartite_match``.

    Returns
    -------
    indices : Variable
        int32 (N, M): the row that each column is matched with, -1 for none.
    distances : Variable
        (N, M), in the dtype of ``dist_matrix``: its value for this match, 0 for none.

    Raises
    ------
    TypeError
        ``dist_matrix`` is not a variable.

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
    """Return for each anchor the matched row of ``input``, and its weight.

    ``input`` is (rows, P, K); P is the number of anchors, or a divisor of it. ``matched_indices`` is the
    result of :func:`bipartite_match`. The target of an anchor without a match is ``mismatch_value``. The
    weight is 1 for anchors with a match and for those in ``negative_indices``, else 0. Operator
    ``target_assign``.

    Parameters
    ----------
    input
        (rows, P, K), one sequence per image.

    Returns
    -------
    targets : Variable
        (N, M, K), in the dtype of ``input``.
    weights : Variable
        float32 (N, M, 1).

    Raises
    ------
    TypeError
        ``input`` is not a variable.

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
