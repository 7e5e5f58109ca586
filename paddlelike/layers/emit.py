"""Layers that are one operator: name the call, create the outputs, append the operator."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any

from paddlelike.core import VarType, convert_dtype
from paddlelike.errors import GraphError
from paddlelike.framework import Variable
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike


def emit(
    type: str,
    inputs: Mapping[str, Any] | None,
    attrs: Mapping[str, Any] | None = None,
    *,
    layer: str | None = None,
    name: str | None = None,
    dtype: DtypeLike | None = None,
    slot: str = "Out",
    out: Variable | None = None,
    constant: bool = False,
    act: str | None = None,
    helper: LayerHelper | None = None,
) -> Variable:
    """Append one operator and return its output, through the activation ``act`` if there is one.

    Parameters
    ----------
    inputs
        Variables by slot; None for an absent one.
    layer
        The prefix of the call's name; None: the operator's type.
    dtype
        Element type of the output; None: that of the first input.
    slot
        The output slot.
    out
        The variable to write to; None: a new one.
    constant
        Whether gradients stop at the output.
    helper
        In place of ``layer``, ``name`` and ``act``, where the layer has created parameters with it.
    """
    if helper is None:
        helper = LayerHelper(type if layer is None else layer, name=name, act=act)
    if out is None:
        found = _find_dtype(type, inputs) if dtype is None else convert_dtype(dtype)
        out = helper.create_variable_for_type_inference(found, constant)
    helper.append_op(type=type, inputs=_drop_absent(inputs), outputs={slot: [out]}, attrs=attrs)
    return helper.append_activation(out)


def emit_all(
    type: str,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    attrs: Mapping[str, Any] | None = None,
    *,
    layer: str | None = None,
    name: str | None = None,
    constant: bool | Container[str] = False,
    helper: LayerHelper | None = None,
) -> tuple[Variable, ...]:
    """Append one operator with several outputs, and return them.

    ``outputs`` maps slots to dtypes, in the order in which the variables are created. ``constant``: whether
    gradients stop at them, or at which.
    """
    if helper is None:
        helper = LayerHelper(type if layer is None else layer, name=name)
    created = {
        slot: helper.create_variable_for_type_inference(
            dtype, constant if isinstance(constant, bool) else slot in constant
        )
        for slot, dtype in outputs.items()
    }
    helper.append_op(type=type, inputs=_drop_absent(inputs), outputs=created, attrs=attrs)
    return tuple(created.values())


def _find_dtype(type: str, inputs: Mapping[str, Any] | None) -> VarType:
    """Return the element type of the first input. Raises GraphError when it is a list of several types."""
    first = next(value for value in (inputs or {}).values() if value is not None)
    many: list[Variable] = list(first) if isinstance(first, list | tuple) else [first]
    if len({variable.dtype for variable in many}) > 1:
        kinds = ", ".join(f"{variable.name}: {variable.dtype.name}" for variable in many)
        raise GraphError(
            f"layer {type!r}: its inputs differ in dtype ({kinds})",
            hint="convert them to one: layers.cast(variable, dtype)",
        )
    return many[0].dtype


def _drop_absent(inputs: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if inputs is None:
        return None
    return {slot: value for slot, value in inputs.items() if value is not None}
