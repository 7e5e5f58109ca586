"""Constants."""

from __future__ import annotations

import numpy as np

from paddlelike.core.dtypes import numpy_dtype
from paddlelike.interop.cntk.writing.graph import Step
from paddlelike.interop.cntk.writing.writers import writes


@writes("fill_constant")
def _write_constant(step: Step) -> None:
    step.refuse_inputs("ShapeTensor", "ShapeTensorList", "ValueTensor")
    shape, variable = step.attr("shape"), step.out()
    text = step.attr("str_value", "")
    value = float(text) if text else float(step.attr("value"))
    if min(shape, default=1) < 1:
        step.refuse(f"its shape is {list(shape)}")
    filled = np.full(shape, value).astype(numpy_dtype(variable.dtype))
    step.graph.values[variable.name] = step.graph.add_constant(filled, filled.dtype)


@writes("fill_any_like", "fill_zeros_like")
def _write_filled(step: Step) -> None:
    x = step.ref()
    value = float(step.attr("value", 0.0)) if step.op.type == "fill_any_like" else 0.0
    value = float(np.array(value).astype(numpy_dtype(step.out().dtype)))
    step.give("Out", step.unary("ConstantOp", x, fillValue=value))
