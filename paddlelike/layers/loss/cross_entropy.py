"""Cross entropy of probabilities, and of logits."""

from __future__ import annotations

from typing import Any, Literal, overload

from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.layers.checks import FLOATS, check_variable
from paddlelike.layers.emit import emit, emit_all

__all__ = ["cross_entropy", "softmax_with_cross_entropy"]


def cross_entropy(
    input: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100
) -> Variable:
    """Return ``-log(input[label])`` of probabilities (..., D), per row: (..., 1).

    Operator ``cross_entropy2``, or ``cross_entropy`` with ``soft_label``: ``-sum(label * log(input))``.

    Parameters
    ----------
    input
        Probabilities (..., D), for example of :func:`softmax`.
    label
        The index of the class, int64 (..., 1). With ``soft_label`` probabilities (..., D).
    soft_label
        Whether labels are probabilities.
    ignore_index
        A label whose rows cost 0.

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
    inputs = {"X": input, "Label": label}
    attrs: dict[str, Any] = {"ignore_index": ignore_index}
    if soft_label:
        return emit("cross_entropy", inputs, {"soft_label": True, **attrs}, slot="Y")
    outputs = dict.fromkeys(("Y", "XShape", "MatchX"), input.dtype)
    return emit_all("cross_entropy2", inputs, outputs, attrs)[0]


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
        Numbers of any size, (..., D) for the last ``axis``.
    label
        The index of the class, int64, with 1 in place of dim ``axis``. With ``soft_label`` probabilities, in
        the shape of ``logits``.
    soft_label
        Whether labels are probabilities.
    ignore_index
        A label whose rows cost 0; their gradient is a quirk, see ``fluid.quirks()``.
    numeric_stable_mode
        Recorded in the operator, which is always stable.
    return_softmax
        Whether to return the softmax as well: ``(loss, softmax)``.
    axis
        The dim of the classes.

    Returns
    -------
    The loss of each row: the shape of ``logits`` with 1 in place of dim ``axis``.

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
