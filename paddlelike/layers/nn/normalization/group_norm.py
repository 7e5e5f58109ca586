"""group_norm, and instance_norm, whose groups are single channels.

Parameters
----------
input
    (N, C, ...), or (N, ..., C) for NHWC.
groups
    The count of groups of channels.
epsilon
    Added to the variance, against division by zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.initializer import Constant
from paddlelike.layers.checks import WIDE_FLOATS, check_choice, check_variable
from paddlelike.layers.emit import emit_all
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["group_norm", "instance_norm"]


def group_norm(
    input: Variable,
    groups: int,
    epsilon: float = 1e-05,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    act: str | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Return each sample normalized over each group of its channels (operator ``group_norm``).

    Scale and bias exist only if ``param_attr`` or ``bias_attr`` is given: see ``fluid.quirks()``. Wu & He
    2018. Raises TypeError unless ``input`` is a variable of a supported dtype and GraphError for another
    ``data_layout``.

    ``groups`` should divide the channels of (N, C, ...); ``epsilon`` is added to the variance.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4, 8, 8])
    >>> fluid.layers.group_norm(x, groups=2).shape
    (-1, 4, 8, 8)
    """
    check_variable("group_norm", "input", input, WIDE_FLOATS)
    check_choice("group_norm", "data_layout", data_layout, ("NCHW", "NHWC"))
    helper = LayerHelper("group_norm", name=name, act=act)
    shape = [input.shape[1 if data_layout == "NCHW" else -1]]
    inputs = {"X": input}
    if (param_attr is None or bias_attr is None) and not warn_quirk("group_norm_parameters"):
        param_attr = True if param_attr is None else param_attr
        bias_attr = True if bias_attr is None else bias_attr
    if param_attr:
        inputs["Scale"] = helper.create_parameter(
            param_attr, shape, input.dtype, default_initializer=Constant(1.0)
        )
    if bias_attr:
        inputs["Bias"] = helper.create_parameter(bias_attr, shape, input.dtype, is_bias=True)
    if "Scale" not in inputs:
        warn_quirk("group_norm_gradient")
    if shape[0] > 0 and groups > 0 and shape[0] % groups:
        warn_quirk("group_norm_groups")
    mean = helper.create_variable(dtype=input.dtype, stop_gradient=True)
    variance = helper.create_variable(dtype=input.dtype, stop_gradient=True)
    out = helper.create_variable(dtype=input.dtype)
    helper.append_op(
        type="group_norm",
        inputs=inputs,
        outputs={"Y": out, "Mean": mean, "Variance": variance},
        attrs={"epsilon": epsilon, "groups": groups, "data_layout": data_layout},
    )
    return helper.append_activation(out)


def instance_norm(
    input: Variable,
    epsilon: float = 1e-05,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    name: str | None = None,
) -> Variable:
    """Return each sample normalized over each of its channels (operator ``instance_norm``).

    ``input`` is (N, C, ...). Ulyanov et al. 2016. Raises TypeError unless ``input`` is a variable of a
    supported dtype, GraphError when an attribute is False.

    ``epsilon`` is added to the variance.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 8])
    >>> fluid.layers.instance_norm(x).shape
    (-1, 3, 8, 8)
    """
    check_variable("instance_norm", "input", input, WIDE_FLOATS)
    if param_attr is False or bias_attr is False:
        raise GraphError("layer 'instance_norm': param_attr and bias_attr cannot be False")
    helper = LayerHelper("instance_norm", name=name)
    shape = [input.shape[1]]
    scale = helper.create_parameter(param_attr, shape, input.dtype, default_initializer=Constant(1.0))
    bias = helper.create_parameter(bias_attr, shape, input.dtype, is_bias=True)
    inputs = {"X": input, "Scale": scale, "Bias": bias}
    outputs = {"SavedMean": input.dtype, "SavedVariance": input.dtype, "Y": input.dtype}
    kept = ("SavedMean", "SavedVariance")
    attrs = {"epsilon": epsilon}
    return emit_all("instance_norm", inputs, outputs, attrs, helper=helper, constant=kept)[-1]
