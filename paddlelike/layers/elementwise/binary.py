"""Elementwise arithmetic of two variables: elementwise_add, elementwise_mul, and so on.

Parameters
----------
x
    A variable of any shape.
y
    A variable whose dims equal the dims of ``x`` from dim ``axis`` on, or are 1. It is repeated over the
    other dims.
axis
    The dim of ``x`` at which the dims of ``y`` begin; -1 for its last dims.
"""

from __future__ import annotations

from typing import Protocol

from paddlelike.framework import Variable, warn_quirk
from paddlelike.layers.emit import NUMBERS, check_variable, emit
from paddlelike.layers.tensor.assign import assign
from paddlelike.ops.elementwise.binary import TURNED

__all__ = [
    "addcmul",
    "elementwise_add",
    "elementwise_div",
    "elementwise_floordiv",
    "elementwise_max",
    "elementwise_min",
    "elementwise_mod",
    "elementwise_mul",
    "elementwise_pow",
    "elementwise_sub",
]


class Elementwise(Protocol):
    """A layer with two inputs, where one may have fewer dims."""

    def __call__(
        self, x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None
    ) -> Variable: ...


def _make_elementwise(type: str, formula: str, example: str) -> Elementwise:
    """Return the layer for the operator ``type``; ``example`` is its result for (7, 8) and (2, 8)."""

    def layer(
        x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None
    ) -> Variable:
        check_variable(type, "x", x, NUMBERS)
        check_variable(type, "y", y, NUMBERS)
        if type in TURNED and len(x.shape) < len(y.shape):
            warn_quirk("elementwise_order")
        return emit(type, {"X": x, "Y": y}, {"axis": axis, "use_mkldnn": False}, name=name, act=act)

    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = f"""Return ``act({formula})``, element by element (operator ``{type}``).

    Returns
    -------
    Variable
        In the shape and dtype of ``x``, with its LoD; the shape of ``y`` if that has more dims.

    Raises
    ------
    TypeError
        ``x`` or ``y`` is not a variable of float16, float32, float64, int32 or int64.
    ShapeError
        The dims of ``x`` and ``y`` do not fit.

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


def addcmul(
    input: Variable,
    tensor1: Variable,
    tensor2: Variable,
    value: float = 1.0,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Return ``input + value * tensor1 * tensor2``, elementwise, written to ``out`` if that is given.

    Operators ``elementwise_mul``, ``scale`` and ``elementwise_add``. The three inputs have one shape, or
    shapes that can be broadcast.

    Parameters
    ----------
    input
        A variable of any shape.
    tensor1, tensor2
        Factors, in shapes that can be broadcast together.
    value
        The number by which the product is multiplied.

    Returns
    -------
    Variable
        In the shape and dtype of ``input``. It is ``out`` if that is given.

    Raises
    ------
    TypeError
        An input is not a variable of numbers.

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
