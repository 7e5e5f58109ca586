"""Regions of images, pooled."""

from __future__ import annotations

from paddlelike.interop.onnx.exporter.converters import converts
from paddlelike.interop.onnx.exporter.graph import Step
from paddlelike.interop.onnx.exporter.sequences import find_owners


def _find_images(step: Step) -> str:
    """Return for each region the image that it is of."""
    if step.has("RoisLod"):
        step.refuse("input RoisLod is given")
    counts = step.cast(step.input("RoisNum"), "int64") if step.has("RoisNum") else step.lengths("ROIs")
    return find_owners(step.graph, counts)[0]


@converts("roi_pool")
def _convert_roi_pool(step: Step) -> None:
    if step.is_read("Argmax"):
        step.refuse("Argmax is read")
    images = step.cast(step.unsqueeze(_find_images(step), 1), step.dtype("ROIs"))
    regions = step.add("Concat", images, step.input("ROIs"), axis=1)
    sizes = [step.attr("pooled_height"), step.attr("pooled_width")]
    scale = float(step.attr("spatial_scale"))
    step.give("Out", step.add("MaxRoiPool", step.input(), regions, pooled_shape=sizes, spatial_scale=scale))


@converts("roi_align")
def _convert_roi_align(step: Step) -> None:
    images = _find_images(step)
    options = {
        "output_height": step.attr("pooled_height"),
        "output_width": step.attr("pooled_width"),
        "spatial_scale": float(step.attr("spatial_scale")),
        "sampling_ratio": max(step.attr("sampling_ratio"), 0),
    }
    aligned = bool(step.attr("aligned", False))
    if step.graph.opset >= 16:
        options["coordinate_transformation_mode"] = "half_pixel" if aligned else "output_half_pixel"
    elif aligned:
        step.refuse("aligned needs opset 16")
    step.give("Out", step.add("RoiAlign", step.input(), step.input("ROIs"), images, **options))
