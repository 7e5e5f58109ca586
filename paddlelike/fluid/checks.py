"""``fluid.data_feeder``'s checks of a layer's arguments, which packages call in their own layers."""

from __future__ import annotations

from collections.abc import Collection

from paddlelike.core import convert_dtype as find_dtype, numpy_dtype
from paddlelike.layers.emit import check_type as check_kinds, check_variable

__all__ = ["check_dtype", "check_type", "check_variable_and_dtype", "convert_dtype"]

Types = type | tuple[type, ...]
Names = Collection[str]


def convert_dtype(dtype: object) -> str:
    """Return the name of an element type.

    Parameters
    ----------
    dtype
        A type of NumPy, a ``VarType`` or a name.

    Returns
    -------
    name : str
        The name in NumPy, such as "float32".

    Raises
    ------
    TypeError
        Tensors have no elements of that type.

    See Also
    --------
    fluid.core.convert_dtype, fluid.core.numpy_dtype

    >>> import numpy as np
    >>> convert_dtype(np.float32), convert_dtype("int64")
    ('float32', 'int64')
    """
    return numpy_dtype(find_dtype(dtype)).name


def check_variable_and_dtype(
    input: object, input_name: str, expected_dtype: Names, op_name: str, extra_message: str = ""  # noqa: A002
) -> None:  # fmt: skip
    """Raise TypeError unless ``input`` is a variable of one of the element types ``expected_dtype``."""
    variable = check_variable(op_name, input_name, input)
    check_dtype(variable.dtype, input_name, expected_dtype, op_name, extra_message)


def check_type(
    input: object, input_name: str, expected_type: Types, op_name: str, extra_message: str = ""  # noqa: A002
) -> None:  # fmt: skip
    """Raise TypeError unless ``input`` is an instance of ``expected_type``, a class or several."""
    kinds = expected_type if isinstance(expected_type, tuple) else (expected_type,)
    check_kinds(op_name, input_name, input, *kinds)


def check_dtype(
    input_dtype: object, input_name: str, expected_dtype: Names, op_name: str, extra_message: str = ""
) -> None:
    """Raise TypeError unless an element type is one of ``expected_dtype``."""
    if (dtype := convert_dtype(input_dtype)) not in expected_dtype:
        wanted = ", ".join(expected_dtype)
        raise TypeError(
            f"layer {op_name!r}: {input_name} is {dtype}, expected one of {wanted}. {extra_message}"
        )
