"""The shape most layers have: name the call, make the outputs, append one operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddlelike.core.dtypes import VarType, convert_dtype
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.helper import LayerHelper

__all__ = ["emit", "emit_all"]


def emit(
    type: str,
    inputs: Mapping[str, Any] | None,
    attrs: Mapping[str, Any] | None = None,
    *,
    layer: str | None = None,
    name: str | None = None,
    dtype: Any = None,
    slot: str = "Out",
    out: Variable | None = None,
    constant: bool = False,
    act: Any = None,
) -> Variable:
    """Append one operator and return its output, through the activation ``act`` if there is one.

    Parameters
    ----------
    inputs
        Variables by slot; None stands for an absent one.
    layer
        What the call is named after; None: the operator's type.
    dtype
        Of the output; None: that of the first input.
    slot
        The output slot.
    out
        Written to instead of a new variable.
    constant
        Whether gradients stop at the output.
    """
    helper = LayerHelper(type if layer is None else layer, name=name, act=act)
    if out is None:
        found = _dtype_of(inputs) if dtype is None else convert_dtype(dtype)
        out = helper.create_variable_for_type_inference(found, constant)
    helper.append_op(type=type, inputs=_given(inputs), outputs={slot: [out]}, attrs=attrs)
    return helper.append_activation(out)


def emit_all(
    type: str,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    attrs: Mapping[str, Any] | None = None,
    *,
    layer: str | None = None,
    name: str | None = None,
    constant: bool = False,
) -> tuple[Variable, ...]:
    """Append one operator with several outputs, and return them.

    ``outputs`` maps slots to dtypes, in the order in which the variables are made.
    """
    helper = LayerHelper(type if layer is None else layer, name=name)
    made = {
        slot: helper.create_variable_for_type_inference(dtype, constant) for slot, dtype in outputs.items()
    }
    helper.append_op(type=type, inputs=_given(inputs), outputs=made, attrs=attrs)
    return tuple(made.values())


def _dtype_of(inputs: Mapping[str, Any] | None) -> VarType:
    """The element type of the first input."""
    first = next(value for value in (inputs or {}).values() if value is not None)
    variable: Variable = first[0] if isinstance(first, list | tuple) else first
    return variable.dtype


def _given(inputs: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if inputs is None:
        return None
    return {slot: value for slot, value in inputs.items() if value is not None}
