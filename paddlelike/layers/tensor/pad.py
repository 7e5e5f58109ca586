"""Padding of tensors.

Parameters
----------
pad_value
    The number that fills.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.layers.checks import check_choice, check_variable
from paddlelike.layers.emit import emit

__all__ = ["pad", "pad2d", "pad_constant_like"]


def pad(x: Variable, paddings: Sequence[int], pad_value: float = 0.0, name: str | None = None) -> Variable:
    """Return ``x`` padded with ``pad_value`` by [before dim 0, after dim 0, before dim 1, ...] (``pad``).

    Raises TypeError unless ``x`` is a variable.

    ``paddings`` holds two counts a dim: before and behind.

    Parameters
    ----------
    x
        A variable of any shape.
    paddings
        Two counts per dim: before and after.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.pad(x, paddings=[0, 1, 1, 0], pad_value=9.0)])
    >>> print(out)
    [[9. 1. 2.]
     [9. 9. 9.]]
    """
    check_variable("pad", "x", x)
    if any(paddings) and not x.stop_gradient:
        warn_quirk("pad_gradient")
    return emit("pad", {"X": x}, {"paddings": paddings, "pad_value": float(pad_value)}, name=name)


def pad2d(
    input: Variable,
    paddings: Sequence[int] | Variable = [0, 0, 0, 0],  # noqa: B006  (Fluid's signature; never changed)
    mode: str = "constant",
    pad_value: float = 0.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Return images padded by [top, bottom, left, right], which may be an int variable (``pad2d``).

    ``mode``: ``"constant"`` fills with ``pad_value``, ``"reflect"`` mirrors without the edge, ``"edge"``
    repeats the edge. Raises TypeError unless ``input`` is a variable and GraphError for another ``mode``.

    ``paddings`` holds the counts above, below, left and right. The input has shape (N, C, H, W).

    Parameters
    ----------
    input
        Images (N, C, H, W), or (N, H, W, C) for NHWC.
    paddings
        The counts above, below, left and right: ints, or an int variable (4,).
    mode
        ``"constant"`` fills with ``pad_value``, ``"reflect"`` mirrors without the edge, ``"edge"`` repeats
        the edge.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 8])
    >>> fluid.layers.pad2d(x, paddings=[1, 1, 2, 2]).shape
    (-1, 3, 10, 12)
    """
    check_variable("pad2d", "input", input)
    check_choice("pad2d", "mode", mode, ("constant", "reflect", "edge"))
    inputs = {"X": input}
    attrs = {"mode": mode, "pad_value": pad_value, "data_format": data_format}
    if isinstance(paddings, Variable):
        inputs["Paddings"] = paddings
        return emit("pad2d", inputs, {**attrs, "paddings": []}, name=name)
    return emit("pad2d", inputs, {**attrs, "paddings": list(paddings)}, name=name)


def pad_constant_like(x: Variable, y: Variable, pad_value: float = 0.0, name: str | None = None) -> Variable:
    """Return ``y`` padded with ``pad_value`` after each dim to the shape of ``x`` (``pad_constant_like``).

    Raises TypeError unless ``x`` and ``y`` are variables.

    Parameters
    ----------
    x
        The variable whose shape the result gets.
    y
        The variable that is padded, at most as large in each dim.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[0, 0, 0], [0, 0, 0]], "float32"))
    >>> y = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.pad_constant_like(x, y)])
    >>> print(out)
    [[1. 2. 0.]
     [0. 0. 0.]]
    """
    check_variable("pad_constant_like", "x", x)
    check_variable("pad_constant_like", "y", y)
    if not y.stop_gradient:
        warn_quirk("pad_gradient")
    attrs = {"pad_value": float(pad_value)}
    return emit("pad_constant_like", {"X": x, "Y": y}, attrs, name=name)
