"""Anchors, which depend on sizes alone: constants where those are known."""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import registry
from paddlelike.interop.onnx.exporter.converters import converts
from paddlelike.interop.onnx.exporter.graph import Step


@converts("anchor_generator", "density_prior_box", "prior_box")
def _convert_anchors(step: Step) -> None:
    op = registry.find(step.op.type)
    images = []
    for slot in op.input_slots:
        shape = step.shape(slot.name)
        if -1 in shape[2:]:
            step.refuse(f"{slot.name} has shape {shape}: its height and width are not known")
        images.append(np.empty((1, 1, *shape[2:]), step.dtype(slot.name)))
    found = op.forward(*images, **op.make_forward_keywords(step.op.attrs, None))
    for slot, value in zip(op.output_slots, found, strict=True):
        step.give(slot.name, step.constant(value, value.dtype))
