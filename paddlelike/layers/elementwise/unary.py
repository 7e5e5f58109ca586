"""Elementwise functions: absolute values, powers, logarithms, angles; the result has the shape and dtype of
the input.

Parameters
----------
x
    A variable of any shape. The result has the same shape and dtype.

Returns
-------
Variable
    In the shape, dtype and LoD of ``x``.

Raises
------
TypeError
    ``x`` is not a variable of float16, float32 or float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from paddlelike.core import Array, VarType
from paddlelike.framework import Variable
from paddlelike.layers.emit import FLOATS, NUMBERS, WIDE_FLOATS, check_variable, emit, name_dtypes
from paddlelike.layers.tensor.assign import assign

__all__ = [
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "cos",
    "erf",
    "exp",
    "floor",
    "log",
    "log1p",
    "pow",
    "reciprocal",
    "round",
    "rsqrt",
    "sign",
    "sin",
    "sqrt",
    "square",
]


class Unary(Protocol):
    """A layer with one input."""

    def __call__(self, x: Variable, name: str | None = None) -> Variable: ...


def make_unary(
    type: str, formula: str, example: tuple[str, str], dtypes: Sequence[VarType] = FLOATS
) -> Unary:
    """Return the layer for the operator ``type``; ``example`` holds numbers and the rounded result for
    them.
    """

    def layer(x: Variable, name: str | None = None) -> Variable:
        check_variable(type, "x", x, dtypes)
        return emit(type, {"X": x}, name=name)

    layer.__name__ = layer.__qualname__ = type
    what = formula if formula.startswith("the ") else f"``{formula}``"
    layer.__doc__ = f"""Return {what}, element by element (operator ``{type}``).

    Raises
    ------
    TypeError
        ``x`` is not a variable of {name_dtypes(dtypes)}.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([{example[0]}], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.{type}(x)])
    >>> print(out.round(3))
    [{example[1]}]
    """
    return layer


abs = make_unary("abs", "|x|", ("-2, 0, 1", "2. 0. 1."), NUMBERS)


acos = make_unary("acos", "the arc cosine of x", ("-1, 0, 1", "3.142 1.571 0.   "))


asin = make_unary("asin", "the arc sine of x", ("-1, 0, 1", "-1.571  0.     1.571"))


atan = make_unary("atan", "the arc tangent of x", ("-2, 0, 1", "-1.107  0.     0.785"))


ceil = make_unary("ceil", "the least integer >= x", ("-1.5, 0.5, 2", "-1.  1.  2."))


cos = make_unary("cos", "the cosine of x", ("-2, 0, 1", "-0.416  1.     0.54 "))


exp = make_unary("exp", "e ** x", ("-2, 0, 1", "0.135 1.    2.718"), NUMBERS)


floor = make_unary("floor", "the greatest integer <= x", ("-1.5, 0.5, 2", "-2.  0.  2."))


log = make_unary("log", "the natural logarithm of x", ("1, 2, 4", "0.    0.693 1.386"), WIDE_FLOATS)


reciprocal = make_unary("reciprocal", "1 / x", ("0.5, 1, 4", "2.   1.   0.25"))


round = make_unary("round", "the nearest integer, halves away from 0", ("-1.5, 0.4, 2.5", "-2.  0.  3."))


rsqrt = make_unary("rsqrt", "1 / sqrt(x)", ("0.25, 1, 4", "2.  1.  0.5"))


sin = make_unary("sin", "the sine of x", ("-2, 0, 1", "-0.909  0.     0.841"))


sqrt = make_unary("sqrt", "the square root of x", ("0.25, 1, 4", "0.5 1.  2. "))


square = make_unary("square", "x * x", ("-2, 0, 1", "4. 0. 1."), NUMBERS)


def emit_with_attrs(type: str, x: object, attrs: dict[str, Any], name: str | None = None) -> Variable:
    """Append the operator ``type`` with the attributes that are not None, and return its output."""
    check_variable(type, "x", x, FLOATS)
    given = {key: value for key, value in attrs.items() if value is not None}
    return emit(type, {"X": x}, given, name=name)


def erf(x: Variable) -> Variable:
    """Return ``2 / sqrt(pi) * integral of exp(-t * t) for t in 0 .. x`` (operator ``erf``).

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.erf(x)])
    >>> print(out.round(3))
    [-0.995  0.     0.843]
    """
    return emit_with_attrs("erf", x, {})


def log1p(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Return ``log(1 + x)`` (operator ``log1p``), written to ``out`` if that is given.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float16, float32 or float64.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.log1p(x)])
    >>> print(out.round(3))
    [0.    0.693]
    """
    check_variable("log1p", "x", x, FLOATS)
    return emit("log1p", {"X": x}, name=name, out=out)


def pow(x: Variable, factor: float | Variable = 1.0, name: str | None = None) -> Variable:
    """Return ``x ** factor``; the factor may be a variable of shape [1] (operator ``pow``).

    Parameters
    ----------
    factor
        The exponent: a number, or a variable of shape [1].

    Raises
    ------
    TypeError
        ``x`` is not a variable of float16, float32, float64, int32 or int64.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2, 3], "float32"))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.pow(x, factor=2.0)])
    [array([1., 4., 9.], dtype=float32)]
    """
    check_variable("pow", "x", x, NUMBERS)
    if isinstance(factor, Variable):
        factor.stop_gradient = True
        return emit("pow", {"X": x, "FactorTensor": factor}, name=name)
    return emit("pow", {"X": x}, {"factor": factor}, name=name)


def sign(x: Variable | Array) -> Variable:
    """Return the sign of each element: -1, 0 or 1 (operator ``sign``).

    Parameters
    ----------
    x
        A variable of any shape, or an array, which becomes a constant.

    Returns
    -------
    Variable
        In the shape and dtype of ``x``: -1, 0 or 1 for each element.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.sign(x)])
    >>> print(out)
    [-1.  0.  1.]
    """
    if isinstance(x, np.ndarray):
        x = assign(x)
    return emit_with_attrs("sign", x, {})
