"""Softmax and other functions along one axis.

Parameters
----------
input
    A variable of any shape.
axis
    The dim along which the function is taken. Negative ones count from the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddlelike.errors import GraphError
from paddlelike.framework import Variable
from paddlelike.layers.emit import FLOATS, WIDE_FLOATS, check_choice, check_variable, emit, is_whole
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike

__all__ = ["log_softmax", "maxout", "softmax"]


def log_softmax(
    input: Variable, axis: int | None = None, dtype: DtypeLike | None = None, name: str | None = None
) -> Variable:
    """Return ``log(softmax(input))`` along ``axis``, by default the last (operators ``softmax``, ``log``).

    With ``dtype`` the input is converted first.

    Returns
    -------
    Variable
        In the shape of ``input``, of ``dtype`` if that is given, else in the dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32 or float64.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.log_softmax(x)])
    >>> print(out.round(3))
    [[-1.313 -0.313]]
    """
    check_variable("log_softmax", "input", input, WIDE_FLOATS)
    helper = LayerHelper("log_softmax", name=name)
    kind = input.dtype if dtype is None else dtype

    def step(type: str, x: Variable, attrs: dict[str, Any]) -> Variable:
        return emit(type, {"X": x}, attrs, helper=helper, dtype=kind)

    if dtype is not None:
        out = helper.create_variable_for_type_inference(dtype)
        attrs = {"in_dtype": int(input.dtype), "out_dtype": int(out.dtype)}
        helper.append_op(type="cast", inputs={"X": input}, outputs={"Out": out}, attrs=attrs)
        input = out
    attrs = {"axis": -1 if axis is None else axis, "use_cudnn": False}
    return step("log", step("softmax", input, attrs), {})


def maxout(x: Variable, groups: int, name: str | None = None, axis: int = 1) -> Variable:
    """Return the maximum of every group of ``groups`` channels along ``axis`` (operator ``maxout``).

    (N, C, H, W) gives (N, C / groups, H, W); ``axis`` is 1, or -1 or 3 for channels last.

    Parameters
    ----------
    x
        (N, C, H, W), or (N, H, W, C).
    groups
        The number of channels that are compared at a time.
    axis
        The dim of the channels: 1, or -1 or 3.

    Returns
    -------
    Variable
        (N, C / groups, H, W), in the dtype of ``x``; with channels last (N, H, W, C / groups).

    Raises
    ------
    TypeError
        ``x`` is not a variable of float32 or float64.
    GraphError
        ``axis`` is not 1, -1 or 3.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4, 8, 8])
    >>> fluid.layers.maxout(x, groups=2).shape
    (-1, 2, 8, 8)
    """
    check_variable("maxout", "x", x, WIDE_FLOATS)
    check_choice("maxout", "axis", axis, (1, -1, 3))
    attrs = {"groups": groups, "axis": 3 if axis == -1 else axis}
    return emit("maxout", {"X": x}, attrs, name=name)


def softmax(input: Variable, use_cudnn: bool = False, name: str | None = None, axis: int = -1) -> Variable:
    """Return ``exp(x) / sum(exp(x))`` along ``axis`` (operator ``softmax``); ``use_cudnn`` is ignored.

    Returns
    -------
    Variable
        In the shape and dtype of ``input``: along ``axis`` the sums are 1.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float16, float32 or float64.

    >>> from paddlelike.input import data
    >>> softmax(data("scores", [None, 10])).shape
    (-1, 10)
    """
    check_variable("softmax", "input", input, FLOATS)
    if not is_whole(axis) or not -len(input.shape) <= axis < max(len(input.shape), 1):
        raise GraphError(
            f"layer 'softmax': axis is {axis!r} for input {input.name!r} of shape {list(input.shape)}, "
            f"expected {-len(input.shape)} .. {len(input.shape) - 1}"
        )
    return emit("softmax", {"X": input}, {"axis": axis, "use_cudnn": use_cudnn}, name=name)
