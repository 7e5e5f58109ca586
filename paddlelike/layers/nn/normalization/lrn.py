"""lrn: local response normalization.

Parameters
----------
input
    (N, C, H, W), or (N, H, W, C) for NHWC.
n
    How many neighboring channels are added.
k, alpha, beta
    A number of the formula.
"""

from __future__ import annotations

from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_choice, check_variable
from paddlelike.layers.emit import emit_all

__all__ = ["lrn"]


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

    Raises TypeError unless ``input`` is a variable of a supported dtype, GraphError unless ``input`` has 4
    dims.

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
