"""Anchors at every position of a feature map.

Parameters
----------
input
    The feature map, (N, C, H, W).
image
    The images, (N, C, h, w).
variance
    The four numbers by which codes of boxes are divided.
clip
    Whether boxes are cut off at the borders of the image.
offset
    The position of the first center, as a fraction of a step.
steps
    The pixels between places along x and y; 0 for the size of the image divided by the size of the map.
densities
    For each fixed size, the number of centers in each direction.
fixed_sizes
    The sides of the boxes, in pixels.
fixed_ratios
    Widths over heights.
flatten_to_2d
    Whether the results are (H * W * priors, 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework import Variable
from paddlelike.layers.emit import WIDE_FLOATS, check_type, check_variable, describe, emit_all

__all__ = ["anchor_generator", "density_prior_box", "prior_box"]

_BOXES = (VarType.UINT8, VarType.INT8, *WIDE_FLOATS)


def prior_box(
    input: Variable,
    image: Variable,
    min_sizes: float | Sequence[float],
    max_sizes: float | Sequence[float] | None = None,
    aspect_ratios: float | Sequence[float] = [1.0],
    variance: Sequence[float] = [0.1, 0.1, 0.2, 0.2],
    flip: bool = False,
    clip: bool = False,
    steps: Sequence[float] = [0.0, 0.0],
    offset: float = 0.5,
    name: str | None = None,
    min_max_aspect_ratios_order: bool = False,
) -> tuple[Variable, Variable]:
    """Return the anchors of an SSD at every position of ``input``, and their variances.

    ``input`` is (N, C, H, W), ``image`` (N, C, h, w). Both results are (H, W, priors, 4); boxes are shares of
    the image. Each place has, for each of ``min_sizes``, one box per ratio of width to height: first the
    ratio 1, then the others, with ``flip`` also their inverses. A square of side sqrt(min_size * max_size)
    comes last, or second with ``min_max_aspect_ratios_order`` (the order of Caffe). Operator ``prior_box``.
    Liu et al., SSD, 2016.

    Parameters
    ----------
    min_sizes
        The sides of the smallest boxes, in pixels.
    max_sizes
        A larger side, in pixels, for each of ``min_sizes``, which adds one more square. None adds no squares.
    aspect_ratios
        Widths over heights.
    flip
        Whether the inverse of each ratio is added.
    min_max_aspect_ratios_order
        Whether the square of the larger side comes second, as in Caffe.

    Returns
    -------
    boxes : Variable
        (H, W, priors, 4), float32: xmin, ymin, xmax, ymax of each anchor.
    variances : Variable
        The variances of each anchor, in the same shape.

    Raises
    ------
    TypeError
        ``input`` or ``image`` is not a variable of numbers.
    GraphError
        ``steps`` is not two numbers.

    >>> from paddlelike.input import data
    >>> x, image = data("x", [None, 8, 4, 4]), data("image", [None, 3, 64, 64])
    >>> boxes, variances = prior_box(x, image, min_sizes=[8.0, 16.0])
    >>> boxes.shape, variances.shape
    ((4, 4, 2, 4), (4, 4, 2, 4))
    """
    check_variable("prior_box", "input", input, _BOXES)
    check_variable("prior_box", "image", image)
    step_w, step_h = _read_pair("prior_box", "steps", steps)
    attrs = {
        "min_sizes": _read_floats(min_sizes),
        "aspect_ratios": _read_floats(aspect_ratios),
        "variances": list(variance),
        "flip": flip,
        "clip": clip,
        "step_w": step_w,
        "step_h": step_h,
        "offset": offset,
        "min_max_aspect_ratios_order": min_max_aspect_ratios_order,
    }
    largest = [] if max_sizes is None else _read_floats(max_sizes)
    if largest and largest[0] > 0:
        attrs["max_sizes"] = largest
    return _emit_anchors("prior_box", "Boxes", {"Input": input, "Image": image}, attrs, name)


def density_prior_box(
    input: Variable,
    image: Variable,
    densities: Sequence[int] | None = None,
    fixed_sizes: Sequence[float] | None = None,
    fixed_ratios: Sequence[float] | None = None,
    variance: Sequence[float] = [0.1, 0.1, 0.2, 0.2],
    clip: bool = False,
    steps: Sequence[float] = [0.0, 0.0],
    offset: float = 0.5,
    flatten_to_2d: bool = False,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Return anchors in grids around every position of ``input``, and their variances.

    For each of ``fixed_sizes`` (pixels) and each of ``fixed_ratios`` there are ``density ** 2`` boxes;
    neighbours are ``step / density`` apart. Boxes are shares of the image. Operator ``density_prior_box``.
    Zhang et al., FaceBoxes, 2017.

    Returns
    -------
    boxes : Variable
        (H, W, priors, 4), float32: xmin, ymin, xmax, ymax of each anchor; (H * W * priors, 4) with
        ``flatten_to_2d``.
    variances : Variable
        The variances of each anchor, in the same shape.

    Raises
    ------
    TypeError
        ``densities``, ``fixed_sizes`` or ``fixed_ratios`` is not a list.
    GraphError
        There is not one density for each size.

    >>> from paddlelike.input import data
    >>> x, image = data("x", [None, 8, 4, 4]), data("image", [None, 3, 64, 64])
    >>> density_prior_box(x, image, densities=[2, 1], fixed_sizes=[8.0, 16.0], fixed_ratios=[1.0])[0].shape
    (4, 4, 5, 4)
    """
    layer = "density_prior_box"
    check_variable(layer, "input", input, WIDE_FLOATS)
    check_variable(layer, "image", image)
    given = {"densities": densities, "fixed_sizes": fixed_sizes, "fixed_ratios": fixed_ratios}
    for argument, value in given.items():
        check_type(layer, argument, value, list, tuple)
    assert densities is not None
    assert fixed_sizes is not None
    if len(densities) != len(fixed_sizes):
        raise GraphError(
            f"layer {layer!r}: densities has {len(densities)} numbers, fixed_sizes {len(fixed_sizes)}; "
            "expected equal numbers"
        )
    step_w, step_h = _read_pair(layer, "steps", steps)
    attrs = {
        "variances": list(variance),
        "clip": clip,
        "step_w": step_w,
        "step_h": step_h,
        "offset": offset,
        "densities": [int(density) for density in densities],
        "fixed_sizes": _read_floats(fixed_sizes),
        "fixed_ratios": _read_floats(fixed_ratios),
        "flatten_to_2d": flatten_to_2d,
    }
    return _emit_anchors(layer, "Boxes", {"Input": input, "Image": image}, attrs, name)


def anchor_generator(
    input: Variable,
    anchor_sizes: float | Sequence[float] | None = None,
    aspect_ratios: float | Sequence[float] | None = None,
    variance: Sequence[float] = [0.1, 0.1, 0.2, 0.2],
    stride: Sequence[float] | None = None,
    offset: float = 0.5,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Return the anchors of a Faster R-CNN at every position of ``input``, and their variances.

    ``input`` (N, C, H, W); both results are (H, W, ratios * sizes, 4), boxes in pixels of the image. Operator
    ``anchor_generator``. Ren et al., 2015.

    Parameters
    ----------
    anchor_sizes
        The sides of the anchors, in pixels.
    aspect_ratios
        Heights over widths.
    stride
        The pixels between places along x and y.

    Returns
    -------
    boxes : Variable
        (H, W, priors, 4), float32: xmin, ymin, xmax, ymax of each anchor.
    variances : Variable
        The variances of each anchor, in the same shape.

    Raises
    ------
    GraphError
        ``stride`` is not two numbers.
    TypeError
        ``input`` is not a variable.

    >>> from paddlelike.input import data
    >>> x = data("x", [None, 8, 4, 4])
    >>> anchor_generator(x, anchor_sizes=[32.0, 64.0], aspect_ratios=[0.5, 1.0], stride=[16.0, 16.0])[0].shape
    (4, 4, 4, 4)
    """
    check_variable("anchor_generator", "input", input)
    attrs = {
        "anchor_sizes": _read_floats(anchor_sizes),
        "aspect_ratios": _read_floats(aspect_ratios),
        "variances": list(variance),
        "stride": _read_pair("anchor_generator", "stride", stride),
        "offset": offset,
    }
    return _emit_anchors("anchor_generator", "Anchors", {"Input": input}, attrs, name)


def _emit_anchors(
    layer: str, slot: str, inputs: dict[str, Variable], attrs: dict[str, Any], name: str | None
) -> tuple[Variable, Variable]:
    dtype = inputs["Input"].dtype
    outputs = {slot: dtype, "Variances": dtype}
    boxes, variances = emit_all(layer, inputs, outputs, attrs, name=name, constant=True)
    return boxes, variances


def _read_floats(numbers: object) -> list[float]:
    """Return one number or a sequence of them as a list."""
    many: Sequence[Any] = numbers if isinstance(numbers, list | tuple) else [numbers]
    return [float(one) for one in many]


def _read_pair(layer: str, argument: str, pair: object) -> list[float]:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise GraphError(
            f"layer {layer!r}: {argument} is {describe(pair)}, expected two numbers: along x and along y"
        )
    return [float(one) for one in pair]
