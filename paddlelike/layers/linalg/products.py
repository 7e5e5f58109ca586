"""Fully connected layers, and products of matrices and vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from paddlelike.errors import GraphError
from paddlelike.framework import Variable
from paddlelike.layers.emit import FLOATS, WIDE_FLOATS, check_variable, check_variables, emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.assign import create_named

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = [
    "addmm",
    "bilinear_tensor_product",
    "bmm",
    "cross",
    "dot",
    "fc",
    "fsp_matrix",
    "kron",
    "matmul",
    "mul",
]


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

    Operators ``mul`` and ``elementwise_add``. Each input has a weight of its own, (columns, size); all inputs
    share the bias, (size,).

    Parameters
    ----------
    input
        A variable (N, ...), or a list of them. Each is flattened to a matrix (rows, columns).
    size
        The width of the result.
    num_flatten_dims
        The number of leading dims that become rows; the others become columns, whose number must be known.

    Returns
    -------
    Variable
        The first ``num_flatten_dims`` dims of the input, then ``size``: (N, size) by default. The dtype of
        ``input``.

    Raises
    ------
    GraphError
        The number of columns is unknown.
    TypeError
        ``input`` is not a variable of float16, float32 or float64.

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
    """Return the matrix product of ``x`` and ``y``, whose first dims become rows.

    Operator ``mul``. The result has the row dims of ``x``, then the column dims of ``y``.

    Parameters
    ----------
    x, y
        Variables of two dims or more, flattened to matrices.
    x_num_col_dims, y_num_col_dims
        The number of leading dims that become rows of the matrix.

    Returns
    -------
    Variable
        The first ``x_num_col_dims`` dims of ``x``, then the dims of ``y`` from ``y_num_col_dims`` on. In the
        dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` or ``y`` is not a variable of float16, float32 or float64.

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
    """Return ``alpha * x @ y`` over the last two dims; other dims are batches (operator ``matmul``).

    Parameters
    ----------
    x
        (..., M, K), or (K,).
    y
        (..., K, N), or (K,). Batches are broadcast.
    transpose_x, transpose_y
        Whether the last two dims are exchanged before the product.
    alpha
        A number by which the product is multiplied.

    Returns
    -------
    Variable
        (..., M, N) for ``x`` (..., M, K) and ``y`` (..., K, N), after the transpositions; a vector counts as
        a row in ``x``, as a column in ``y``. In the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` or ``y`` is not a variable of float16, float32 or float64.
    GraphError
        The number of columns of ``x`` is not the number of rows of ``y``.

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
    """Return the matrix products of a batch: (B, M, K) and (B, K, N) give (B, M, N) (operator ``bmm``).

    Parameters
    ----------
    x
        (B, M, K).
    y
        (B, K, N).

    Returns
    -------
    Variable
        (B, M, N), in the dtype of ``x``.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 2, 3])
    >>> y = fluid.data("y", [None, 3, 4])
    >>> fluid.layers.bmm(x, y).shape
    (-1, 2, 4)
    """
    return emit("bmm", {"X": x, "Y": y}, name=name)


def dot(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Return the dot products of the rows: (N, D) and (N, D) give (N, 1) (operator ``dot``).

    Parameters
    ----------
    x, y
        (N, D) both, or (D,) both.

    Returns
    -------
    Variable
        (N, 1) for matrices, (1,) for vectors, in the dtype of ``x``.

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
    input: Variable, x: Variable, y: Variable, alpha: float = 1.0, beta: float = 1.0, name: str | None = None
) -> Variable:
    """Return ``beta * input + alpha * x @ y`` of matrices (operator ``addmm``).

    Parameters
    ----------
    input
        (M, N), or a shape that can be broadcast to it.
    x
        (M, K).
    y
        (K, N).
    alpha
        The factor of the product.
    beta
        The factor of ``input``.

    Returns
    -------
    Variable
        (M, N) for ``x`` (M, K) and ``y`` (K, N), in the dtype of ``input``.

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

    ``x`` (N, M) and ``y`` (N, K) give (N, size); the weight is (size, M, K).

    Parameters
    ----------
    x
        (N, M).
    y
        (N, K).
    size
        The width of the result.

    Returns
    -------
    Variable
        (N, size), in the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` or ``y`` is not a variable.

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


def kron(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Return the Kronecker product: every element of ``x`` times all of ``y`` (operator ``kron``).

    Parameters
    ----------
    x, y
        Variables of any shape and one dtype.

    Returns
    -------
    Variable
        Each dim is the product of the dims of ``x`` and ``y``; in the dtype of ``x``. It is ``out`` if that
        is given.

    Raises
    ------
    TypeError
        ``x`` or ``y`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> y = fluid.layers.assign(np.array([[1], [10]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.kron(x, y)])
    >>> print(out)
    [[ 1.  2.]
     [10. 20.]]
    """
    check_variable("kron", "x", x)
    check_variable("kron", "y", y)
    return emit("kron", {"X": x, "Y": y}, name=name, out=out)


def cross(input: Variable, other: Variable, dim: int | None = None) -> Variable:
    """Return the cross products of vectors of length 3 along ``dim``, by default the first dim of length 3.

    Operator ``cross``.

    Parameters
    ----------
    input, other
        Variables of one shape, with a dim of length 3.
    dim
        The dim of length 3; None for the first such dim.

    Returns
    -------
    Variable
        In the shape and dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` or ``other`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 0, 0]], "float32"))
    >>> y = fluid.layers.assign(np.array([[0, 1, 0]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.cross(x, y)])
    >>> print(out)
    [[0. 0. 1.]]
    """
    check_variable("cross", "input", input)
    check_variable("cross", "other", other)
    return emit("cross", {"X": input, "Y": other}, {} if dim is None else {"dim": dim})


def fsp_matrix(x: Variable, y: Variable) -> Variable:
    """Return the flow matrices (N, I, J): the means over all pixels of ``x[n, i] * y[n, j]``.

    Operator ``fsp``.

    Parameters
    ----------
    x
        (N, I, H, W).
    y
        (N, J, H, W).

    Returns
    -------
    Variable
        (N, I, J) for ``x`` (N, I, H, W) and ``y`` (N, J, H, W), in the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` or ``y`` is not a variable of float32 or float64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 2, 8, 8])
    >>> y = fluid.data("y", [None, 3, 8, 8])
    >>> fluid.layers.fsp_matrix(x, y).shape
    (-1, 2, 3)
    """
    check_variable("fsp_matrix", "x", x, WIDE_FLOATS)
    check_variable("fsp_matrix", "y", y, WIDE_FLOATS)
    return emit("fsp", {"X": x, "Y": y}, layer="fsp_matrix")
