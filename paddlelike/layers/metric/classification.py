"""Metrics of predictions, computed by operators while the program runs."""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.initializer import Constant
from paddlelike.layers.checks import FLOATS, INTEGERS, WIDE_FLOATS, check_choice, check_variable
from paddlelike.layers.emit import emit_all
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.reduction.sort import topk

__all__ = ["accuracy", "auc", "mean_iou"]


def accuracy(
    input: Variable,
    label: Variable,
    k: int = 1,
    correct: Variable | None = None,
    total: Variable | None = None,
) -> Variable:
    """Return the fraction of rows (N, D) whose label (N, 1) is among the ``k`` greatest: float32 [1].

    Operators ``top_k`` and ``accuracy``; counts are written to ``correct`` and ``total`` (int32 [1]).
    Raises TypeError unless ``input`` and ``label`` are variables of supported dtypes.

    Parameters
    ----------
    input
        Scores (N, D).
    label
        The class, int (N, 1).
    k
        Among how many greatest scores the label counts as found.
    correct, total
        Variables, int32 [1], that the counts are written to; None for new ones.

    >>> from paddlelike.input import data
    >>> accuracy(data("digits", [None, 10]), data("label", [None, 1], "int64")).shape
    (1,)
    """
    check_variable("accuracy", "input", input, FLOATS)
    check_variable("accuracy", "label", label, INTEGERS)
    helper = LayerHelper("accuracy")
    values, indices = topk(input, k=k)
    out = helper.create_variable_for_type_inference("float32")
    counts = {"Correct": correct, "Total": total}
    outputs = {
        slot: helper.create_variable_for_type_inference("int32") if count is None else count
        for slot, count in counts.items()
    }
    helper.append_op(
        type="accuracy",
        inputs={"Out": [values], "Indices": [indices], "Label": [label]},
        outputs={"Accuracy": [out], **outputs},
    )
    return out


def auc(
    input: Variable,
    label: Variable,
    curve: str = "ROC",
    num_thresholds: int = 2**12 - 1,
    topk: int = 1,
    slide_steps: int = 1,
) -> tuple[Variable, Variable, list[Variable]]:
    """Return the area under the ROC (or PR) curve over all data, over the last batches, and the counts.

    ``input`` (N, 2) holds probabilities, the second of class 1; ``label`` is int (N, 1). Areas are float64
    [1], the second over ``slide_steps`` batches. The counts, one per threshold, are persistables that start
    at 0 (operator ``auc``). Raises TypeError unless ``input`` and ``label`` are variables of supported
    dtypes and GraphError for another ``curve``.

    The thresholds cut [0, 1] into ``num_thresholds`` parts; ``topk`` is not
    read, as in Fluid.

    Parameters
    ----------
    input
        Probabilities (N, 2), the second of class 1.
    label
        0 or 1, int (N, 1).
    curve
        ``"ROC"`` or ``"PR"``.
    num_thresholds
        Into how many parts the thresholds cut [0, 1].
    topk
        Not read, as in Fluid.
    slide_steps
        Over how many batches the second area is taken; 0 for all.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 2])
    >>> y = fluid.data("y", [None, 1], "int64")
    >>> [one.shape for one in fluid.layers.auc(x, y)[:2]]
    [(1,), (1,)]
    """
    check_variable("auc", "input", input, WIDE_FLOATS)
    check_variable("auc", "label", label, INTEGERS)
    check_choice("auc", "curve", curve, ("ROC", "PR"))
    if curve == "PR":
        warn_quirk("auc_curve")
    helper = LayerHelper("auc")
    area = helper.create_variable_for_type_inference("float64")
    batch_area = helper.create_variable_for_type_inference("float64")
    batch_shape = [(1 + slide_steps) * (num_thresholds + 1) + 1]
    counts = [
        helper.create_global_variable(persistable=True, dtype="int64", shape=shape)
        for shape in (batch_shape, batch_shape, [1, num_thresholds + 1], [1, num_thresholds + 1])
    ]
    for count in counts:
        count.stop_gradient = False
        helper.set_variable_initializer(count, Constant(0.0, force_cpu=False))
    halves = ((batch_area, counts[:2], slide_steps), (area, counts[2:], 0))
    for out, (positive, negative), steps in halves:
        helper.append_op(
            type="auc",
            inputs={"Predict": [input], "Label": [label], "StatPos": [positive], "StatNeg": [negative]},
            outputs={"AUC": [out], "StatPosOut": [positive], "StatNegOut": [negative]},
            attrs={"curve": curve, "num_thresholds": num_thresholds, "slide_steps": steps},
        )
    return area, batch_area, counts


def mean_iou(input: Variable, label: Variable, num_classes: int) -> tuple[Variable, ...]:
    """Return the mean over classes of intersection over union, and the wrong and correct counts per class.

    Operator ``mean_iou``. Raises TypeError unless ``input`` and ``label`` are variables of supported
    dtypes.

    ``num_classes`` is the count C of classes. The mean has shape (1,), the counts of wrong and
    correct ones (C,).

    Parameters
    ----------
    input, label
        Classes, int32 or int64, of one shape.
    num_classes
        The count of classes.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 1], "int64")
    >>> y = fluid.data("y", [None, 1], "int64")
    >>> [one.shape for one in fluid.layers.mean_iou(x, y, num_classes=3)]
    [(1,), (3,), (3,)]
    """
    check_variable("mean_iou", "input", input, INTEGERS)
    check_variable("mean_iou", "label", label, INTEGERS)
    outputs = {"OutMeanIou": "float32", "OutWrong": "int32", "OutCorrect": "int32"}
    inputs = {"Predictions": input, "Labels": label}
    return emit_all("mean_iou", inputs, outputs, {"num_classes": num_classes})
