"""Scaling, clipping, sums, and the conversion of dtypes.

Parameters
----------
x, input
    A variable of any shape.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from paddlelike.core import VarType, convert_dtype
from paddlelike.errors import GraphError
from paddlelike.framework import Variable, warn_quirk
from paddlelike.layers.emit import FLOATS, NUMBERS, WIDE_FLOATS, check_variable, emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.assign import create_named_temporary

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike

__all__ = ["cast", "clamp", "clip", "clip_by_norm", "increment", "scale"]


def scale(
    x: Variable,
    scale: float | Variable = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Return ``act(scale * x + bias)``, or ``act(scale * (x + bias))`` (operator ``scale``).

    The second formula is used if ``bias_after_scale`` is False.

    Parameters
    ----------
    scale
        A number, or a variable of shape [1].
    bias
        The number that is added.
    bias_after_scale
        Whether ``bias`` is added after the multiplication.

    Returns
    -------
    Variable
        In the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> first = fluid.layers.scale(x, scale=10.0, bias=0.5)
    >>> second = fluid.layers.scale(x, scale=10.0, bias=0.5, bias_after_scale=False)
    >>> fluid.Executor().run(fetch_list=[first, second])
    [array([10.5, 20.5], dtype=float32), array([15., 25.], dtype=float32)]
    """
    check_variable("scale", "x", x)
    inputs = {"X": x}
    attrs: dict[str, Any] = {"bias": float(bias), "bias_after_scale": bias_after_scale}
    if isinstance(scale, Variable):
        inputs["ScaleTensor"] = scale
    else:
        attrs["scale"] = float(scale)
    return emit("scale", inputs, attrs, name=name, act=act)


def increment(x: Variable, value: float = 1.0, in_place: bool = True) -> Variable:
    """Return ``x + value`` for ``x`` of shape [1] (operator ``increment``).

    It is written to ``x`` itself, unless ``in_place`` is False.

    Parameters
    ----------
    x
        A variable of shape [1].
    value
        The number that is added.
    in_place
        Whether the result is written to ``x``.

    Returns
    -------
    Variable
        ``x`` itself, of shape (1,); a new variable of the same dtype if ``in_place`` is False.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float16, float32, float64, int32 or int64.

    >>> import paddlelike as fluid
    >>> i = fluid.layers.fill_constant([1], "int64", 7)
    >>> fluid.Executor().run(fetch_list=[fluid.layers.increment(i, value=2)])
    [array([9])]
    """
    check_variable("increment", "x", x, NUMBERS)
    out = x if in_place else None
    return emit("increment", {"X": [x]}, {"step": float(value)}, out=out)


def clip(x: Variable, min: float, max: float, name: str | None = None) -> Variable:
    """Return ``x`` limited to the range from ``min`` to ``max`` (operator ``clip``).

    Parameters
    ----------
    min, max
        The lower bound (``min``) and the upper bound (``max``), two numbers.

    Returns
    -------
    Variable
        In the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float16, float32 or float64.

    >>> from paddlelike.input import data
    >>> clip(data("x", [None, 4]), min=-1.0, max=1.0, name="bounded").name
    'bounded'
    """
    check_variable("clip", "x", x, FLOATS)
    helper = LayerHelper("clip", name=name)
    out = create_named_temporary(helper, name, dtype=x.dtype)
    attrs = {"min": min, "max": max}
    helper.append_op(type="clip", inputs={"X": x}, outputs={"Out": out}, attrs=attrs)
    return out


def clip_by_norm(x: Variable, max_norm: float, name: str | None = None) -> Variable:
    """Return ``x``, scaled down so that its L2 norm is at most ``max_norm`` (operator ``clip_by_norm``).

    Zeros stay zeros, where Fluid 1.8.5 gives NaN.

    Parameters
    ----------
    max_norm
        A number, the largest norm.

    Returns
    -------
    Variable
        In the shape and dtype of ``x``: ``x * max_norm / max(max_norm, norm)``.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float32.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([3, 4], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.clip_by_norm(x, max_norm=1.0)])
    >>> print(out)
    [0.6 0.8]
    """
    check_variable("clip_by_norm", "x", x, (VarType.FP32,))
    helper = LayerHelper("clip_by_norm", name=name)
    out = create_named_temporary(helper, name, dtype=x.dtype)
    attrs = {"max_norm": max_norm}
    helper.append_op(type="clip_by_norm", inputs={"X": x}, outputs={"Out": out}, attrs=attrs)
    return out


def clamp(
    input: Variable,
    min: float | Variable | None = None,
    max: float | Variable | None = None,
    output: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Return ``input`` limited to the range from ``min`` to ``max``.

    Operator ``clip``.

    Parameters
    ----------
    min, max
        A number, or a variable of shape [1]; None for no bound.

    Returns
    -------
    Variable
        In the shape and dtype of ``input``. It is ``output`` if that is given.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32, float64 or int32.
    GraphError
        ``min`` and ``max`` are both None.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-1, 0.5, 3], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.clamp(x, min=0.0, max=1.0)])
    >>> print(out)
    [0.  0.5 1. ]
    """
    check_variable("clamp", "input", input, (*WIDE_FLOATS, VarType.INT32))
    if min is None and max is None:
        raise GraphError("layer 'clamp': min and max are both None; expected at least one bound")
    inputs = {"X": input}
    attrs = {"min": float("-inf"), "max": float("inf")}
    if min is None and warn_quirk("clamp_lower"):
        attrs["min"] = sys.float_info.min  # 0 in float32
    for slot, bound in (("Min", min), ("Max", max)):
        if isinstance(bound, Variable):
            inputs[slot] = bound
        elif bound is not None:
            attrs[slot.lower()] = bound
    return emit("clip", inputs, attrs, layer="clamp", name=name, out=output)


def cast(x: Variable, dtype: DtypeLike) -> Variable:
    """Return ``x`` converted to another element type ``dtype`` (operator ``cast``).

    Returns
    -------
    Variable
        In the shape of ``x``, its elements of ``dtype``.

    Raises
    ------
    TypeError
        ``x`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([0.5, 2.75], "float32"))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.cast(x, "int64")])
    [array([0, 2])]
    """
    check_variable("cast", "x", x)
    kind = convert_dtype(dtype)
    attrs = {"in_dtype": int(x.dtype), "out_dtype": int(kind)}
    return emit("cast", {"X": x}, attrs, dtype=kind)
