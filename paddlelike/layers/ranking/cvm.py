"""continuous_value_model: features of the counts of shows and clicks.

Parameters
----------
input
    (N, D), whose first two columns count shows and clicks.
cvm
    The counts again, (N, 2): the gradient of these columns.
use_cvm
    Whether the result keeps the two columns, as logarithms.
"""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import FLOATS, check_variable
from paddlelike.layers.helper import LayerHelper

__all__ = ["continuous_value_model"]


def continuous_value_model(input: Variable, cvm: Variable, use_cvm: bool = True) -> Variable:
    """Return ``input`` with its counts of shows and clicks as logarithms, or without them.

    Operator ``cvm``. The first two columns of ``input`` (N, D) are the counts; with ``use_cvm`` they become
    log(show + 1) and log(click + 1) - log(show + 1), else the result is (N, D - 2). The gradient of the
    counts is ``cvm`` (N, 2), for parameter servers that count by it. Raises TypeError unless ``input`` is a
    float variable.

    >>> from paddlelike.input import data
    >>> continuous_value_model(data("x", [None, 11]), data("cvm", [None, 2]), use_cvm=False).shape
    (-1, 9)
    """
    check_variable("cvm", "input", input, FLOATS)
    helper = LayerHelper("cvm")
    out = helper.create_variable(dtype=input.dtype)
    helper.append_op(
        type="cvm", inputs={"X": [input], "CVM": [cvm]}, outputs={"Y": [out]}, attrs={"use_cvm": use_cvm}
    )
    return out
