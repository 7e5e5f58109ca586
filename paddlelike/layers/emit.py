"""The steps of a layer: check its arguments, create the outputs, append the operator."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import numpy as np

from paddlelike.core import VarType, convert_dtype, numpy_dtype
from paddlelike.errors import GraphError
from paddlelike.foundation.amounts import describe as describe
from paddlelike.framework import Variable
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike

WIDE_FLOATS: Final = (VarType.FP32, VarType.FP64)
FLOATS: Final = (VarType.FP16, *WIDE_FLOATS)
INTEGERS: Final = (VarType.INT32, VarType.INT64)
NUMBERS: Final = (*FLOATS, *INTEGERS)
BOOL: Final = (VarType.BOOL,)


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
    """Append an operator and return its output, after the activation ``act`` if that is given.

    Parameters
    ----------
    inputs
        Variables by slot; None for an absent one.
    layer
        The prefix of the call's name. None means the operator's type.
    dtype
        Element type of the output. None means that of the first input.
    slot
        The output slot.
    out
        The variable to write to. None means a new one.
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

    ``outputs`` maps slots to dtypes, in the order in which the variables are created. Gradients stop at all
    outputs if ``constant`` is True, or at the outputs that it names.
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


# Checks


def check_variable(
    layer: str, argument: str, value: object, dtypes: Sequence[VarType] | None = None
) -> Variable:
    """Return ``value``. Raises TypeError unless it is a variable, of one of ``dtypes`` if they are given."""
    if not isinstance(value, Variable):
        raise TypeError(
            f"layer {layer!r}: {argument} must be a variable, got {describe(value)}\n"
            "  hint: layers.assign makes a variable of a numpy array, layers.fill_constant of a number"
        )
    if dtypes is not None and value.dtype not in dtypes:
        wanted = ", ".join(dtype.name for dtype in dtypes)
        raise TypeError(
            f"layer {layer!r}: {argument} is variable {value.name!r} of dtype {value.dtype.name} and "
            f"shape {list(value.shape)}; expected {wanted}\n"
            "  hint: convert the variable first with layers.cast"
        )
    return value


def name_dtypes(dtypes: Sequence[VarType]) -> str:
    """Return the names of element types, for a docstring.

    >>> name_dtypes(FLOATS)
    'float16, float32 or float64'
    """
    *names, last = (numpy_dtype(dtype).name for dtype in dtypes)
    return f"{', '.join(names)} or {last}" if names else last


def check_variables(
    layer: str, argument: str, value: object, dtypes: Sequence[VarType] | None = None
) -> list[Variable]:
    """Return ``value``, a variable or a list of variables, as a list. Raises TypeError for anything else."""
    if not isinstance(value, list | tuple):
        return [check_variable(layer, argument, value, dtypes)]
    return [check_variable(layer, f"{argument}[{i}]", one, dtypes) for i, one in enumerate(value)]


def check_choice(layer: str, argument: str, value: object, choices: Sequence[object]) -> None:
    """Raise GraphError unless ``value`` is one of ``choices``."""
    if value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise GraphError(f"layer {layer!r}: {argument} is {value!r}, expected one of {known}")


def check_type(layer: str, argument: str, value: object, *kinds: type) -> None:
    """Raise TypeError unless ``value`` is an instance of one of the ``kinds``."""
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"layer {layer!r}: {argument} is {describe(value)}, expected {wanted}")


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether ``value`` is an integer of Python or numpy."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def tensor_dtype(layer: str, dtype: DtypeLike) -> VarType:
    """Return the element type. Raises GraphError when there is no such type."""
    try:
        kind = convert_dtype(dtype)
        numpy_dtype(kind)
    except TypeError as error:
        raise GraphError(f"layer {layer!r}: {error}") from None
    return kind


def check_array(layer: str, array: object) -> Variable:
    """Return ``array`` if it is an array of tensors. Raises TypeError otherwise."""
    variable = check_variable(layer, "array", array)
    if variable.type != VarType.LOD_TENSOR_ARRAY:
        raise TypeError(
            f"layer {layer!r}: variable {variable.name!r} is a {variable.type.name}, expected an array\n"
            "  hint: layers.create_array makes one"
        )
    return variable


def has_variables(values: Sequence[Any]) -> bool:
    """Return whether any of ``values`` is a variable."""
    return any(isinstance(value, Variable) for value in values)


def replace_variables(values: Sequence[Any]) -> list[int]:
    """Return ``values`` as integers, with -1 in place of variables."""
    return [-1 if isinstance(value, Variable) else int(value) for value in values]


def as_list(layer: str, argument: str, value: object) -> list[Any]:
    """Return ``value`` as a list. Raises TypeError unless it is a list or tuple."""
    if not isinstance(value, list | tuple):
        raise TypeError(f"layer {layer!r}: {argument} must be a list or tuple of ints, got {describe(value)}")
    return list(value)


def repeat_size(layer: str, argument: str, value: object, count: int) -> list[int]:
    """Return ``count`` sizes; one int means ``count`` equal ones. Raises ValueError for anything else."""
    if isinstance(value, list | tuple):
        if len(value) == count:
            return [int(one) for one in value]
    elif isinstance(value, int):
        return [value] * count
    raise ValueError(f"layer {layer!r}: {argument} must be an int or {count} ints, got {describe(value)}")
