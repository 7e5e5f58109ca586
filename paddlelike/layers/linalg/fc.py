"""fc: fully connected layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import FLOATS, check_variables
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["fc"]


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

    Operators ``mul`` and ``elementwise_add``. Each input has a weight of its own, (columns, size). They share
    the bias, (size,).

    Parameters
    ----------
    input
        A variable (N, ...), or several. Each is flattened to a matrix, rows by columns.
    size
        The width of the result.
    num_flatten_dims
        How many of the first dims count as rows; the others are columns, whose count must be known.

    Returns
    -------
    The first ``num_flatten_dims`` dims of the input, then ``size``: (N, size) by default.

    Raises
    ------
    GraphError
        The count of columns is unknown.
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
