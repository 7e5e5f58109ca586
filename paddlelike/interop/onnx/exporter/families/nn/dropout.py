"""dropout."""

from __future__ import annotations

import numpy as np

from paddlelike.interop.onnx.exporter.converters import converts
from paddlelike.interop.onnx.exporter.graph import Step


@converts("dropout")
def _convert_dropout(step: Step) -> None:
    if not step.attr("is_test"):
        step.refuse("it is in training mode; export program.clone(for_test=True)")
    out = step.input()
    if step.attr("dropout_implementation") != "upscale_in_train":
        kept = np.float32(1) - np.float32(step.attr("dropout_prob"))
        out = step.add("Mul", out, step.like(kept))
    step.give("Out", out)
