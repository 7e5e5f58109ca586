"""layer_norm: each sample normalized over its last dims.

Parameters
----------
input
    A variable of two dims or more.
scale
    Whether there is a scale, a parameter.
shift
    Whether there is a shift, a parameter.
begin_norm_axis
    The first dim that is normalized over.
epsilon
    Added to the variance, against division by zero.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from paddlelike.framework.graph.variable import Variable
from paddlelike.initializer import Constant
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.emit import emit_all
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["layer_norm"]


def layer_norm(
    input: Variable,
    scale: bool = True,
    shift: bool = True,
    begin_norm_axis: int = 1,
    epsilon: float = 1e-05,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Return each sample normalized over its dims from ``begin_norm_axis`` on (operator ``layer_norm``).

    Then it is multiplied by a scale and a shift is added, both with one element per element of these dims.
    Ba et al. 2016. Raises TypeError unless ``input`` is a variable of a supported dtype.

    ``epsilon`` is added to the variance.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 6])
    >>> fluid.layers.layer_norm(x).shape
    (-1, 6)
    """
    check_variable("layer_norm", "input", input, WIDE_FLOATS)
    helper = LayerHelper("layer_norm", name=name, act=act)
    shape = [math.prod(input.shape[begin_norm_axis:])]
    inputs = {"X": input}
    if scale:
        inputs["Scale"] = helper.create_parameter(
            param_attr, shape, input.dtype, default_initializer=Constant(1.0)
        )
    if shift:
        inputs["Bias"] = helper.create_parameter(bias_attr, shape, input.dtype, is_bias=True)
    outputs = {"Mean": input.dtype, "Variance": input.dtype, "Y": input.dtype}
    attrs = {"epsilon": epsilon, "begin_norm_axis": begin_norm_axis}
    kept = ("Mean", "Variance")
    *_, out = emit_all("layer_norm", inputs, outputs, attrs, helper=helper, constant=kept)
    return helper.append_activation(out)
