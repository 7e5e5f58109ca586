"""Normalization of each sample, of neighbouring channels, and of weights by their spectral norm.

Parameters
----------
input
    (N, C, ...), or (N, ..., C) for NHWC.
scale
    Whether to multiply by a scale, which is a parameter.
shift
    Whether to add a shift, which is a parameter.
begin_norm_axis
    The first dim that is normalized over.
epsilon
    Added to the variance, against division by zero.
groups
    The number of groups of channels.
n
    The number of neighboring channels that are added.
k, alpha, beta
    The numbers of these names in the formula above.
weight
    A parameter of two to five dims.
dim
    The dim that counts as rows: 0, or 1 for weights of ``fc`` and of transposed convolutions.
power_iters
    The number of power iterations.
eps
    Added to the norms, against division by zero.

Returns
-------
Variable
    In the shape and dtype of ``input``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework import Variable, warn_quirk
from paddlelike.initializer import Constant, Normal
from paddlelike.layers.emit import WIDE_FLOATS, check_choice, check_variable, emit_all
from paddlelike.layers.helper import LayerHelper
from paddlelike.param_attr import ParamAttr

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["group_norm", "instance_norm", "layer_norm", "lrn", "spectral_norm"]


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

    Then each element of these dims is multiplied by its own scale, and its own shift is added. Ba et al.
    2016.

    Parameters
    ----------
    input
        A variable of two dims or more.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32 or float64.

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
    2018.

    ``groups`` should divide the channels of (N, C, ...).

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32 or float64.
    GraphError
        ``data_layout`` is neither ``"NCHW"`` nor ``"NHWC"``.

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

    ``input`` is (N, C, ...). Ulyanov et al. 2016.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32 or float64.
    GraphError
        ``param_attr`` or ``bias_attr`` is False.

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


def lrn(
    input: Variable,
    n: int = 5,
    k: float = 1.0,
    alpha: float = 0.0001,
    beta: float = 0.75,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    """Return ``x / (k + alpha * sum of x * x over n neighboring channels) ** beta`` (operator ``lrn``).

    Parameters
    ----------
    input
        (N, C, H, W), or (N, H, W, C) for NHWC.

    Returns
    -------
    Variable
        In the shape and dtype of ``input``, (N, C, H, W).

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32.
    GraphError
        ``input`` does not have 4 dims.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4, 8, 8])
    >>> fluid.layers.lrn(x).shape
    (-1, 4, 8, 8)
    """
    check_variable("lrn", "input", input, (VarType.FP32,))
    check_choice("lrn", "data_format", data_format, ("NCHW", "NHWC"))
    if len(input.shape) != 4:
        raise GraphError(
            f"layer 'lrn': input {input.name!r} of shape {list(input.shape)} has "
            f"{len(input.shape)} dims, expected 4"
        )
    outputs = {"MidOut": input.dtype, "Out": input.dtype}
    attrs = {"n": n, "k": k, "alpha": alpha, "beta": beta, "data_format": data_format}
    _, out = emit_all("lrn", {"X": input}, outputs, attrs, name=name, constant=("MidOut",))
    return out


def spectral_norm(
    weight: Variable, dim: int = 0, power_iters: int = 1, eps: float = 1e-12, name: str | None = None
) -> Variable:
    """Return ``weight`` divided by its greatest singular value.

    Operator ``spectral_norm``. Dim ``dim`` counts as the rows of a matrix. The value comes from
    ``power_iters`` power iterations on two persistable vectors; for its gradient see ``fluid.quirks()``.
    Miyato et al. 2018.

    Returns
    -------
    Variable
        In the shape and dtype of ``weight``.

    Raises
    ------
    TypeError
        ``weight`` is not a variable of float32 or float64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [4, 3])
    >>> fluid.layers.spectral_norm(x).shape
    (4, 3)
    """
    check_variable("spectral_norm", "weight", weight, WIDE_FLOATS)
    warn_quirk("spectral_norm_gradient")
    helper = LayerHelper("spectral_norm", name=name)
    rows = weight.shape[dim]
    columns = math.prod(weight.shape) // rows
    u, v = (
        helper.create_parameter(ParamAttr(), [length], weight.dtype, default_initializer=Normal(0.0, 1.0))
        for length in (rows, columns)
    )
    u.stop_gradient = v.stop_gradient = True
    out = helper.create_variable(dtype=weight.dtype)
    helper.append_op(
        type="spectral_norm",
        inputs={"Weight": weight, "U": u, "V": v},
        outputs={"Out": out},
        attrs={"dim": dim, "power_iters": power_iters, "eps": eps},
    )
    return out
