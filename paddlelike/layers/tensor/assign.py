"""Copies, and new variables: parameters and global variables.

Parameters
----------
persistable
    Whether the value outlives a run and is saved with the persistables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike import unique_name
from paddlelike.core import VarType, convert_dtype
from paddlelike.errors import GraphError
from paddlelike.framework import Parameter, Variable
from paddlelike.initializer import Constant, Initializer
from paddlelike.layers.emit import describe, emit, is_whole, tensor_dtype
from paddlelike.layers.helper import LayerHelper
from paddlelike.param_attr import ParamAttr

if TYPE_CHECKING:
    from paddlelike.core import Array, DtypeLike
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["assign", "create_global_var", "create_parameter", "create_tensor"]


_VALUE_SLOTS: Final = {
    VarType.BOOL: "bool_values",
    VarType.FP32: "fp32_values",
    VarType.INT32: "int32_values",
    VarType.INT64: "int64_values",
}


def create_tensor(dtype: DtypeLike, name: str | None = None, persistable: bool = False) -> Variable:
    """Return an empty variable of ``dtype``, for an operator to write to.

    It has no shape until a value is written to it.

    Returns
    -------
    Variable
        Of ``dtype``; its shape is the shape of the value that is written to it.

    Raises
    ------
    GraphError
        ``dtype`` is not a type of elements.

    >>> import paddlelike as fluid
    >>> copy = fluid.layers.create_tensor("float32", name="copy")
    >>> _ = fluid.layers.assign(fluid.layers.ones([2], "float32"), copy)
    >>> fluid.Executor().run(fetch_list=["copy"])
    [array([1., 1.], dtype=float32)]
    """
    kind = tensor_dtype("create_tensor", dtype)
    helper = LayerHelper("create_tensor", name=name)
    return helper.create_variable(name=helper.name, dtype=kind, persistable=persistable)


def create_parameter(
    shape: Sequence[int],
    dtype: DtypeLike,
    name: str | None = None,
    attr: ParamAttrLike = None,
    is_bias: bool = False,
    default_initializer: Initializer | None = None,
) -> Parameter:
    """Return a new parameter of ``shape`` and ``dtype``, by default initialized by Xavier's method.

    A bias (``is_bias``) starts at 0. ``default_initializer`` replaces both defaults; an initializer in
    ``attr`` replaces all of these. Without ``attr`` the parameter is called ``name``. With ``attr`` it has
    the name in ``attr``, or else ``<name>.w_0`` (a bias: ``<name>.b_0``), as in Fluid.

    Parameters
    ----------
    shape
        The dims: a list of ints.
    name
        The name of the parameter where there is no ``attr``; None for a generated one.
    attr
        A :class:`~paddlelike.ParamAttr` or a name; None for the defaults.
    is_bias
        Whether it starts at 0.
    default_initializer
        The initializer where ``attr`` has none; None for Xavier's.

    Returns
    -------
    Parameter
        Of ``shape`` and ``dtype``.

    Raises
    ------
    TypeError
        ``shape`` is not a list of ints.

    >>> import paddlelike as fluid
    >>> zero = fluid.initializer.Constant(0.0)
    >>> table = fluid.layers.create_parameter([1, 2], "float32", name="table", default_initializer=zero)
    >>> fluid.Executor().run(fluid.default_startup_program(), fetch_list=[table])
    [array([[0., 0.]], dtype=float32)]
    """
    if not isinstance(shape, list | tuple | np.ndarray):
        raise TypeError(f"layer 'create_parameter': shape must be a list of ints, got {describe(shape)}")
    helper = LayerHelper("create_parameter", name=name)
    attr = ParamAttr(name=name) if attr is None else attr
    parameter: Parameter = helper.create_parameter(
        attr,
        [int(dim) for dim in shape],
        tensor_dtype("create_parameter", dtype),
        is_bias,
        default_initializer,
    )
    return parameter


def create_global_var(
    shape: Sequence[int],
    value: float,
    dtype: DtypeLike,
    persistable: bool = False,
    force_cpu: bool = False,
    name: str | None = None,
) -> Variable:
    """Return a variable of block 0 that the startup program fills with ``value``; it gets no gradient.

    ``force_cpu`` is recorded in the operator.

    Parameters
    ----------
    shape
        The dims: a list of ints.
    value
        The number that the startup program writes to each element.

    Returns
    -------
    Variable
        Of ``shape`` and ``dtype``.

    Raises
    ------
    TypeError
        ``shape`` is not a list of ints.

    >>> import paddlelike as fluid
    >>> count = fluid.layers.create_global_var([1], 5, "int64", persistable=True, name="count")
    >>> next_count = fluid.layers.increment(count)
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [int(exe.run(fetch_list=[count])[0][0]) for _ in range(3)]
    [6, 7, 8]
    """
    wrong = [dim for dim in shape if not is_whole(dim)]
    if wrong:
        raise TypeError(
            f"layer 'create_global_var': shape must be a list of ints, got {describe(list(shape))}"
        )
    helper = LayerHelper("global_var")
    kind = tensor_dtype("create_global_var", dtype)
    variable = helper.create_global_variable(persistable=persistable, dtype=kind, shape=shape, name=name)
    helper.set_variable_initializer(variable, Constant(float(value), force_cpu=force_cpu))
    return variable


def assign(input: Variable | Array, output: Variable | None = None) -> Variable:
    """Return a copy of a variable (operator ``assign``), or the values of a numpy array (``assign_value``).

    The copy is written to ``output`` if that is given.

    Parameters
    ----------
    input
        A variable, or an array of bool, float32, int32 or int64.

    Returns
    -------
    Variable
        In the shape and dtype of ``input``. It is ``output`` if that is given.

    Raises
    ------
    TypeError
        ``input`` is neither a variable nor an array of these types.
    GraphError
        The array is too large for a program.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> table = fluid.layers.assign(np.array([[1, 2], [3, 4]], "int64"))
    >>> fluid.Executor().run(fetch_list=[table])
    [array([[1, 2],
           [3, 4]])]
    """
    if isinstance(input, Variable):
        return emit("assign", {"X": input}, out=output)
    if not isinstance(input, np.ndarray):
        raise TypeError(f"layer 'assign': input must be a variable or a numpy array, got {describe(input)}")
    dtype = convert_dtype(input.dtype)
    if dtype not in _VALUE_SLOTS:
        raise TypeError(
            f"layer 'assign': input is {describe(input)} of dtype {input.dtype}; "
            "expected bool, float32, int32 or int64"
        )
    if input.size > 1024 * 1024:
        raise GraphError(
            f"layer 'assign': input is {describe(input)}, too large for a program",
            hint="make it a parameter with a NumpyArrayInitializer, or feed it",
        )
    attrs = {"dtype": int(dtype), "shape": list(input.shape), _VALUE_SLOTS[dtype]: input.reshape(-1).tolist()}
    return emit("assign_value", None, attrs, layer="assign", dtype=dtype, out=output)


def create_named(name: str | None, dtype: DtypeLike) -> Variable | None:
    """Return a new variable called ``name``, or None without a name; some Fluid layers name their outputs
    so.
    """
    return None if name is None else LayerHelper("out", name=name).create_variable(name=name, dtype=dtype)


def create_named_temporary(helper: LayerHelper, name: str | None, **kwargs: Any) -> Variable:
    """Return a new variable called ``name``; without a name, one with a generated name."""
    name = unique_name.generate(f"{helper.name}.tmp") if name is None else name
    return helper.create_variable(name=name, persistable=False, **kwargs)
