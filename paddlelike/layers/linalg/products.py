"""Products of matrices and vectors: bmm, dot, addmm, Kronecker and cross products, bilinear forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.assign import create_named

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["addmm", "bilinear_tensor_product", "bmm", "cross", "dot", "fsp_matrix", "kron"]


def bmm(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Return the products of matrices: (B, M, K) and (B, K, N) give (B, M, N) (operator ``bmm``).

    ``x`` has shape (N, A, B) and ``y`` (N, B, C).

    Parameters
    ----------
    x
        (B, M, K).
    y
        (B, K, N).

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

    Parameters
    ----------
    x, y
        (N, D) both, or (D,) both.

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

    Parameters
    ----------
    x
        (N, M).
    y
        (N, K).
    size
        The width of the result.

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

    Raises TypeError unless ``x`` and ``y`` are variables.

    Parameters
    ----------
    x, y
        Variables of any shape and one dtype.

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

    Operator ``cross``. Raises TypeError unless ``input`` and ``other`` are variables.

    Parameters
    ----------
    input, other
        Variables of one shape, with a dim of length 3.
    dim
        That dim; None for the first one of length 3.

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
    """Return the flow matrices (N, I, J): the means over pixels of ``x[n, i] * y[n, j]``.

    Operator ``fsp``. Raises TypeError unless ``x`` and ``y`` are variables of supported dtypes.

    Parameters
    ----------
    x
        (N, I, H, W).
    y
        (N, J, H, W).

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 2, 8, 8])
    >>> y = fluid.data("y", [None, 3, 8, 8])
    >>> fluid.layers.fsp_matrix(x, y).shape
    (-1, 2, 3)
    """
    check_variable("fsp_matrix", "x", x, WIDE_FLOATS)
    check_variable("fsp_matrix", "y", y, WIDE_FLOATS)
    return emit("fsp", {"X": x, "Y": y}, layer="fsp_matrix")
