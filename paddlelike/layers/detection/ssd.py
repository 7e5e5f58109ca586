"""SSD, the single shot multibox detector (Liu et al., 2016): its head, its loss, its results.

Parameters
----------
prior_box
    The anchors, (M, 4).
prior_box_var
    The variances of the anchors: (M, 4), or four numbers.
background_label
    The class of the background.
nms_threshold
    The overlap, from 0 to 1, above which a worse box is dropped.
nms_top_k
    The number of boxes of a class that are considered; -1 for all.
keep_top_k
    The number of boxes of an image that remain; -1 for all.
score_threshold
    The score above which a box is considered.
nms_eta
    Recorded as 1, as in Fluid.
return_index
    Whether the index of each box is returned as well.
inputs
    The feature maps, a list.
image
    The images, (N, C, h, w).
base_size
    The side of the images, in pixels.
num_classes
    The number of classes, background included.
aspect_ratios
    For each map, widths over heights.
min_ratio, max_ratio
    The smallest and largest box, in percent of ``base_size``; used if no sizes are given.
min_sizes, max_sizes
    For each map, the smaller and the larger side in pixels; None to take them from the ratios.
steps, step_w, step_h
    For each map, the pixels between places; None for the size of the image divided by the size of the map.
offset
    The position of the first center, as a fraction of a step.
variance
    The four numbers by which codes of boxes are divided.
flip
    Whether the inverse of each ratio is added.
clip
    Whether boxes are cut off at the borders of the image.
kernel_size, pad, stride
    Options of the convolutions, as in :func:`conv2d`.
min_max_aspect_ratios_order
    Whether the square of the larger side comes second, as in Caffe.
gt_box
    The true boxes, (rows, 4), one sequence per image.
gt_label
    The classes of the true boxes, int32 (rows, 1).
overlap_threshold
    The overlap from which an anchor is matched.
neg_pos_ratio
    The number of anchors of the background that count for each match.
neg_overlap
    The overlap below which an anchor may stand for the background.
loc_loss_weight
    The weight of the boxes.
conf_loss_weight
    The weight of the classes.
match_type
    ``"per_prediction"`` or ``"bipartite"``, as in :func:`bipartite_match`.
mining_type
    ``"max_negative"``, the only value that Fluid supports.
normalize
    Whether the loss is divided by the weights of the matches.
sample_size
    Recorded in the operator. It has no effect with ``"max_negative"``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

from paddlelike.errors import GraphError
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Variable, warn_quirk
from paddlelike.layers.detection.anchors import prior_box
from paddlelike.layers.detection.boxes import bipartite_match, box_coder, iou_similarity, target_assign
from paddlelike.layers.elementwise.scale import cast
from paddlelike.layers.emit import check_variable, describe, emit_all
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.loss.classes import softmax_with_cross_entropy
from paddlelike.layers.loss.pointwise import smooth_l1
from paddlelike.layers.nn.conv import conv2d
from paddlelike.layers.nn.softmax import softmax
from paddlelike.layers.reduction import reduce_sum
from paddlelike.layers.tensor.concat import concat
from paddlelike.layers.tensor.reshape import flatten, reshape, shape, transpose
from paddlelike.layers.tensor.slice import slice as slice_layer

__all__ = ["detection_output", "multi_box_head", "ssd_loss"]


def multi_box_head(
    inputs: Sequence[Variable],
    image: Variable,
    base_size: float,
    num_classes: int,
    aspect_ratios: Sequence[Any],
    min_ratio: int | None = None,
    max_ratio: int | None = None,
    min_sizes: Sequence[Any] | None = None,
    max_sizes: Sequence[Any] | None = None,
    steps: Sequence[float] | None = None,
    step_w: Sequence[float] | None = None,
    step_h: Sequence[float] | None = None,
    offset: float = 0.5,
    variance: Sequence[float] = [0.1, 0.1, 0.2, 0.2],
    flip: bool = True,
    clip: bool = False,
    kernel_size: int = 1,
    pad: int = 0,
    stride: int = 1,
    name: str | None = None,
    min_max_aspect_ratios_order: bool = False,
) -> tuple[Variable, Variable, Variable, Variable]:
    """Return locations, confidences, anchors and variances that convolutions compute from feature maps.

    They are (N, M, 4), (N, M, num_classes), (M, 4) and (M, 4) for the M anchors of all maps.

    Without ``min_sizes`` and ``max_sizes`` the first map has boxes of 10 percent of ``base_size``; on the
    other maps their size grows in equal steps from ``min_ratio`` to ``max_ratio`` percent. The anchors are
    the results of :func:`prior_box`. With one map the results keep the shapes of its operators: (N, H * W * 4
    * priors), (N, H * W * num_classes * priors), (H, W, priors, 4). As in Fluid, ``name`` has no effect, and
    ``step_h`` none without ``step_w``.

    Returns
    -------
    locations : Variable
        (N, M, 4).
    confidences : Variable
        (N, M, num_classes).
    boxes : Variable
        (M, 4): the anchors.
    variances : Variable
        (M, 4).

    Raises
    ------
    GraphError
        The lists of sizes, ratios or steps do not have an entry for each map.

    >>> from paddlelike.input import data
    >>> maps = [data(f"map{size}", [None, 8, size, size]) for size in (8, 4, 2)]
    >>> image, sizes = data("image", [None, 3, 64, 64]), {"min_ratio": 20, "max_ratio": 90}
    >>> head = multi_box_head(maps, image, 64, num_classes=3, aspect_ratios=[[2.0]] * 3, **sizes)
    >>> [one.shape for one in head]
    [(-1, -1, 4), (-1, -1, 3), (336, 4), (336, 4)]
    """
    if not isinstance(inputs, list | tuple):
        raise GraphError(
            f"layer 'multi_box_head': inputs is {describe(inputs)}, expected a list of variables"
        )
    least, greatest = _find_sizes(len(inputs), base_size, (min_ratio, max_ratio), (min_sizes, max_sizes))
    step_w, step_h = (step_w, step_h) if steps is None else (steps, steps)
    given = {"aspect_ratios": aspect_ratios, "step_w": step_w, "step_h": step_h}
    for argument, value in given.items():
        if value is not None and not (argument == "aspect_ratios" and not value):
            _check_length("steps" if steps is not None and value is steps else argument, value, len(inputs))
    if step_h is not None and not step_w:
        warn_user("multi_box_head: as in Fluid, step_h has no effect without step_w")
    if step_w and step_h is None:
        raise GraphError("layer 'multi_box_head': step_w is given, but not step_h")

    parts: list[list[Variable]] = [[], [], [], []]
    for i, one in enumerate(inputs):
        step = [0.0, 0.0] if not step_w or step_h is None else [step_w[i], step_h[i]]
        ratios = [] if aspect_ratios is None else _as_list(aspect_ratios[i])
        options = (list(variance), flip, clip, step, offset, None, min_max_aspect_ratios_order)
        box, spread = prior_box(one, image, _as_list(least[i]), _as_list(greatest[i]), ratios, *options)
        for part, width in zip(parts, (4, num_classes), strict=False):
            count = box.shape[2] * width
            made = conv2d(one, count, kernel_size, padding=pad, stride=stride)
            part.append(flatten(transpose(made, [0, 2, 3, 1]), axis=1))
        parts[2].append(box)
        parts[3].append(spread)
    return _join_maps(parts, num_classes)


def _join_maps(
    parts: list[list[Variable]], num_classes: int
) -> tuple[Variable, Variable, Variable, Variable]:
    """Return locations, confidences, anchors and variances of all maps."""
    places, confidences, boxes, spreads = parts
    if len(boxes) == 1:
        joined = [places[0], confidences[0], boxes[0], spreads[0]]
    else:
        rows = [(flatten(b, axis=3), flatten(v, axis=3)) for b, v in zip(boxes, spreads, strict=True)]
        anchors = [concat(list(column)) for column in zip(*rows, strict=True)]
        joined = [
            reshape(concat(part, axis=1), [0, -1, width])
            for part, width in ((places, 4), (confidences, num_classes))
        ] + anchors
    for one in joined[2:]:
        one.stop_gradient = True
    return joined[0], joined[1], joined[2], joined[3]


def _find_sizes(
    maps: int, base: float, ratios: tuple[int | None, int | None], sizes: tuple[Any, Any]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the smallest and largest sizes of each map. Raises GraphError when the arguments do not fit."""
    least, greatest = sizes
    low, high = ratios
    if least is None and greatest is None and maps > 2 and low is not None and high is not None:
        step = (high - low) // (maps - 2)
        if step > 0:
            found = range(low, high + 1, step)
            least = [base * 0.10] + [base * ratio / 100.0 for ratio in found]
            greatest = [base * 0.20] + [base * (ratio + step) / 100.0 for ratio in found]
    if least is None or greatest is None or min(len(least), len(greatest)) < maps:
        raise GraphError(
            f"layer 'multi_box_head': there are no sizes for {maps} maps: min_sizes {sizes[0]}, max_sizes "
            f"{sizes[1]}, ratios from {low} to {high}",
            hint="pass min_sizes and max_sizes with an entry for each map, or for more than two maps "
            "min_ratio and max_ratio (percent) far enough apart",
        )
    return least, greatest


def _check_length(argument: str, value: object, length: int) -> None:
    if not isinstance(value, list | tuple) or len(value) != length:
        raise GraphError(
            f"layer 'multi_box_head': {argument} is {describe(value)}, expected a list with an entry for "
            f"each of the {length} inputs"
        )


def _as_list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def ssd_loss(
    location: Variable,
    confidence: Variable,
    gt_box: Variable,
    gt_label: Variable,
    prior_box: Variable,
    prior_box_var: Variable | list[float] | None = None,
    background_label: int = 0,
    overlap_threshold: float = 0.5,
    neg_pos_ratio: float = 3.0,
    neg_overlap: float = 0.5,
    loc_loss_weight: float = 1.0,
    conf_loss_weight: float = 1.0,
    match_type: str = "per_prediction",
    mining_type: str = "max_negative",
    normalize: bool = True,
    sample_size: int | None = None,
) -> Variable:
    """Return the loss (N, 1) of each image: the loss of matched boxes plus the loss of classes.

    ``location`` and ``confidence`` are results of :func:`multi_box_head`. Anchors are matched by
    :func:`bipartite_match`. The loss of a matched anchor is the smooth L1 loss of its codes plus the cross
    entropy of its classes. Some unmatched anchors are trained as background by cross entropy:
    ``neg_pos_ratio`` for each matched one. They are the anchors with the greatest loss whose overlaps with
    true boxes are all below ``neg_overlap``. ``normalize`` divides by the number of matched anchors of the
    batch.

    Parameters
    ----------
    location
        Codes of the boxes, (N, M, 4).
    confidence
        Unnormalized scores, (N, M, classes).

    Returns
    -------
    Variable
        (N, 1), in the dtype of ``location``.

    Raises
    ------
    GraphError
        ``mining_type`` is not "max_negative", the only one that has a loss in Fluid.
    TypeError
        ``location`` is not a variable.

    >>> from paddlelike.input import data
    >>> place, confidence = data("place", [None, 20, 4]), data("confidence", [None, 20, 3])
    >>> true = data("true", [None, 4], lod_level=1), data("label", [None, 1], "int32", lod_level=1)
    >>> ssd_loss(place, confidence, *true, data("anchors", [20, 4]), [0.1, 0.1, 0.2, 0.2]).shape
    (-1, 1)
    """
    layer = "ssd_loss"
    helper = LayerHelper(layer)
    if mining_type != "max_negative":
        raise GraphError(
            f"layer {layer!r}: mining_type is {mining_type!r}", hint="pass mining_type='max_negative'"
        )
    for argument, value in (("location", location), ("confidence", confidence), ("gt_box", gt_box)):
        check_variable(layer, argument, value)
    check_variable(layer, "gt_label", gt_label)

    sizes = shape(confidence)
    matched, overlap = bipartite_match(iou_similarity(gt_box, prior_box), match_type, overlap_threshold)
    gt_label = _stop(reshape(gt_label, [0] * (len(gt_label.shape) - 1) + [-1, 1]))
    label, _ = target_assign(gt_label, matched, mismatch_value=background_label)

    confidence = flatten(confidence, axis=2)
    label = _stop(flatten(cast(label, "int64"), axis=2))
    class_loss = softmax_with_cross_entropy(confidence, label)
    batch = _stop(slice_layer(sizes, axes=[0], starts=[0], ends=[2]))
    # The dims (-1, 0) hold while the program is built; ``batch`` (N, M) when it runs.
    class_loss = _stop(reshape(class_loss, [-1, 0], actual_shape=batch))
    options = {
        "neg_pos_ratio": neg_pos_ratio,
        "neg_dist_threshold": neg_overlap,
        "mining_type": mining_type,
        "sample_size": sample_size,
    }
    negative, matched = _mine(helper, class_loss, matched, overlap, options)

    codes = box_coder(prior_box, prior_box_var, gt_box)  # type: ignore[arg-type]  # refuses None
    target, place_weight = target_assign(codes, matched, mismatch_value=background_label)
    label, class_weight = target_assign(gt_label, matched, negative, background_label)

    label = cast(flatten(label, axis=2), "int64")
    class_loss = softmax_with_cross_entropy(confidence, label)
    class_weight = flatten(class_weight, axis=2)
    class_loss = class_loss * class_weight
    _stop(label)
    _stop(class_weight)
    location, target = flatten(location, axis=2), flatten(target, axis=2)
    place_loss = smooth_l1(location, target)
    place_weight = flatten(place_weight, axis=2)
    place_loss = place_loss * place_weight
    _stop(target)
    _stop(place_weight)

    loss = conf_loss_weight * class_loss + loc_loss_weight * place_loss
    loss = reduce_sum(reshape(loss, [-1, 0], actual_shape=batch), dim=1, keep_dim=True)
    return loss / reduce_sum(place_weight) if normalize else loss


def _stop(variable: Variable) -> Variable:
    """Return the variable with its gradient stopped."""
    variable.stop_gradient = True
    return variable


def _mine(
    helper: LayerHelper, loss: Variable, matched: Variable, overlap: Variable, options: dict[str, Any]
) -> tuple[Variable, Variable]:
    """Return the anchors that serve as background, and the remaining matches."""
    inputs = {"ClsLoss": loss, "MatchIndices": matched, "MatchDist": overlap}
    outputs = {"NegIndices": "int32", "UpdatedMatchIndices": matched.dtype}
    attrs = {key: value for key, value in options.items() if value is not None}
    negative, updated = emit_all("mine_hard_examples", inputs, outputs, attrs, helper=helper)
    return negative, updated


@overload
def detection_output(
    loc: Variable,
    scores: Variable,
    prior_box: Variable,
    prior_box_var: Variable | list[float],
    background_label: int = 0,
    nms_threshold: float = 0.3,
    nms_top_k: int = 400,
    keep_top_k: int = 200,
    score_threshold: float = 0.01,
    nms_eta: float = 1.0,
    return_index: Literal[False] = False,
) -> Variable: ...
@overload
def detection_output(
    loc: Variable,
    scores: Variable,
    prior_box: Variable,
    prior_box_var: Variable | list[float],
    background_label: int = 0,
    nms_threshold: float = 0.3,
    nms_top_k: int = 400,
    keep_top_k: int = 200,
    score_threshold: float = 0.01,
    nms_eta: float = 1.0,
    *,
    return_index: Literal[True],
) -> tuple[Variable, Variable]: ...
def detection_output(
    loc: Variable,
    scores: Variable,
    prior_box: Variable,
    prior_box_var: Variable | list[float],
    background_label: int = 0,
    nms_threshold: float = 0.3,
    nms_top_k: int = 400,
    keep_top_k: int = 200,
    score_threshold: float = 0.01,
    nms_eta: float = 1.0,
    return_index: bool = False,
) -> Variable | tuple[Variable, Variable]:
    """Return the objects that an SSD finds: rows (label, score, box), one sequence per image.

    The inputs are the results of :func:`multi_box_head`, before a softmax. The boxes are decoded, and
    suppressed by :func:`multiclass_nms`. As in Fluid, class 0 is always the background, and ``nms_eta`` is
    always 1.

    Parameters
    ----------
    loc
        Codes of the boxes, (N, M, 4).
    scores
        Unnormalized scores, (N, M, classes).

    Returns
    -------
    out : Variable
        (D, 6) with a sequence for each image: label, score, xmin, ymin, xmax, ymax.
    index : Variable
        Only with ``return_index``: (D, 1), image * M + box.

    Raises
    ------
    TypeError
        An input is not a variable.

    >>> from paddlelike.input import data
    >>> place, scores = data("place", [None, 20, 4]), data("scores", [None, 20, 3])
    >>> detection_output(place, scores, data("anchors", [20, 4]), [0.1, 0.1, 0.2, 0.2]).lod_level
    1
    """
    if (background_label, nms_eta) == (0, 1.0) or warn_quirk("detection_output_options"):
        background_label, nms_eta = 0, 1.0
    helper = LayerHelper("detection_output")
    boxes = box_coder(prior_box, prior_box_var, loc, "decode_center_size")
    scores = transpose(softmax(scores), [0, 2, 1])
    scores.stop_gradient = True
    out = helper.create_variable_for_type_inference(boxes.dtype)
    outputs = {"Out": out}
    if return_index:
        outputs["Index"] = _stop(helper.create_variable_for_type_inference("int64"))
    helper.append_op(
        type="multiclass_nms2" if return_index else "multiclass_nms",
        inputs={"Scores": scores, "BBoxes": boxes},
        outputs=outputs,
        attrs={
            "background_label": background_label,
            "nms_threshold": nms_threshold,
            "nms_top_k": nms_top_k,
            "keep_top_k": keep_top_k,
            "score_threshold": score_threshold,
            "nms_eta": nms_eta,
        },
    )
    _stop(out)
    return (out, outputs["Index"]) if return_index else out
