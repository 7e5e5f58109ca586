"""Classification losses: cross entropy and related losses.

Parameters
----------
x
    Unnormalized scores (N, C).
label
    int32 (N, 1): 0 for background, else the class from 1.
fg_num
    The number of examples that are not background, int32 (1,).
gamma
    The exponent that lowers the weight of easy examples.
alpha
    The weight of the class; the background weighs ``1 - alpha``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, overload

from paddlelike.core import VarType
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Variable, warn_quirk
from paddlelike.layers.emit import FLOATS, INTEGERS, WIDE_FLOATS, check_variable, describe, emit, emit_all
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["bpr_loss", "center_loss", "cross_entropy", "sigmoid_focal_loss", "softmax_with_cross_entropy"]

_PRODUCTS: Final = ("mul", "matmul", "conv2d")


def cross_entropy(
    input: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100
) -> Variable:
    """Return ``-log(input[label])`` of each row of probabilities (..., D), in the shape (..., 1).

    Operator ``cross_entropy2``, or ``cross_entropy`` with ``soft_label``: ``-sum(label * log(input))``.

    Parameters
    ----------
    input
        Probabilities (..., D), for example of :func:`softmax`.
    label
        The index of the class, int64 (..., 1); with ``soft_label``, probabilities (..., D).
    soft_label
        Whether labels are probabilities.
    ignore_index
        A label whose rows have a loss of 0.

    Returns
    -------
    Variable
        (..., 1), in the dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` or ``label`` is not a variable of a supported dtype.

    >>> from paddlelike.input import data
    >>> cross_entropy(data("digits", [None, 10]), data("label", [None, 1], "int64")).shape
    (-1, 1)
    """
    check_variable("cross_entropy", "input", input, FLOATS)
    check_variable("cross_entropy", "label", label)
    if _is_sum_with_product(input):
        warn_user(
            f"cross_entropy takes probabilities, and {input.name!r} has no activation: the loss of a negative"
            " number is NaN. Take softmax first (act='softmax'), or call softmax_with_cross_entropy"
        )
    inputs = {"X": input, "Label": label}
    attrs: dict[str, Any] = {"ignore_index": ignore_index}
    if soft_label:
        return emit("cross_entropy", inputs, {"soft_label": True, **attrs}, slot="Y")
    outputs = dict.fromkeys(("Y", "XShape", "MatchX"), input.dtype)
    return emit_all("cross_entropy2", inputs, outputs, attrs)[0]


def _is_sum_with_product(x: Variable) -> bool:
    """Return whether a variable is the result of ``fc`` or ``conv2d`` without an activation."""
    if x.op is None or x.op.type != "elementwise_add":
        return False
    scores = x.block._find_var_recursive(x.op.inputs["X"][0])
    return scores is not None and scores.op is not None and scores.op.type in _PRODUCTS


@overload
def softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: Literal[False] = False,
    axis: int = -1,
) -> Variable: ...


@overload
def softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    *,
    return_softmax: Literal[True],
    axis: int = -1,
) -> tuple[Variable, Variable]: ...


def softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> Variable | tuple[Variable, Variable]:
    """Return the cross entropy of ``softmax(logits)`` along ``axis``, in one operator.

    Operator ``softmax_with_cross_entropy``.

    Parameters
    ----------
    logits
        Unnormalized scores; (..., D) if ``axis`` is the last dim.
    label
        The index of the class, int64, with 1 in place of dim ``axis``; with ``soft_label``, probabilities in
        the shape of ``logits``.
    soft_label
        Whether labels are probabilities.
    ignore_index
        A label whose rows have a loss of 0; their gradient is a quirk, see ``fluid.quirks()``.
    numeric_stable_mode
        It has no effect: the operator is always stable.
    return_softmax
        Whether to return the softmax as well: ``(loss, softmax)``.
    axis
        The dim of the classes.

    Returns
    -------
    loss : Variable
        In the shape of ``logits`` with 1 in place of dim ``axis``, in its dtype: the loss of each row.
    softmax : Variable
        Only with ``return_softmax``: the probabilities, in the shape and dtype of ``logits``.

    Raises
    ------
    TypeError
        ``logits`` or ``label`` is not a variable of a supported dtype.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> logits = fluid.layers.assign(np.array([[0, 0], [0, 3]], "float32"))
    >>> label = fluid.layers.assign(np.array([[0], [1]], "int64"))
    >>> (costs,) = fluid.Executor().run(fetch_list=[fluid.layers.softmax_with_cross_entropy(logits, label)])
    >>> costs.round(3)
    array([[0.693],
           [0.049]], dtype=float32)
    """
    check_variable("softmax_with_cross_entropy", "logits", logits, FLOATS)
    check_variable("softmax_with_cross_entropy", "label", label)
    if ignore_index != -100 and not soft_label:
        warn_quirk("ignored_labels")
    probabilities, loss = emit_all(
        "softmax_with_cross_entropy",
        {"Logits": logits, "Label": label},
        {"Softmax": logits.dtype, "Loss": logits.dtype},
        {
            "soft_label": soft_label,
            "ignore_index": ignore_index,
            "numeric_stable_mode": numeric_stable_mode,
            "axis": axis,
        },
    )
    return (loss, probabilities) if return_softmax else loss


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
    number or a variable. Wen et al. 2016.

    Parameters
    ----------
    input
        Features (N, D).
    label
        The class of each row, int64 (N, 1).
    num_classes
        The number of classes.
    alpha
        The rate at which centers move: a number, or a variable of shape [1].
    param_attr
        The centers, (num_classes, D).
    update_center
        Whether a run moves the centers.

    Returns
    -------
    Variable
        (N, 1), in the dtype of ``input``.

    Raises
    ------
    TypeError
        ``alpha`` is neither a number nor a variable.

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

    Operator ``bpr_loss``.

    Parameters
    ----------
    input
        Scores (N, classes).
    label
        The class that should score most, int64 (N, 1).

    Returns
    -------
    Variable
        (N, 1), in the dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float16, float32 or float64, or ``label`` is not a variable.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4])
    >>> y = fluid.data("y", [None, 1], "int64")
    >>> fluid.layers.bpr_loss(x, y).shape
    (-1, 1)
    """
    check_variable("bpr_loss", "input", input, FLOATS)
    check_variable("bpr_loss", "label", label)
    return emit("bpr_loss", {"X": [input], "Label": [label]}, slot="Y", name=name)


def sigmoid_focal_loss(
    x: Variable, label: Variable, fg_num: Variable, gamma: float = 2.0, alpha: float = 0.25
) -> Variable:
    """Return the sigmoid cross entropy (N, C), with less weight on easy examples (``sigmoid_focal_loss``).

    The result is divided by ``fg_num``. Lin et al. 2017.

    Returns
    -------
    Variable
        (N, C), in the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float32 or float64, or ``label`` or ``fg_num`` is not a variable of int32.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3])
    >>> y = fluid.data("y", [None, 1], "int32")
    >>> z = fluid.data("z", [1], "int32")
    >>> fluid.layers.sigmoid_focal_loss(x, y, z).shape
    (-1, 3)
    """
    check_variable("sigmoid_focal_loss", "x", x, WIDE_FLOATS)
    check_variable("sigmoid_focal_loss", "label", label, (VarType.INT32,))
    check_variable("sigmoid_focal_loss", "fg_num", fg_num, (VarType.INT32,))
    inputs = {"X": x, "Label": label, "FgNum": fg_num}
    return emit("sigmoid_focal_loss", inputs, {"gamma": gamma, "alpha": alpha})
