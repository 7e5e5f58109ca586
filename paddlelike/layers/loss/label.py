"""Losses of scores against the label among the classes: bpr_loss and center_loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import FLOATS, INTEGERS, WIDE_FLOATS, check_variable, describe
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["bpr_loss", "center_loss"]


def center_loss(
    input: Variable,
    label: Variable,
    num_classes: int,
    alpha: float | Variable,
    param_attr: ParamAttrLike,
    update_center: bool = True,
) -> Variable:
    """Return half the squared distance of each row (N, D) from the center of its class: (N, 1).

    Operator ``center_loss``. The centers, (num_classes, D), move towards their rows at rate ``alpha``, a
    number or a variable. Wen et al. 2016. Raises TypeError for another ``alpha``.

    ``input`` holds features (N, D), ``label`` the class of each row, (N, 1); the centers move in a
    run unless ``update_center`` is False.

    Parameters
    ----------
    input
        Features (N, D).
    label
        The class of each row, int64 (N, 1).
    num_classes
        The count of classes.
    alpha
        The rate at which centers move: a number, or a variable of shape [1].
    param_attr
        The centers, (num_classes, D).
    update_center
        Whether a run moves the centers.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 8])
    >>> y = fluid.data("y", [None, 1], "int64")
    >>> fluid.layers.center_loss(x, y, num_classes=3, alpha=0.5, param_attr=None).shape
    (-1, 1)
    """
    check_variable("center_loss", "input", input, WIDE_FLOATS)
    check_variable("center_loss", "label", label, INTEGERS)
    helper = LayerHelper("center_loss")
    centers = helper.create_parameter(param_attr, [num_classes, input.shape[1]], input.dtype)
    centers.stop_gradient = True
    if isinstance(alpha, Variable):
        rate = alpha
    elif isinstance(alpha, int | float):
        rate = helper.create_variable(
            name="centerloss_alpha", shape=[1], dtype="float32", persistable=True, stop_gradient=True
        )
        helper.append_op(
            type="fill_constant",
            outputs={"Out": [rate]},
            attrs={"shape": [1], "dtype": int(VarType.FP32), "value": float(alpha), "force_cpu": False},
        )
    else:
        raise TypeError(f"layer 'center_loss': alpha must be a number or a variable, got {describe(alpha)}")
    difference = helper.create_variable_for_type_inference(input.dtype)
    loss = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        type="center_loss",
        inputs={"X": [input], "Label": [label], "Centers": [centers], "CenterUpdateRate": [rate]},
        outputs={"SampleCenterDiff": [difference], "Loss": [loss], "CentersOut": [centers]},
        attrs={"cluster_num": num_classes, "need_update": update_center},
    )
    return loss


def bpr_loss(input: Variable, label: Variable, name: str | None = None) -> Variable:
    """Return the mean of ``-log(sigmoid(input[label] - input[j]))`` over the other classes ``j``: (N, 1).

    Operator ``bpr_loss``. Raises TypeError unless ``input`` and ``label`` are variables of supported
    dtypes.

    Parameters
    ----------
    input
        Scores (N, classes).
    label
        The class that should score most, int64 (N, 1).

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4])
    >>> y = fluid.data("y", [None, 1], "int64")
    >>> fluid.layers.bpr_loss(x, y).shape
    (-1, 1)
    """
    check_variable("bpr_loss", "input", input, FLOATS)
    check_variable("bpr_loss", "label", label)
    return emit("bpr_loss", {"X": [input], "Label": [label]}, slot="Y", name=name)
