"""Elementwise losses.

Parameters
----------
input
    A prediction of any shape.
label
    The target, in the shape of ``input``.
delta
    The distance from which the loss is linear.
x, y
    (N, ...), of one shape.
inside_weight
    Factors of ``x - y``; None for 1.
outside_weight
    Factors of the terms; None for 1.
sigma
    A term becomes linear from ``1 / sigma ** 2`` on; None for 1.

Raises
------
TypeError
    ``input`` or ``label`` is not a variable of float32 or float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework import Variable, warn_quirk
from paddlelike.layers.emit import FLOATS, WIDE_FLOATS, check_choice, check_variable, emit, emit_all
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.reduction import reduce_mean, reduce_sum
from paddlelike.layers.tensor.gather import one_hot

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike

__all__ = [
    "dice_loss",
    "huber_loss",
    "kldiv_loss",
    "label_smooth",
    "log_loss",
    "mse_loss",
    "sigmoid_cross_entropy_with_logits",
    "smooth_l1",
    "square_error_cost",
    "teacher_student_sigmoid_loss",
]


def sigmoid_cross_entropy_with_logits(
    x: Variable, label: Variable, ignore_index: int = -100, name: str | None = None, normalize: bool = False
) -> Variable:
    """Return ``max(x, 0) - x * label + log(1 + exp(-|x|))``, element by element.

    Operator ``sigmoid_cross_entropy_with_logits``. Elements labelled ``ignore_index`` have a loss of 0.

    Parameters
    ----------
    x
        Unnormalized scores of any shape.
    label
        0 to 1, in the shape of ``x``.
    ignore_index
        A label whose elements have a loss of 0.
    normalize
        Whether the loss is divided by the number of the other elements.

    Returns
    -------
    Variable
        In the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float16, float32 or float64, or ``label`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[0, 3]], "float32"))
    >>> label = fluid.layers.assign(np.array([[1, 0]], "float32"))
    >>> (costs,) = fluid.Executor().run(fetch_list=[fluid.layers.sigmoid_cross_entropy_with_logits(x, label)])
    >>> costs.round(3)
    array([[0.693, 3.049]], dtype=float32)
    """
    check_variable("sigmoid_cross_entropy_with_logits", "x", x, FLOATS)
    check_variable("sigmoid_cross_entropy_with_logits", "label", label)
    attrs = {"ignore_index": ignore_index, "normalize": normalize}
    inputs = {"X": x, "Label": label}
    return emit("sigmoid_cross_entropy_with_logits", inputs, attrs, name=name)


def kldiv_loss(x: Variable, target: Variable, reduction: str = "mean", name: str | None = None) -> Variable:
    """Return ``target * (log(target) - x)``, element by element or reduced (operator ``kldiv_loss``).

    ``x`` holds logarithms.

    Parameters
    ----------
    x
        Logarithms of probabilities.
    target
        Probabilities, in the shape of ``x``.
    reduction
        ``"mean"``, ``"sum"``, ``"batchmean"`` or ``"none"``.

    Returns
    -------
    Variable
        In the shape and dtype of ``x`` with ``reduction`` ``"none"``, else (1,).

    Raises
    ------
    TypeError
        ``x`` or ``target`` is not a variable of float32 or float64.
    GraphError
        ``reduction`` is not one of these four.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4])
    >>> y = fluid.data("y", [None, 4])
    >>> fluid.layers.kldiv_loss(x, y, reduction="mean").shape
    (1,)
    """
    check_variable("kldiv_loss", "x", x, WIDE_FLOATS)
    check_variable("kldiv_loss", "target", target, WIDE_FLOATS)
    check_choice("kldiv_loss", "reduction", reduction, ("mean", "sum", "batchmean", "none"))
    inputs, attrs = {"X": x, "Target": target}, {"reduction": reduction}
    return emit("kldiv_loss", inputs, attrs, slot="Loss", name=name)


def label_smooth(
    label: Variable,
    prior_dist: Variable | None = None,
    epsilon: float = 0.1,
    dtype: DtypeLike = "float32",
    name: str | None = None,
) -> Variable:
    """Return ``(1 - epsilon) * label + epsilon * prior``; the prior is uniform by default.

    Operator ``label_smooth``.

    As in Fluid, no gradient flows into ``label`` after this call: see ``fluid.quirks()``.

    Parameters
    ----------
    label
        Probabilities (N, C), usually of :func:`one_hot`.
    prior_dist
        The distribution that is mixed in, (1, C); None for a uniform one.
    epsilon
        The share of the prior, 0 to 1.

    Returns
    -------
    Variable
        In the shape of ``label``, of ``dtype``.

    Raises
    ------
    TypeError
        ``label`` is not a variable of float32 or float64.
    GraphError
        ``epsilon`` is not between 0 and 1.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[0, 1], [1, 0]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.label_smooth(x, epsilon=0.2)])
    >>> print(out.round(3))
    [[0.1 0.9]
     [0.9 0.1]]
    """
    check_variable("label_smooth", "label", label, WIDE_FLOATS)
    if not 0.0 <= epsilon <= 1.0:
        raise GraphError(f"layer 'label_smooth': epsilon is {epsilon}, expected 0 .. 1")
    if not label.stop_gradient and warn_quirk("label_smooth_gradient"):
        label.stop_gradient = True
    inputs = {"X": label, "PriorDist": prior_dist}
    return emit("label_smooth", inputs, {"epsilon": float(epsilon)}, dtype=dtype, name=name)


def teacher_student_sigmoid_loss(
    input: Variable, label: Variable, soft_max_up_bound: float = 15.0, soft_max_lower_bound: float = -15.0
) -> Variable:
    """Return the sigmoid cross entropy for clicks and, if the labels contain them, for a teacher's scores.

    Operator ``teacher_student_sigmoid_loss``. A label below -1 means no click and no score; from -1 to 0, a
    click and no score; from 0 to 1, no click and the score ``label``; from 1, a click and the score ``label -
    1``.

    Parameters
    ----------
    input
        Unnormalized scores (N, 1).
    label
        Clicks and scores (N, 1), in the code above.
    soft_max_up_bound, soft_max_lower_bound
        The bounds to which the input is clipped.

    Returns
    -------
    Variable
        (N, 1), in the dtype of ``input``.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 1])
    >>> y = fluid.data("y", [None, 1])
    >>> fluid.layers.teacher_student_sigmoid_loss(x, y).shape
    (-1, 1)
    """
    layer = "teacher_student_sigmoid_loss"
    check_variable(layer, "input", input, WIDE_FLOATS)
    check_variable(layer, "label", label, WIDE_FLOATS)
    attrs = {
        "soft_max_lower_bound": float(soft_max_lower_bound),
        "soft_max_up_bound": float(soft_max_up_bound),
    }
    out = LayerHelper(layer).create_variable(dtype=input.dtype)  # as in Fluid without the layer's name
    return emit(layer, {"X": [input], "Label": [label]}, attrs, slot="Y", out=out)


def dice_loss(input: Variable, label: Variable, epsilon: float = 1e-05, name: str | None = None) -> Variable:
    """Return the batch's mean of ``1 - 2 * overlap / (sum(input) + sum(label) + epsilon)``.

    Operators ``one_hot``, ``elementwise_mul``, ``reduce_sum`` and others. Milletari et al., V-Net, 2016.

    Parameters
    ----------
    input
        Probabilities (N, ..., D).
    label
        Classes, int (N, ..., 1).
    epsilon
        Added to the sums, against division by zero.

    Returns
    -------
    Variable
        Of shape (1,), in the dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` or ``label`` is not a variable.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3])
    >>> y = fluid.data("y", [None, 1], "int64")
    >>> fluid.layers.dice_loss(fluid.layers.softmax(x), y).shape
    (1,)
    """
    check_variable("dice_loss", "input", input)
    check_variable("dice_loss", "label", label)
    truth = one_hot(label, depth=input.shape[-1])
    dims = [*range(1, len(input.shape))]
    overlap = reduce_sum(input * truth, dim=dims)
    total = reduce_sum(input, dim=dims) + reduce_sum(truth, dim=dims)
    return reduce_mean(1 - overlap * 2 / (total + epsilon))


def log_loss(input: Variable, label: Variable, epsilon: float = 0.0001, name: str | None = None) -> Variable:
    """Return ``-label * log(input + epsilon) - (1 - label) * log(1 - input + epsilon)``.

    Operator ``log_loss``.

    Parameters
    ----------
    input
        Probabilities (N, 1).
    label
        0 or 1, float (N, 1).
    epsilon
        Added to the arguments of the logarithms.

    Returns
    -------
    Variable
        In the shape of ``input``, float32: the loss of each element.

    Raises
    ------
    TypeError
        ``input`` or ``label`` is not a variable of float32.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[0.8], [0.3]], "float32"))
    >>> y = fluid.layers.assign(np.array([[1], [0]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.log_loss(x, y)])
    >>> print(out.round(3))
    [[0.223]
     [0.357]]
    """
    check_variable("log_loss", "input", input, (VarType.FP32,))
    check_variable("log_loss", "label", label, (VarType.FP32,))
    inputs = {"Predicted": [input], "Labels": [label]}
    return emit("log_loss", inputs, {"epsilon": epsilon}, slot="Loss", name=name)


def square_error_cost(input: Variable, label: Variable) -> Variable:
    """Return ``(input - label) ** 2``, element by element (operators ``elementwise_sub``, ``square``).

    Returns
    -------
    Variable
        In the shape and dtype of ``input``.

    >>> from paddlelike.input import data
    >>> square_error_cost(data("guess", [None, 1]), data("truth", [None, 1])).shape
    (-1, 1)
    """
    check_variable("square_error_cost", "input", input, WIDE_FLOATS)
    check_variable("square_error_cost", "label", label, WIDE_FLOATS)
    helper = LayerHelper("square_error_cost")
    difference = helper.create_variable_for_type_inference(input.dtype)
    inputs = {"X": [input], "Y": [label]}
    helper.append_op(type="elementwise_sub", inputs=inputs, outputs={"Out": [difference]})
    return emit("square", {"X": [difference]}, helper=helper, dtype=input.dtype)


def mse_loss(input: Variable, label: Variable) -> Variable:
    """Return the mean of ``(input - label) ** 2``, of shape [1].

    Operators ``elementwise_sub``, ``square`` and ``reduce_mean``.

    Returns
    -------
    Variable
        Of shape (1,), in the dtype of ``input``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1], [3]], "float32"))
    >>> y = fluid.layers.assign(np.array([[1], [1]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.mse_loss(x, y)])
    >>> print(out)
    [2.]
    """
    return reduce_mean(square_error_cost(input, label))


def huber_loss(input: Variable, label: Variable, delta: float) -> Variable:
    """Return ``r * r / 2`` for ``r = label - input``, or ``delta * (|r| - delta / 2)`` if ``|r| > delta``.

    Operator ``huber_loss``.

    Returns
    -------
    Variable
        In the shape and dtype of ``input``: the loss of each element.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1], [5]], "float32"))
    >>> y = fluid.layers.assign(np.array([[1.5], [1]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.huber_loss(x, y, delta=1.0)])
    >>> print(out)
    [[0.125]
     [3.5  ]]
    """
    check_variable("huber_loss", "input", input, WIDE_FLOATS)
    check_variable("huber_loss", "label", label, WIDE_FLOATS)
    outputs = {"Residual": input.dtype, "Out": input.dtype}
    return emit_all("huber_loss", {"X": input, "Y": label}, outputs, {"delta": delta})[1]


def smooth_l1(
    x: Variable,
    y: Variable,
    inside_weight: Variable | None = None,
    outside_weight: Variable | None = None,
    sigma: float | None = None,
) -> Variable:
    """Return the smooth L1 loss (N, 1): per row the sum of ``d * d * sigma ** 2 / 2`` for ``d = (x - y) *
    inside_weight``.

    Operator ``smooth_l1_loss``. Where ``|d| > 1 / sigma ** 2`` the terms are ``|d| - 1 / (2 * sigma ** 2)``;
    all are multiplied by ``outside_weight``.

    Returns
    -------
    Variable
        (N, 1), in the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` or ``y`` is not a variable of float32 or float64.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> y = fluid.layers.assign(np.array([[1, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.smooth_l1(x, y)])
    >>> print(out)
    [[1.5]]
    """
    check_variable("smooth_l1", "x", x, WIDE_FLOATS)
    check_variable("smooth_l1", "y", y, WIDE_FLOATS)
    inputs = {"X": x, "Y": y, "InsideWeight": inside_weight, "OutsideWeight": outside_weight}
    outputs = {"Diff": x.dtype, "Out": x.dtype}
    attrs = {"sigma": 1.0 if sigma is None else sigma}
    return emit_all("smooth_l1_loss", inputs, outputs, attrs)[1]
