"""Constants and ranges.

Parameters
----------
shape
    Ints, or variables of shape [1], or one int variable.
value, fill_value
    The number in each element.
input
    The variable that gives the length of one dim of the result.
input_dim_idx
    The dim of ``input`` that gives the length.
output_dim_idx
    The dim of the result that takes the length.
x
    The variable that gives shape and dtype.
start
    The first number: a number, or a variable of shape [1].
end
    The bound, excluded; given like ``start``.
step
    The difference of neighbours, given like ``start``.
stop
    The last number, included; given like ``start``.
num
    The length of the result: an int, or a variable of shape [1].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from paddlelike.core import VarType, convert_dtype
from paddlelike.framework import Variable, device_guard
from paddlelike.layers.emit import (
    as_list,
    check_variable,
    emit,
    has_variables,
    replace_variables,
    tensor_dtype,
)
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.framework.typing import ShapeLike

__all__ = [
    "arange",
    "fill_constant",
    "fill_constant_batch_size_like",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "range",
    "zeros",
    "zeros_like",
]


_INTEGERS: Final = (VarType.INT32, VarType.INT64)


def fill_constant(
    shape: ShapeLike,
    dtype: DtypeLike,
    value: float | Variable,
    force_cpu: bool = False,
    out: Variable | None = None,
) -> Variable:
    """Return a constant tensor (operator ``fill_constant``).

    ``force_cpu`` is recorded in the operator.

    Parameters
    ----------
    value
        The number in each element, or a variable of shape [1].

    Returns
    -------
    Variable
        Of ``shape`` and ``dtype``. It is ``out`` if that is given.

    Raises
    ------
    TypeError
        ``shape`` is not a valid shape.
    GraphError
        ``dtype`` is not a type of elements.

    >>> import paddlelike as fluid
    >>> three = fluid.layers.fill_constant([2, 2], "float32", 3.0)
    >>> fluid.Executor().run(fetch_list=[three])
    [array([[3., 3.],
           [3., 3.]], dtype=float32)]
    """
    kind = tensor_dtype("fill_constant", dtype)
    helper = LayerHelper("fill_constant")
    inputs: dict[str, Any] = {}
    attrs: dict[str, Any] = {"dtype": int(kind), "force_cpu": force_cpu}
    if isinstance(value, Variable):
        inputs["ValueTensor"] = value
    else:
        attrs["value"] = float(value)
        attrs["str_value"] = str(int(value)) if kind in _INTEGERS else str(float(value))
    add_shape("fill_constant", shape, inputs, attrs)
    if out is None:
        out = helper.create_variable_for_type_inference(kind)
    helper.append_op(type="fill_constant", inputs=inputs, outputs={"Out": [out]}, attrs=attrs)
    out.stop_gradient = True
    return out


def add_shape(layer: str, shape: ShapeLike, inputs: dict[str, Any], attrs: dict[str, Any]) -> None:
    """Add a shape, whose dims may be variables, to the inputs and attributes of an operator.

    Like Fluid it casts int64 variables to int32.
    """
    if isinstance(shape, Variable):
        inputs["ShapeTensor"] = _as_int32(shape)
        return
    dims = as_list(layer, "shape", shape)
    attrs["shape"] = replace_variables(dims)
    if has_variables(dims):
        inputs["ShapeTensorList"] = [
            _as_int32(dim) if isinstance(dim, Variable) else fill_constant([1], "int32", dim, force_cpu=True)
            for dim in dims
        ]


def _as_int32(size: Variable) -> Variable:
    size.stop_gradient = True
    if size.dtype != VarType.INT64:
        return size
    attrs = {"in_dtype": int(size.dtype), "out_dtype": int(VarType.INT32)}
    return emit("cast", {"X": size}, attrs, dtype=VarType.INT32)


def fill_constant_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    dtype: DtypeLike,
    value: float,
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    force_cpu: bool = False,
) -> Variable:
    """Return a constant tensor; dim ``output_dim_idx`` is as long as dim ``input_dim_idx`` of ``input``.

    Operator ``fill_constant_batch_size_like``. ``force_cpu`` is recorded in the operator.

    Returns
    -------
    Variable
        Of ``shape``, except dim ``output_dim_idx``, and of ``dtype``.

    Raises
    ------
    TypeError
        ``dtype`` is not a type of elements.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 5])
    >>> state = fluid.layers.fill_constant_batch_size_like(x, [-1, 2], "float32", 0.5)
    >>> fluid.Executor().run(feed={"x": np.ones((3, 5), "float32")}, fetch_list=[state])
    [array([[0.5, 0.5],
           [0.5, 0.5],
           [0.5, 0.5]], dtype=float32)]
    """
    kind = convert_dtype(dtype)
    attrs = {
        "shape": list(shape),
        "dtype": int(kind),
        "value": float(value),
        "str_value": str(int(value)) if kind in _INTEGERS else str(float(value)),
        "input_dim_idx": input_dim_idx,
        "output_dim_idx": output_dim_idx,
        "force_cpu": force_cpu,
    }
    type = "fill_constant_batch_size_like"
    return emit(type, {"Input": input}, attrs, dtype=kind, constant=True)


def zeros(shape: Sequence[int], dtype: DtypeLike, force_cpu: bool = False) -> Variable:
    """Return a tensor of zeros in ``shape`` and ``dtype`` (operator ``fill_constant``).

    ``force_cpu`` is recorded in the operator.

    Returns
    -------
    Variable
        Of ``shape`` and ``dtype``.

    Raises
    ------
    GraphError
        ``dtype`` is not a type of elements.

    >>> import paddlelike as fluid
    >>> fluid.Executor().run(fetch_list=[fluid.layers.zeros([2, 2], "int64")])
    [array([[0, 0],
           [0, 0]])]
    """
    return fill_constant(shape, dtype, 0.0, force_cpu=force_cpu)


def ones(shape: Sequence[int], dtype: DtypeLike, force_cpu: bool = False) -> Variable:
    """Return a tensor of ones in ``shape`` and ``dtype`` (operator ``fill_constant``).

    ``force_cpu`` is recorded in the operator.

    Returns
    -------
    Variable
        Of ``shape`` and ``dtype``.

    Raises
    ------
    GraphError
        ``dtype`` is not a type of elements.

    >>> import paddlelike as fluid
    >>> fluid.Executor().run(fetch_list=[fluid.layers.ones([2, 2], "float32")])
    [array([[1., 1.],
           [1., 1.]], dtype=float32)]
    """
    return fill_constant(shape, dtype, 1.0, force_cpu=force_cpu)


def zeros_like(x: Variable, out: Variable | None = None) -> Variable:
    """Return zeros in the shape and dtype of ``x`` (operator ``fill_zeros_like``).

    Returns
    -------
    Variable
        In the shape and dtype of ``x``. It is ``out`` if that is given.

    Raises
    ------
    TypeError
        ``x`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([3, 4], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.zeros_like(x)])
    >>> print(out)
    [0. 0.]
    """
    check_variable("zeros_like", "x", x)
    found = emit("fill_zeros_like", {"X": x}, layer="zeros_like", out=out)
    found.stop_gradient = True
    return found


def ones_like(x: Variable, out: Variable | None = None) -> Variable:
    """Return ones in the shape and dtype of ``x`` (operator ``fill_any_like``).

    Returns
    -------
    Variable
        In the shape and dtype of ``x``. It is ``out`` if that is given.

    Raises
    ------
    TypeError
        ``x`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([3, 4], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.ones_like(x)])
    >>> print(out)
    [1. 1.]
    """
    check_variable("ones_like", "x", x)
    return emit("fill_any_like", {"X": x}, {"value": 1.0}, layer="ones_like", out=out)


def full(
    shape: ShapeLike,
    fill_value: float,
    out: Variable | None = None,
    dtype: DtypeLike | None = None,
    device: str | None = None,
    stop_gradient: bool = True,
    name: str | None = None,
) -> Variable:
    """Return a constant tensor, by default float32.

    Operator ``fill_constant``. ``device`` is recorded (:func:`~paddlelike.device_guard`).

    Gradients end here unless ``stop_gradient`` is False.

    Returns
    -------
    Variable
        Of ``shape`` and ``dtype``. It is ``out`` if that is given.

    >>> import paddlelike as fluid
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.full([2, 2], 7.0)])
    >>> print(out)
    [[7. 7.]
     [7. 7.]]
    """
    if out is None:
        helper = LayerHelper("full", name=name)
        kind = VarType.FP32 if dtype is None else convert_dtype(dtype)
        out = helper.create_variable_for_type_inference(kind)
    with device_guard(device):
        found = fill_constant(shape, out.dtype, fill_value, out=out)
    found.stop_gradient = stop_gradient
    return found


def full_like(
    input: Variable,
    fill_value: float,
    out: Variable | None = None,
    dtype: DtypeLike | None = None,
    device: str | None = None,
    stop_gradient: bool = True,
    name: str | None = None,
) -> Variable:
    """Return a constant tensor in the shape of ``input`` (operator ``fill_any_like``); ``device`` is ignored.

    Every element is ``fill_value``; gradients end here unless ``stop_gradient`` is False.

    Parameters
    ----------
    input
        The variable that gives the shape.

    Returns
    -------
    Variable
        In the shape of ``input``, of ``dtype`` if that is given, else in the dtype of ``input``. It is
        ``out`` if that is given.

    Raises
    ------
    TypeError
        ``input`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.full_like(x, 7.0)])
    >>> print(out)
    [7. 7.]
    """
    check_variable("full_like", "input", input)
    kind = input.dtype if dtype is None else convert_dtype(dtype)
    attrs = {"value": fill_value, "dtype": int(kind)}
    found = emit("fill_any_like", {"X": input}, attrs, layer="full_like", name=name, dtype=kind, out=out)
    found.stop_gradient = stop_gradient
    return found


def as_variables(helper: LayerHelper, values: Sequence[Any]) -> list[Variable]:
    """Return ``values`` as int32 variables of shape [1]; numbers become constants."""
    found = []
    for value in values:
        if isinstance(value, Variable):
            value.stop_gradient = True
            found.append(value)
        else:
            temporary = helper.create_variable_for_type_inference("int32")
            found.append(fill_constant([1], "int32", value, force_cpu=True, out=temporary))
    return found


def range(
    start: float | Variable, end: float | Variable, step: float | Variable, dtype: DtypeLike
) -> Variable:
    """Return the numbers from ``start`` to ``end``, exclusive, at distances of ``step``, of shape (N,).

    Operator ``range``.

    Returns
    -------
    Variable
        (ceil((end - start) / step),), of ``dtype``; declared as (-1,).

    Raises
    ------
    TypeError
        ``dtype`` is not a type of elements.

    >>> import paddlelike as fluid
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.range(0, 10, 3, "int32")])
    >>> print(out)
    [0 3 6 9]
    """
    return _emit_range(start, end, step, dtype)


def arange(
    start: float | Variable,
    end: float | Variable,
    step: float | Variable = 1,
    dtype: DtypeLike | None = None,
    name: str | None = None,
) -> Variable:
    """Return the numbers from ``start`` to ``end``, exclusive, like :func:`range`, by default float32.

    Returns
    -------
    Variable
        (ceil((end - start) / step),), of ``dtype``; declared as (-1,).

    >>> import paddlelike as fluid
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.arange(2, 11, 3)])
    >>> print(out)
    [2. 5. 8.]
    """
    return _emit_range(start, end, step, "float32" if dtype is None else dtype, name)


def _emit_range(
    start: float | Variable,
    end: float | Variable,
    step: float | Variable,
    dtype: DtypeLike,
    name: str | None = None,
) -> Variable:
    kind = convert_dtype(dtype)
    limits = {"Start": start, "End": end, "Step": step}
    inputs = {slot: _make_scalar(value, kind) for slot, value in limits.items()}
    return emit("range", inputs, name=name, dtype=kind, constant=True)


def linspace(
    start: float | Variable, stop: float | Variable, num: int | Variable, dtype: DtypeLike
) -> Variable:
    """Return ``num`` evenly spaced numbers from ``start`` to ``stop``, both included (``linspace``).

    Returns
    -------
    Variable
        (num,), of ``dtype``; declared as (-1,).

    Raises
    ------
    TypeError
        ``dtype`` is not a type of elements.

    >>> import paddlelike as fluid
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.linspace(0, 1, 5, "float32")])
    >>> print(out)
    [0.   0.25 0.5  0.75 1.  ]
    """
    inputs = {
        "Start": _make_scalar(start, convert_dtype(dtype)),
        "Stop": _make_scalar(stop, convert_dtype(dtype)),
        "Num": _make_scalar(num, VarType.INT32),
    }
    return emit("linspace", inputs)


def _make_scalar(value: float | Variable, dtype: VarType) -> Variable:
    """Return ``value`` as a variable of shape [1] and that dtype."""
    if not isinstance(value, Variable):
        return fill_constant([1], dtype, value)
    return value if value.dtype == dtype else value.astype(dtype)
