"""Layers that multiply by matrices: fully connected layers and matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import FLOATS, check_variable, check_variables
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.creation import create_named

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["addmm", "bilinear_tensor_product", "bmm", "dot", "fc", "matmul", "mul"]


def fc(
    input: Variable | Sequence[Variable],
    size: int,
    num_flatten_dims: int = 1,
    param_attr: ParamAttrLike | Sequence[ParamAttrLike] = None,
    bias_attr: ParamAttrLike = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Return ``act(sum of input @ weight + bias)`` over one or several inputs.

    Operators ``mul``, ``elementwise_add``. An input of shape (N, ...) is flattened to a matrix: its first
    ``num_flatten_dims`` dims are rows. Each input has a weight of its own, (columns, size); the bias,
    (size,), is shared. Raises TypeError unless ``input`` is a variable of a supported dtype, GraphError
    when the count of columns is unknown.

    >>> from paddlelike.input import data
    >>> hidden = fc(data("pixels", [None, 784]), size=10, act="softmax", name="digits")
    >>> hidden.shape, hidden.block.all_parameters()[-2:]
    ((-1, 10), [<parameter digits.w_0: fp32[784, 10]>, <parameter digits.b_0: fp32[10]>])
    """
    inputs = check_variables("fc", "input", input, FLOATS)
    helper = LayerHelper("fc", name=name, input=inputs, act=act, param_attr=param_attr, bias_attr=bias_attr)
    dtype = helper.input_dtype()
    products = []
    for variable, attr in helper.iter_inputs_and_params():
        if num_flatten_dims == -1:
            num_flatten_dims = len(variable.shape) - 1
        columns = variable.shape[num_flatten_dims:]
        if any(dim < 0 for dim in columns) and math.prod(columns) <= 0:  # as Fluid: (3, -1, -1) is 3 columns
            raise GraphError(
                f"layer 'fc': input {variable.name!r} of shape {list(variable.shape)} has unknown dims "
                f"from dim {num_flatten_dims} on, so that its weight would have no shape",
                hint="declare those dims, or pass num_flatten_dims",
            )
        weight = helper.create_parameter(attr, [math.prod(columns), size], dtype)
        product = helper.create_variable_for_type_inference(dtype)
        helper.append_op(
            type="mul",
            inputs={"X": variable, "Y": weight},
            outputs={"Out": product},
            attrs={"x_num_col_dims": num_flatten_dims, "y_num_col_dims": 1},
        )
        products.append(product)
    total = products[0]
    if len(products) > 1:
        total = helper.create_variable_for_type_inference(dtype)
        attrs = {"use_mkldnn": False}
        helper.append_op(type="sum", inputs={"X": products}, outputs={"Out": total}, attrs=attrs)
    return helper.append_activation(helper.append_bias_op(total, dim_start=num_flatten_dims))


def mul(
    x: Variable, y: Variable, x_num_col_dims: int = 1, y_num_col_dims: int = 1, name: str | None = None
) -> Variable:
    """Return the product of ``x`` and ``y`` as matrices whose rows are their first dims.

    Operator ``mul``. ``x_num_col_dims`` and ``y_num_col_dims`` say how many dims count as rows; the result
    has those of ``x``, then the others of ``y``. Raises TypeError unless ``x`` and ``y`` are variables of
    supported dtypes.

    >>> import paddlelike as fluid
    >>> x, y = fluid.data("x", [None, 2, 3]), fluid.data("y", [6, 4])
    >>> fluid.layers.mul(x, y).shape
    (-1, 4)
    """
    check_variable("mul", "x", x, FLOATS)
    check_variable("mul", "y", y, FLOATS)
    attrs = {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims}
    return emit("mul", {"X": x, "Y": y}, attrs, name=name)


def matmul(
    x: Variable,
    y: Variable,
    transpose_x: bool = False,
    transpose_y: bool = False,
    alpha: float = 1.0,
    name: str | None = None,
) -> Variable:
    """Return ``alpha * x @ y`` over the last two dims, the others being batches (operator ``matmul``).

    ``transpose_x`` and ``transpose_y`` exchange the last two dims first. Raises TypeError unless ``x`` and
    ``y`` are variables of supported dtypes, GraphError when columns and rows do not match.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.matmul(x, x, transpose_y=True)])
    [array([[5.]], dtype=float32)]
    """
    check_variable("matmul", "x", x, FLOATS)
    check_variable("matmul", "y", y, FLOATS)
    width = _matrix(x.shape, transpose_x)[-1]
    height = _matrix(y.shape, transpose_y, column=True)[-2]
    if -1 not in (width, height) and width != height:
        raise GraphError(
            f"layer 'matmul': x of shape {list(x.shape)} has {width} columns, y of shape "
            f"{list(y.shape)} has {height} rows (transpose_x={transpose_x}, transpose_y={transpose_y})",
            hint="transpose one of them, or reshape it",
        )
    attrs = {"transpose_X": transpose_x, "transpose_Y": transpose_y, "alpha": float(alpha)}
    return emit("matmul", {"X": x, "Y": y}, attrs, name=name)


def _matrix(shape: tuple[int, ...], transposed: bool, *, column: bool = False) -> tuple[int, ...]:
    """Return the last two dims of an operand; a vector is a row on the left, a column on the right."""
    if len(shape) == 1:
        shape = (shape[0], 1) if column != transposed else (1, shape[0])
    return (shape[-1], shape[-2]) if transposed else (shape[-2], shape[-1])


def bmm(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Return the products of matrices: (B, M, K) and (B, K, N) give (B, M, N) (operator ``bmm``).

    ``x`` has shape (N, A, B) and ``y`` (N, B, C).

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 2, 3])
    >>> y = fluid.data("y", [None, 3, 4])
    >>> fluid.layers.bmm(x, y).shape
    (-1, 2, 4)
    """
    return emit("bmm", {"X": x, "Y": y}, name=name)


def dot(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Return the dot products of the rows: (N, D) and (N, D) give (N, 1) (operator ``dot``).

    ``x`` and ``y`` have the same shape, (D,) or (N, D).

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> y = fluid.layers.assign(np.array([[1, 1], [2, 2]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.dot(x, y)])
    >>> print(out)
    [[ 3.]
     [14.]]
    """
    return emit("dot", {"X": x, "Y": y}, name=name, out=create_named(name, x.dtype))


def addmm(
    input: Variable,
    x: Variable,
    y: Variable,
    alpha: float = 1.0,
    beta: float = 1.0,
    name: str | None = None,
) -> Variable:
    """Return ``beta * input + alpha * x @ y`` of matrices (operator ``addmm``).

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [2, 3])
    >>> y = fluid.data("y", [2, 4])
    >>> z = fluid.data("z", [4, 3])
    >>> fluid.layers.addmm(x, y, z).shape
    (2, 3)
    """
    attrs = {"Alpha": alpha, "Beta": beta}
    return emit("addmm", {"Input": input, "X": x, "Y": y}, attrs, name=name)


def bilinear_tensor_product(
    x: Variable,
    y: Variable,
    size: int,
    act: str | None = None,
    name: str | None = None,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
) -> Variable:
    """Return ``out[n, i] = x[n] @ weight[i] @ y[n] + bias[i]`` (operator ``bilinear_tensor_product``).

    ``x`` (N, M) and ``y`` (N, K) give (N, size); the weight is (size, M, K). Raises TypeError unless ``x``
    and ``y`` are variables.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3])
    >>> y = fluid.data("y", [None, 4])
    >>> fluid.layers.bilinear_tensor_product(x, y, size=5).shape
    (-1, 5)
    """
    check_variable("bilinear_tensor_product", "x", x)
    check_variable("bilinear_tensor_product", "y", y)
    helper = LayerHelper("bilinear_tensor_product", name=name, act=act, bias_attr=bias_attr)
    shape = [size, x.shape[1], y.shape[1]]
    weight = helper.create_parameter(param_attr, shape, x.dtype)
    out = helper.create_variable_for_type_inference(x.dtype)
    bias = helper.create_parameter(helper.bias_attr, [1, size], x.dtype, is_bias=True)
    inputs = {"X": x, "Y": y, "Weight": weight, "Bias": bias}
    return emit("bilinear_tensor_product", inputs, out=out, helper=helper)
