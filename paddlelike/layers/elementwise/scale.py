"""Elementwise arithmetic of variables.

Layers that differ by their operator alone are rows of one table.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Protocol

from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.layers.checks import (
    FLOATS,
    NUMBERS,
    WIDE_FLOATS,
    check_variable,
    check_variables,
)
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.creation import assign, create_named_temporary
from paddlelike.ops.elementwise.binary import TURNED

__all__ = [
    "addcmul",
    "clamp",
    "clip",
    "clip_by_norm",
    "elementwise_add",
    "elementwise_div",
    "elementwise_floordiv",
    "elementwise_max",
    "elementwise_min",
    "elementwise_mod",
    "elementwise_mul",
    "elementwise_pow",
    "elementwise_sub",
    "increment",
    "scale",
    "sum",
    "sums",
]


class Elementwise(Protocol):
    """A layer of two inputs, one of which may have fewer dims."""

    def __call__(
        self,
        x: Variable,
        y: Variable,
        axis: int = -1,
        act: str | None = None,
        name: str | None = None,
    ) -> Variable: ...


def _make_elementwise(type: str, formula: str, example: str) -> Elementwise:
    """Return the layer that appends the operator ``type``; ``example`` is its result of (7, 8) and (2, 8)."""

    def layer(
        x: Variable,
        y: Variable,
        axis: int = -1,
        act: str | None = None,
        name: str | None = None,
    ) -> Variable:
        check_variable(type, "x", x, NUMBERS)
        check_variable(type, "y", y, NUMBERS)
        if type in TURNED and len(x.shape) < len(y.shape):
            warn_quirk("elementwise_order")
        return emit(type, {"X": x, "Y": y}, {"axis": axis, "use_mkldnn": False}, name=name, act=act)

    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = f"""Return ``act({formula})``, number by number (operator ``{type}``).

    The dims of ``y`` are those of ``x`` from dim ``axis`` on, or its last ones (-1); it is repeated
    over the others. The result has the shape of ``x``. Raises TypeError unless ``x`` and ``y`` are variables
    of supported dtypes, ShapeError when their dims do not fit.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[7, 8]], "float32"))
    >>> y = fluid.layers.assign(np.array([2, 8], "float32"))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.{type}(x, y)])
    [array({example}, dtype=float32)]
    """
    return layer


elementwise_add = _make_elementwise("elementwise_add", "x + y", "[[ 9., 16.]]")
elementwise_div = _make_elementwise("elementwise_div", "x / y", "[[3.5, 1. ]]")
elementwise_floordiv = _make_elementwise("elementwise_floordiv", "x // y", "[[3., 1.]]")
elementwise_max = _make_elementwise("elementwise_max", "max(x, y)", "[[7., 8.]]")
elementwise_min = _make_elementwise("elementwise_min", "min(x, y)", "[[2., 8.]]")
elementwise_mod = _make_elementwise("elementwise_mod", "x % y", "[[1., 0.]]")
elementwise_mul = _make_elementwise("elementwise_mul", "x * y", "[[14., 64.]]")
elementwise_pow = _make_elementwise("elementwise_pow", "x ** y", "[[4.9000000e+01, 1.6777216e+07]]")
elementwise_sub = _make_elementwise("elementwise_sub", "x - y", "[[5., 0.]]")


def scale(
    x: Variable,
    scale: float | Variable = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Return ``act(scale * x + bias)``, or ``act(scale * (x + bias))`` (operator ``scale``).

    The latter without ``bias_after_scale``. ``scale`` may be a variable of shape [1]. Raises TypeError
    unless ``x`` is a variable.

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


def sums(input: Variable | Sequence[Variable], out: Variable | None = None) -> Variable:
    """Return the sum of variables of one shape (operator ``sum``), written to ``out`` if that is given.

    Raises TypeError unless ``input`` is a variable.

    >>> import paddlelike as fluid
    >>> one, two = fluid.layers.ones([2], "float32"), fluid.layers.fill_constant([2], "float32", 2.0)
    >>> fluid.Executor().run(fetch_list=[fluid.layers.sums([one, two, two])])
    [array([5., 5.], dtype=float32)]
    """
    many = check_variables("sums", "input", input)
    return emit("sum", {"X": many}, {"use_mkldnn": False}, out=out)


def sum(x: Variable | Sequence[Variable]) -> Variable:
    """Return the sum of variables of one shape (operator ``sum``).

    Raises TypeError unless ``x`` is a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> y = fluid.layers.assign(np.array([3, 4], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.sum([x, y])])
    >>> print(out)
    [4. 6.]
    """
    return emit("sum", {"X": check_variables("sum", "x", x)}, {"use_mkldnn": False})


def addcmul(
    input: Variable,
    tensor1: Variable,
    tensor2: Variable,
    value: float = 1.0,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Return ``input + value * tensor1 * tensor2``, elementwise, written to ``out`` if that is given.

    The three have one shape, or shapes that are broadcast.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> y = fluid.layers.assign(np.array([3, 4], "float32"))
    >>> z = fluid.layers.assign(np.array([5, 6], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.addcmul(x, y, z, value=10.0)])
    >>> print(out)
    [151. 242.]
    """
    total = elementwise_add(input, elementwise_mul(tensor1, tensor2) * value)
    return total if out is None else assign(total, out)


def increment(x: Variable, value: float = 1.0, in_place: bool = True) -> Variable:
    """Return ``x + value`` for ``x`` of shape [1] (operator ``increment``).

    It is written to ``x`` itself, unless ``in_place`` is False. Raises TypeError unless ``x`` is a variable
    of a supported dtype.

    >>> import paddlelike as fluid
    >>> i = fluid.layers.fill_constant([1], "int64", 7)
    >>> fluid.Executor().run(fetch_list=[fluid.layers.increment(i, value=2)])
    [array([9])]
    """
    check_variable("increment", "x", x, NUMBERS)
    out = x if in_place else None
    return emit("increment", {"X": [x]}, {"step": float(value)}, out=out)


def clip(x: Variable, min: float, max: float, name: str | None = None) -> Variable:
    """Return ``x`` limited to ``min`` .. ``max`` (operator ``clip``); ``name`` is the name of the result.

    Raises TypeError unless ``x`` is a variable of a supported dtype.

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

    Zeros stay zeros, of which Fluid 1.8.5 makes NaN.

    Raises TypeError unless ``x`` is a variable of a supported dtype.

    The result has the shape of ``x``.

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
    """Return ``input`` limited to ``min`` .. ``max``; either may be a variable, or None for no bound.

    Operator ``clip``. Raises TypeError unless ``input`` is a variable of a supported dtype, GraphError when
    both are None.

    The result has the shape of ``input``.

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
