"""sigmoid_focal_loss: a cross entropy that weighs easy examples less.

Parameters
----------
x
    Unnormalized scores (N, C).
label
    int32 (N, 1): 0 for background, else the class from 1.
fg_num
    The count of examples that are not background, int32 (1,).
gamma
    How much less easy examples weigh.
alpha
    The weight of the class; the background weighs ``1 - alpha``.
"""

from __future__ import annotations

from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.emit import emit

__all__ = ["sigmoid_focal_loss"]


def sigmoid_focal_loss(
    x: Variable, label: Variable, fg_num: Variable, gamma: float = 2.0, alpha: float = 0.25
) -> Variable:
    """Return the sigmoid cross entropy of (N, C), easy examples weighted less (``sigmoid_focal_loss``).

    ``label`` is int32 (N, 1), 0 for background; the result is divided by ``fg_num``, int32 (1,). Lin et al.
    2017. Raises TypeError unless ``x``, ``label`` and ``fg_num`` are variables of supported dtypes.

    ``gamma`` weakens what is certain, ``alpha`` weighs the classes against the background.

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
