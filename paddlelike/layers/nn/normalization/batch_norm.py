"""Normalization by statistics of batches, whose moving averages training keeps.

Parameters
----------
input
    (N, C).
epsilon
    Added to the sums of squares.
in_place
    Whether the result is written to ``input``.
moving_mean_name, moving_variance_name, do_model_average_for_mean_and_var
    Ignored, as in Fluid.
slot_dim
    The width of a slot whose first number is a number of shows; -1 for no slots.
sync_stats
    Recorded in the operator. It has no effect on one device.
summary_decay_rate
    The share of the sums that a run keeps.
enable_scale_and_shift
    Whether each column gets a scale and a bias.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework import Variable, warn_quirk
from paddlelike.initializer import Constant
from paddlelike.layers.emit import FLOATS, WIDE_FLOATS, check_choice, check_variable
from paddlelike.layers.helper import LayerHelper
from paddlelike.param_attr import ParamAttr

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["batch_norm", "data_norm", "inplace_abn"]


def batch_norm(
    input: Variable,
    act: str | None = None,
    is_test: bool = False,
    momentum: float | Variable = 0.9,
    epsilon: float = 1e-05,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    use_global_stats: bool = False,
) -> Variable:
    """Return each channel normalized over the batch, times a scale plus a bias (operator ``batch_norm``).

    ``(input - mean) / sqrt(variance + epsilon) * scale + bias`` (Ioffe & Szegedy, 2015). Training takes mean
    and variance from the batch, and updates their moving averages, which are persistable: ``moving = momentum
    * moving + (1 - momentum) * batch``. Test programs normalize by the moving averages.

    Parameters
    ----------
    input
        (N, C, ...), or (N, ..., C) with ``data_layout="NHWC"``. The result has the same shape.
    momentum
        The share of the moving mean and variance that a step keeps.
    epsilon
        Added to the variance, against division by zero.
    param_attr
        The scale, (C,), initially ones.
    bias_attr
        The bias, (C,), initially zeros.
    in_place
        Whether the result is written to ``input``.
    moving_mean_name, moving_variance_name
        The names of the moving mean and variance, which saves and loads use; None for generated ones.
    do_model_average_for_mean_and_var
        Whether a :class:`~paddlelike.optimizer.ModelAverage` averages the moving mean and variance too.
    use_global_stats
        Whether training normalizes by the moving mean and variance as well.

    Returns
    -------
    Variable
        In the shape and dtype of ``input``.

    Raises
    ------
    GraphError
        ``param_attr`` or ``bias_attr`` is False.
    TypeError
        ``input`` is not a variable.

    >>> from paddlelike.input import data
    >>> normal = batch_norm(data("x", [None, 3, 8, 8]), act="relu", name="bn")
    >>> [parameter.name for parameter in normal.block.all_parameters()]
    ['bn.w_0', 'bn.b_0', 'bn.w_1', 'bn.w_2']
    """
    helper = LayerHelper("batch_norm", name=name, act=act)
    moving = (moving_mean_name, moving_variance_name, do_model_average_for_mean_and_var)
    attrs: dict[str, Any] = {
        "momentum": momentum,
        "epsilon": epsilon,
        "is_test": is_test,
        "data_layout": data_layout,
        "use_mkldnn": False,
        "fuse_with_relu": False,
        "use_global_stats": use_global_stats,
    }
    out = _batch_norm(helper, "batch_norm", input, (param_attr, bias_attr), moving, attrs, in_place=in_place)
    return helper.append_activation(out)


def inplace_abn(
    input: Variable,
    act: str | None = None,
    is_test: bool = False,
    momentum: float | Variable = 0.9,
    epsilon: float = 1e-05,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    data_layout: str = "NCHW",
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    use_global_stats: bool = False,
    act_alpha: float = 1.0,
) -> Variable:
    """Return the activation of :func:`batch_norm`, written over ``input`` (operator ``inplace_abn``).

    Parameters
    ----------
    act
        The activation: ``"identity"``, ``"leaky_relu"`` or ``"elu"``; None for none.
    input
        (N, C, ...), or (N, ..., C) for NHWC. It is overwritten.
    momentum
        The share of the moving mean and variance that a step keeps.
    epsilon
        Added to the variance, against division by zero.
    moving_mean_name, moving_variance_name
        The names of the moving mean and variance; None for generated ones.
    do_model_average_for_mean_and_var
        Whether a :class:`~paddlelike.optimizer.ModelAverage` averages the moving mean and variance too.
    use_global_stats
        Whether training normalizes by the moving mean and variance as well.
    act_alpha
        The slope of ``"leaky_relu"`` or ``"elu"``.

    Returns
    -------
    Variable
        ``input`` itself, which holds the result: the same shape and dtype.

    Raises
    ------
    GraphError
        ``act`` is another activation.
    TypeError
        ``input`` is not a variable.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 8])
    >>> fluid.layers.inplace_abn(x, act="leaky_relu").shape
    (-1, 3, 8, 8)
    """
    check_choice("inplace_abn", "act", act, (None, "identity", "leaky_relu", "elu"))
    helper = LayerHelper("inplace_abn", name=name)
    moving = (moving_mean_name, moving_variance_name, do_model_average_for_mean_and_var)
    attrs: dict[str, Any] = {
        "momentum": momentum,
        "epsilon": epsilon,
        "is_test": is_test,
        "data_layout": data_layout,
        "use_mkldnn": False,
        "fuse_with_relu": False,
        "use_global_stats": use_global_stats,
        "activation": act,
        "alpha": act_alpha,
    }
    return _batch_norm(helper, "inplace_abn", input, (param_attr, bias_attr), moving, attrs, in_place=True)


def _batch_norm(
    helper: LayerHelper,
    type: str,
    input: Variable,
    given: tuple[Any, Any],
    moving: tuple[str | None, str | None, bool],
    attrs: dict[str, Any],
    *,
    in_place: bool,
) -> Variable:
    """Append the operator with its parameters, float32 for half-precision input, and return its output."""
    check_variable(type, "input", input, FLOATS)
    check_choice(type, "data_layout", attrs["data_layout"], ("NCHW", "NHWC"))
    if False in given:
        raise GraphError(
            f"layer {type!r}: param_attr and bias_attr cannot be False",
            hint="ParamAttr(trainable=False) keeps scale or bias at its initial value",
        )
    if len(input.shape) == 1:
        raise GraphError(
            f"layer {type!r}: input {input.name!r} of shape {list(input.shape)} has 1 dim, expected 2 to 5",
            hint="declare the batch, too: [None, channels, ...]",
        )
    dtype = VarType.FP32 if input.dtype == VarType.FP16 else input.dtype
    shape = [input.shape[1 if attrs["data_layout"] == "NCHW" else -1]]
    param_attr, bias_attr = given
    scale = helper.create_parameter(param_attr, shape, dtype, default_initializer=Constant(1.0))
    bias = helper.create_parameter(bias_attr, shape, dtype, is_bias=True)
    mean_name, variance_name, average = moving
    mean, variance = (
        helper.create_parameter(
            ParamAttr(name, Constant(value), trainable=False, do_model_average=average), shape, dtype
        )
        for name, value in ((mean_name, 0.0), (variance_name, 1.0))
    )
    mean.stop_gradient = variance.stop_gradient = True
    saved_mean = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    saved_variance = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    out = input if in_place else helper.create_variable_for_type_inference(dtype)
    inputs = {"X": input, "Scale": scale, "Bias": bias, "Mean": mean, "Variance": variance}
    variable = isinstance(attrs["momentum"], Variable)
    if variable and warn_quirk("batch_norm_momentum"):
        del attrs["momentum"]  # its default is 0.9
    elif variable:
        inputs["MomentumTensor"] = attrs.pop("momentum")
    helper.append_op(
        type=type,
        inputs=inputs,
        outputs={
            "Y": out,
            "MeanOut": mean,
            "VarianceOut": variance,
            "SavedMean": saved_mean,
            "SavedVariance": saved_variance,
        },
        attrs=attrs,
    )
    return out


def data_norm(
    input: Variable,
    act: str | None = None,
    epsilon: float = 1e-05,
    param_attr: ParamAttrLike = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    slot_dim: int = -1,
    sync_stats: bool = False,
    summary_decay_rate: float = 0.9999999,
    enable_scale_and_shift: bool = False,
) -> Variable:
    """Return (N, C) normalized by the statistics of all data seen so far (operator ``data_norm``).

    The statistics are parameters ``<name>.batch_size``, ``.batch_sum`` and ``.batch_square_sum``, whose
    gradients carry the statistics of the batch; ``param_attr`` is a dict of their initial values.

    With ``slot_dim``, slots whose first number is 0 stay zero.

    Parameters
    ----------
    param_attr
        A dict of the initial values ``batch_size``, ``batch_sum`` and ``batch_square``; None for the
        defaults.

    Returns
    -------
    Variable
        In the shape and dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32 or float64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4])
    >>> fluid.layers.data_norm(x).shape
    (-1, 4)
    """
    check_variable("data_norm", "input", input, WIDE_FLOATS)
    helper = LayerHelper("data_norm", name=name, act=act)
    first = {"batch_size": 1e4, "batch_sum": 0.0, "batch_square": 1e4, "scale_w": 1.0, "bias": 0.0}
    first |= param_attr if isinstance(param_attr, dict) else {}  # as in Fluid, a ParamAttr is ignored
    shape = [input.shape[1 if data_layout == "NCHW" else -1]]
    prefix = "dn" if name is None else name

    def parameter(suffix: str, key: str) -> Variable:
        attr = ParamAttr(f"{prefix}.{suffix}", Constant(float(first[key])))
        created: Variable = helper.create_parameter(attr, shape, input.dtype)
        return created

    inputs = {"X": input}
    if enable_scale_and_shift:
        inputs["scale_w"] = parameter("scale_w", "scale_w")
        inputs["bias"] = parameter("bias", "bias")
    inputs["BatchSize"] = parameter("batch_size", "batch_size")
    inputs["BatchSum"] = parameter("batch_sum", "batch_sum")
    inputs["BatchSquareSum"] = parameter("batch_square_sum", "batch_square")
    means = helper.create_variable(dtype=input.dtype, stop_gradient=True)
    scales = helper.create_variable(dtype=input.dtype, stop_gradient=True)
    out = input if in_place else helper.create_variable(dtype=input.dtype)
    helper.append_op(
        type="data_norm",
        inputs=inputs,
        outputs={"Y": out, "Means": means, "Scales": scales},
        attrs={
            "epsilon": epsilon,
            "slot_dim": slot_dim if slot_dim > 0 else None,
            "sync_stats": sync_stats,
            "summary_decay_rate": summary_decay_rate,
            "enable_scale_and_shift": enable_scale_and_shift or None,
        },
    )
    return helper.append_activation(out)
