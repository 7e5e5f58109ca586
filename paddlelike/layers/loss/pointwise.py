"""Losses of each element: sigmoid cross entropy, log loss, Kullback-Leibler divergence, and others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.layers.checks import FLOATS, WIDE_FLOATS, check_choice, check_variable
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.reduction.reduce import reduce_mean, reduce_sum
from paddlelike.layers.tensor.one_hot import one_hot

if TYPE_CHECKING:
    from paddlelike.core.typing import DtypeLike

__all__ = [
    "dice_loss",
    "kldiv_loss",
    "label_smooth",
    "log_loss",
    "sigmoid_cross_entropy_with_logits",
    "teacher_student_sigmoid_loss",
]


def sigmoid_cross_entropy_with_logits(
    x: Variable, label: Variable, ignore_index: int = -100, name: str | None = None, normalize: bool = False
) -> Variable:
    """Return ``max(x, 0) - x * label + log(1 + exp(-|x|))``, element by element.

    Operator ``sigmoid_cross_entropy_with_logits``. Elements labelled ``ignore_index`` cost 0; ``normalize``
    divides by the count of the others. Raises TypeError unless ``x`` and ``label`` are variables of
    supported dtypes.

    Parameters
    ----------
    x
        Unnormalized scores of any shape.
    label
        0 to 1, in the shape of ``x``.
    ignore_index
        A label whose elements cost 0.
    normalize
        Whether the loss is divided by the count of the other elements.

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

    ``reduction`` is ``"mean"``, ``"sum"``, ``"batchmean"`` or ``"none"``. ``x`` holds logarithms. Raises
    TypeError unless ``x`` and ``target`` are variables of supported dtypes and GraphError for another
    ``reduction``.

    Parameters
    ----------
    x
        Logarithms of probabilities.
    target
        Probabilities, in the shape of ``x``.
    reduction
        ``"mean"``, ``"sum"``, ``"batchmean"`` or ``"none"``.

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
    """Return ``(1 - epsilon) * label + epsilon * prior``, the prior uniform by default.

    Operator ``label_smooth``. Raises TypeError unless ``label`` is a variable of a supported dtype,
    GraphError unless ``epsilon`` is in 0 .. 1.

    ``prior_dist`` is a distribution over the classes, (1, C); without it all are alike. As in Fluid,
    ``label`` gets no gradient from then on: see ``fluid.quirks()``.

    Parameters
    ----------
    label
        Probabilities (N, C), usually of :func:`one_hot`.
    prior_dist
        The distribution that is mixed in, (1, C); None for a uniform one.
    epsilon
        The share of the prior, 0 to 1.

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
    """Return the sigmoid cross entropy (N, 1) against clicks and, if labels hold them, a teacher's scores.

    Operator ``teacher_student_sigmoid_loss``. A label below -1 means no click and no score, below 0 a click
    and no score, below 1 no click and a score, else a click and the score ``label - 1``. Raises TypeError
    unless ``input`` and ``label`` are variables of supported dtypes.

    The input is clipped between ``soft_max_lower_bound`` and ``soft_max_up_bound``.

    Parameters
    ----------
    input
        Unnormalized scores (N, 1).
    label
        Clicks and scores (N, 1), in the code above.
    soft_max_up_bound, soft_max_lower_bound
        The bounds to which the input is clipped.

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
    """Return the mean of ``1 - 2 * overlap / (sum(input) + sum(label) + epsilon)`` over the batch, [1].

    ``input`` holds probabilities (N, ..., D), ``label`` integers (N, ..., 1). Raises TypeError unless
    ``input`` and ``label`` are variables.

    Parameters
    ----------
    input
        Probabilities (N, ..., D).
    label
        Classes, int (N, ..., 1).
    epsilon
        Added to the sums, against division by zero.

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
    """Return ``-label * log(input + epsilon) - (1 - label) * log(1 - input + epsilon)``, all (N, 1).

    Operator ``log_loss``. Raises TypeError unless ``input`` and ``label`` are variables of supported
    dtypes.

    Parameters
    ----------
    input
        Probabilities (N, 1).
    label
        0 or 1, float (N, 1).
    epsilon
        Added before the logarithm.

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
