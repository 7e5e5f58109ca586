"""Non-maximum suppression: keep the best of overlapping boxes.

Parameters
----------
bboxes
    Boxes (N, M, 4), or polygons of 8, 16, 24 or 32 numbers.
scores
    (N, classes, M).
score_threshold
    The score above which a box is considered.
nms_top_k
    The number of boxes of a class that are considered; -1 for all.
keep_top_k
    The number of boxes of an image that remain; -1 for all.
nms_threshold
    The overlap, from 0 to 1, above which a worse box is dropped.
normalized
    Whether boxes are shares of the image. Otherwise they are pixels, and the last row and column belong to a
    box.
nms_eta
    A factor; below 1, the overlap threshold is multiplied by it after each box that is kept.
background_label
    The class that is left out; -1 for none.
post_threshold
    The lowered score above which a box remains.
use_gaussian
    Whether scores are lowered by a Gaussian of the overlap, otherwise linearly.
gaussian_sigma
    The factor in the exponent of the Gaussian.
return_index
    Whether the index of each box is returned as well.
anchors
    For each level, anchors (M, 4).
im_info
    (height, width, scale) of each image, (N, 3).
"""

from __future__ import annotations

from typing import Any, Literal, overload

from paddlelike.errors import GraphError
from paddlelike.framework import Variable
from paddlelike.layers.emit import (
    WIDE_FLOATS,
    check_type,
    check_variable,
    check_variables,
    describe,
    emit,
    emit_all,
)

__all__ = ["locality_aware_nms", "matrix_nms", "multiclass_nms", "retinanet_detection_output"]


def multiclass_nms(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = 0,
    name: str | None = None,
) -> Variable:
    """Return the boxes that remain as rows (label, score, box), one sequence per image.

    ``bboxes`` (N, M, 4) and ``scores`` (N, classes, M) may also be sequences (rows, classes, 4) and (rows,
    classes), where every class has its own boxes. For each class except ``background_label``, the
    ``nms_top_k`` best boxes above ``score_threshold`` are considered, the best first. A box is dropped if it
    overlaps an already kept box by more than ``nms_threshold``. This threshold is multiplied by ``nms_eta``
    after each kept box, as long as it is above 0.5. The ``keep_top_k`` best boxes of each image remain.

    The result is [[-1]] (1, 1) when no image has a box. Operator ``multiclass_nms``; no gradient.

    Returns
    -------
    Variable
        (D, 6), or (D, 2 + points) for polygons, with a sequence for each image: label, score, box.

    Raises
    ------
    TypeError
        An argument has another type, such as an int in place of a float.

    >>> from paddlelike.input import data
    >>> boxes, scores = data("boxes", [None, 100, 4]), data("scores", [None, 21, 100])
    >>> multiclass_nms(boxes, scores, score_threshold=0.01, nms_top_k=50, keep_top_k=20).lod_level
    1
    """
    layer = "multiclass_nms"
    attrs = _read_options(
        layer, bboxes, scores, score_threshold, nms_top_k, keep_top_k, background_label, normalized
    )
    attrs |= _read_threshold(layer, nms_threshold, nms_eta)
    return emit(layer, {"BBoxes": bboxes, "Scores": scores}, attrs, name=name, constant=True)


@overload
def multiclass_nms2(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = 0,
    return_index: Literal[False] = False,
    name: str | None = None,
) -> Variable: ...


@overload
def multiclass_nms2(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = 0,
    *,
    return_index: Literal[True],
    name: str | None = None,
) -> tuple[Variable, Variable]: ...


def multiclass_nms2(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = 0,
    return_index: bool = False,
    name: str | None = None,
) -> Variable | tuple[Variable, Variable]:
    """Return the result of :func:`multiclass_nms` and, with ``return_index``, the index of each box: (rows,
    1).

    An index, int32, counts through the batch: image * M + box, or row * classes + label. Without any box the
    results have no rows. Operator ``multiclass_nms2`` (in Fluid ``fluid.contrib.layers.multiclass_nms2``).

    Parameters
    ----------
    return_index
        Whether the indexes are returned too.

    Returns
    -------
    Variable or tuple
        Boxes (rows, 6): label, score and corners, a sequence per image; with ``return_index``
        also their indexes, (rows, 1).

    See Also
    --------
    fluid.layers.multiclass_nms

    >>> from paddlelike.input import data
    >>> boxes, scores = data("boxes", [2, 10, 4]), data("scores", [2, 3, 10])
    >>> out = multiclass_nms2(boxes, scores, score_threshold=0.5, nms_top_k=5, keep_top_k=5)
    >>> out.shape[-1]
    6
    """
    attrs = {
        "background_label": background_label,
        "score_threshold": score_threshold,
        "nms_top_k": nms_top_k,
        "nms_threshold": nms_threshold,
        "nms_eta": nms_eta,
        "keep_top_k": keep_top_k,
        "normalized": normalized,
    }
    outputs = {"Out": bboxes.dtype, "Index": "int64"}
    inputs = {"BBoxes": bboxes, "Scores": scores}
    out, index = emit_all("multiclass_nms2", inputs, outputs, attrs, name=name, constant=True)
    return (out, index) if return_index else out


@overload
def matrix_nms(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    post_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    use_gaussian: bool = False,
    gaussian_sigma: float = 2.0,
    background_label: int = 0,
    normalized: bool = True,
    return_index: Literal[False] = False,
    name: str | None = None,
) -> Variable: ...


@overload
def matrix_nms(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    post_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    use_gaussian: bool = False,
    gaussian_sigma: float = 2.0,
    background_label: int = 0,
    normalized: bool = True,
    *,
    return_index: Literal[True],
    name: str | None = None,
) -> tuple[Variable, Variable]: ...


def matrix_nms(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    post_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    use_gaussian: bool = False,
    gaussian_sigma: float = 2.0,
    background_label: int = 0,
    normalized: bool = True,
    return_index: bool = False,
    name: str | None = None,
) -> Variable | tuple[Variable, Variable]:
    """Return the best boxes of every image as rows (label, score, box), with scores lowered by overlaps.

    A box that overlaps a better box of its class is not dropped. Instead its score is lowered: linearly by
    the overlap, or with ``use_gaussian`` by ``exp(-gaussian_sigma * overlap ** 2)``. It is lowered less if a
    third box overlaps the better box. Boxes whose score is then above ``post_threshold`` remain, at most
    ``keep_top_k`` per image. Operator ``matrix_nms``; no gradient. Wang et al., SOLOv2, 2020.

    Returns
    -------
    out : Variable
        (D, 6) with a sequence for each image: label, score, box.
    index : Variable
        Only with ``return_index``: (D, 1), image * M + box.

    Raises
    ------
    TypeError
        An argument has another type.

    >>> from paddlelike.input import data
    >>> boxes, scores = data("boxes", [None, 100, 4]), data("scores", [None, 21, 100])
    >>> matrix_nms(boxes, scores, 0.01, 0.05, nms_top_k=50, keep_top_k=20, return_index=True)[0].shape
    (100, 6)
    """
    layer = "matrix_nms"
    attrs = _read_options(
        layer, bboxes, scores, score_threshold, nms_top_k, keep_top_k, background_label, normalized
    )
    check_type(layer, "post_threshold", post_threshold, float)
    check_type(layer, "use_gaussian", use_gaussian, bool)
    check_type(layer, "gaussian_sigma", gaussian_sigma, float)
    attrs |= {
        "post_threshold": post_threshold,
        "use_gaussian": use_gaussian,
        "gaussian_sigma": gaussian_sigma,
    }
    outputs = {"Out": bboxes.dtype, "Index": "int64"}
    out, index = emit_all(layer, {"BBoxes": bboxes, "Scores": scores}, outputs, attrs, name=name)
    out.stop_gradient = True
    return (out, index) if return_index else out


def locality_aware_nms(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = -1,
    name: str | None = None,
) -> Variable:
    """Return rows (label, score, box) of the boxes that remain after neighbours were merged.

    ``scores`` has one class. A box that overlaps the last merged box by more than ``nms_threshold`` is merged
    into it: the corners are averaged with the scores as weights, and the scores are added. The merged boxes
    then go through :func:`multiclass_nms`. Operator ``locality_aware_nms``; no gradient. Zhou et al., EAST,
    2017.

    Returns
    -------
    Variable
        (D, 6), or (D, 2 + points) for polygons, with a sequence for each image: label, score, box.

    Raises
    ------
    TypeError
        An argument has another type.
    GraphError
        ``scores`` has several classes.

    >>> from paddlelike.input import data
    >>> boxes, scores = data("boxes", [None, 100, 8]), data("scores", [None, 1, 100])
    >>> locality_aware_nms(boxes, scores, score_threshold=0.5, nms_top_k=50, keep_top_k=20).shape
    (100, 10)
    """
    layer = "locality_aware_nms"
    attrs = _read_options(
        layer, bboxes, scores, score_threshold, nms_top_k, keep_top_k, background_label, normalized
    )
    attrs |= _read_threshold(layer, nms_threshold, nms_eta)
    if len(scores.shape) != 3 or scores.shape[1] != 1:
        raise GraphError(
            f"layer {layer!r}: scores has shape {list(scores.shape)}, expected (N, 1, M)",
            hint="use layers.multiclass_nms for several classes",
        )
    return emit(layer, {"BBoxes": bboxes, "Scores": scores}, attrs, name=name, constant=True)


def _read_options(
    layer: str,
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    background_label: int,
    normalized: bool,
) -> dict[str, Any]:
    """Return the attributes that every suppression has; raise TypeError for an argument of another type."""
    check_variable(layer, "bboxes", bboxes, WIDE_FLOATS)
    check_variable(layer, "scores", scores, WIDE_FLOATS)
    attrs: dict[str, Any] = {"score_threshold": score_threshold}
    check_type(layer, "score_threshold", score_threshold, float)
    whole = {"nms_top_k": nms_top_k, "keep_top_k": keep_top_k, "background_label": background_label}
    for argument, value in whole.items():
        check_type(layer, argument, value, int)
    check_type(layer, "normalized", normalized, bool)
    return attrs | whole | {"normalized": normalized}


def _read_threshold(layer: str, nms_threshold: float, nms_eta: float) -> dict[str, Any]:
    check_type(layer, "nms_threshold", nms_threshold, float)
    check_type(layer, "nms_eta", nms_eta, float)
    return {"nms_threshold": nms_threshold, "nms_eta": nms_eta}


def retinanet_detection_output(
    bboxes: list[Variable],
    scores: list[Variable],
    anchors: list[Variable],
    im_info: Variable,
    score_threshold: float = 0.05,
    nms_top_k: int = 1000,
    keep_top_k: int = 100,
    nms_threshold: float = 0.3,
    nms_eta: float = 1.0,
) -> Variable:
    """Return the objects in each image: (D, 6), with one sequence per image.

    Operator ``retinanet_detection_output``. Classes count from 1.

    The ``nms_top_k`` best boxes above ``score_threshold`` of each level are decoded. Suppression at
    ``nms_threshold`` over all levels then keeps at most ``keep_top_k`` boxes per image.

    Parameters
    ----------
    bboxes
        For each level, codes (N, M, 4).
    scores
        For each level, probabilities (N, M, classes).
    nms_eta
        No effect, as in Fluid: the threshold stays the same.

    Returns
    -------
    Variable
        (D, 6) with a sequence for each image: label, score, corners.

    Raises
    ------
    TypeError
        An input is not a list of variables, or not a variable, of float32 or float64.

    >>> from paddlelike.input import data
    >>> moves, scores = data("moves", [None, 90, 4]), data("scores", [None, 90, 8])
    >>> anchors, info = data("anchors", [90, 4]), data("info", [None, 3])
    >>> retinanet_detection_output([moves], [scores], [anchors], info).shape
    (90, 6)
    """
    layer = "retinanet_detection_output"
    lists: dict[str, Any] = {"bboxes": bboxes, "scores": scores, "anchors": anchors}
    for argument, value in lists.items():
        if not isinstance(value, list):
            raise TypeError(f"layer {layer!r}: {argument} must be a list of variables, got {describe(value)}")
        check_variables(layer, argument, value, WIDE_FLOATS)
    check_variable(layer, "im_info", im_info, WIDE_FLOATS)
    return emit(
        layer,
        {"BBoxes": bboxes, "Scores": scores, "Anchors": anchors, "ImInfo": im_info},
        {
            "score_threshold": score_threshold,
            "nms_top_k": nms_top_k,
            "nms_threshold": nms_threshold,
            "keep_top_k": keep_top_k,
            "nms_eta": 1.0,
        },
        dtype=scores[0].dtype,
        constant=True,
    )
