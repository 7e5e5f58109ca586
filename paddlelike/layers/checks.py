"""Checks of the arguments of layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import numpy as np

from paddlelike.core import VarType, convert_dtype, numpy_dtype
from paddlelike.errors import GraphError
from paddlelike.foundation.amounts import describe
from paddlelike.framework import Variable

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike

__all__ = [
    "BOOL",
    "FLOATS",
    "INTEGERS",
    "NUMBERS",
    "WIDE_FLOATS",
    "check_array",
    "check_choice",
    "check_type",
    "check_variable",
    "check_variables",
    "describe",
    "is_whole",
    "name_dtypes",
    "tensor_dtype",
]


WIDE_FLOATS: Final = (VarType.FP32, VarType.FP64)
FLOATS: Final = (VarType.FP16, *WIDE_FLOATS)
INTEGERS: Final = (VarType.INT32, VarType.INT64)
NUMBERS: Final = (*FLOATS, *INTEGERS)
BOOL: Final = (VarType.BOOL,)


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
    """Raise TypeError unless ``value`` is of one of the ``kinds``."""
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
    """Return ``values`` as integers, -1 for variables."""
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
