"""Elementwise comparison and logic of variables, and predicates of whole tensors.

Layers that differ only in their operator are rows of one table.

Parameters
----------
x
    A variable of any shape.
y
    A variable in the shape of ``x``, or one that can be broadcast to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from paddlelike.core import VarType
from paddlelike.framework import Variable
from paddlelike.layers.emit import BOOL, NUMBERS, WIDE_FLOATS, check_variable, emit, name_dtypes

__all__ = [
    "allclose",
    "elementwise_equal",
    "equal",
    "greater_equal",
    "greater_than",
    "has_inf",
    "has_nan",
    "isfinite",
    "less_equal",
    "less_than",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
]


class Comparison(Protocol):
    """A layer that compares two inputs. It writes to ``cond`` if that is given."""

    def __call__(self, x: Variable, y: Variable, cond: Variable | None = None) -> Variable: ...


class Connective(Protocol):
    """A layer with two bool inputs. It writes to ``out`` if that is given."""

    def __call__(
        self, x: Variable, y: Variable, out: Variable | None = None, name: str | None = None
    ) -> Variable: ...


def _make_comparison(
    type: str, formula: str, example: str, dtypes: Sequence[VarType] | None = NUMBERS
) -> Comparison:
    """Return the layer for the operator ``type``; ``example`` is its result for 1, 2, 3 and 3, 2, 1."""

    def layer(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
        return _compare(type, x, y, cond, {}, dtypes)

    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = f"""Return ``{formula}``, element by element, as bool (operator ``{type}``).

    ``y`` is broadcast to the shape of ``x``.

    Returns
    -------
    Variable
        Bool, in the shape of ``x``. It is ``cond`` if that is given.

    Raises
    ------
    TypeError
        ``x`` or ``y`` is not a variable{(dtypes and f" of {name_dtypes(dtypes)}") or ""}.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2, 3], "float32"))
    >>> y = fluid.layers.assign(np.array([3, 2, 1], "float32"))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.{type}(x, y)])
    [array([{example}])]
    """
    return layer


def _compare(
    type: str,
    x: Variable,
    y: Variable,
    cond: Variable | None,
    attrs: dict[str, Any],
    dtypes: Sequence[VarType] | None = NUMBERS,
) -> Variable:
    check_variable(type, "x", x, dtypes)
    check_variable(type, "y", y, dtypes)
    inputs = {"X": x, "Y": y}
    return emit(type, inputs, attrs, dtype=VarType.BOOL, out=cond, constant=True)


equal = _make_comparison("equal", "x == y", "False,  True, False", None)


greater_equal = _make_comparison("greater_equal", "x >= y", "False,  True,  True")


greater_than = _make_comparison("greater_than", "x > y", "False, False,  True")


less_equal = _make_comparison("less_equal", "x <= y", " True,  True, False")


not_equal = _make_comparison("not_equal", "x != y", " True, False,  True", None)


def less_than(
    x: Variable, y: Variable, force_cpu: bool | None = None, cond: Variable | None = None
) -> Variable:
    """Return ``x < y``, element by element, as bool (operator ``less_than``).

    The result is written to ``cond`` if that is given; ``force_cpu`` has no effect.

    Returns
    -------
    Variable
        Bool, in the shape of ``x``. It is ``cond`` if that is given.

    Raises
    ------
    TypeError
        ``x`` or ``y`` is not a variable of float16, float32, float64, int32 or int64.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2, 3], "float32"))
    >>> y = fluid.layers.assign(np.array([3, 2, 1], "float32"))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.less_than(x, y)])
    [array([ True, False, False])]
    """
    return _compare("less_than", x, y, cond, {} if force_cpu is None else {"force_cpu": force_cpu})


def elementwise_equal(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Return ``x == y``, element by element, as bool (operator ``equal``).

    Returns
    -------
    Variable
        Bool, in the shape of ``x``.

    Raises
    ------
    TypeError
        ``x`` or ``y`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> y = fluid.layers.assign(np.array([1, 3], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.elementwise_equal(x, y)])
    >>> print(out)
    [ True False]
    """
    check_variable("elementwise_equal", "x", x)
    check_variable("elementwise_equal", "y", y)
    return emit(
        "equal",
        {"X": x, "Y": y},
        {"force_cpu": False},
        layer="elementwise_equal",
        name=name,
        dtype=VarType.BOOL,
        constant=True,
    )


def _make_connective(type: str, formula: str, example: str) -> Connective:
    """Return the layer for the operator ``type``; ``example`` is its result for TTF and TFF."""

    def layer(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
        check_variable(type, "x", x, BOOL)
        check_variable(type, "y", y, BOOL)
        return emit(type, {"X": x, "Y": y}, name=name, out=out)

    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = f"""Return ``{formula}`` of bools, element by element (operator ``{type}``).

    Returns
    -------
    Variable
        Bool, in the shape of ``x``. It is ``out`` if that is given.

    Raises
    ------
    TypeError
        ``x`` or ``y`` is not a variable of bool.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([True, True, False]))
    >>> y = fluid.layers.assign(np.array([True, False, False]))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.{type}(x, y)])
    [array([{example}])]
    """
    return layer


logical_and = _make_connective("logical_and", "x and y", " True, False, False")


logical_or = _make_connective("logical_or", "x or y", " True,  True, False")


logical_xor = _make_connective("logical_xor", "x != y", "False,  True, False")


def logical_not(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Return ``not x`` of bools, element by element (operator ``logical_not``).

    Returns
    -------
    Variable
        Bool, in the shape of ``x``. It is ``out`` if that is given.

    Raises
    ------
    TypeError
        ``x`` is not a variable of bool.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([0, 1], "bool"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.logical_not(x)])
    >>> print(out)
    [ True False]
    """
    check_variable("logical_not", "x", x, BOOL)
    return emit("logical_not", {"X": x}, name=name, out=out)


def has_inf(x: Variable) -> Variable:
    """Return whether any element is infinite, of shape [1] (operator ``isinf``).

    Returns
    -------
    Variable
        Of shape (1,): whether such an element exists. A run gives bool; the variable is declared with the
        dtype of ``x``, as in Fluid.

    Raises
    ------
    TypeError
        ``x`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.has_inf(x)])
    >>> print(out)
    [False]
    """
    check_variable("has_inf", "x", x)
    return _declare_like(x, emit("isinf", {"X": x}))


def has_nan(x: Variable) -> Variable:
    """Return whether any element is NaN, of shape [1] (operator ``isnan``).

    Returns
    -------
    Variable
        Of shape (1,): whether such an element exists. A run gives bool; the variable is declared with the
        dtype of ``x``, as in Fluid.

    Raises
    ------
    TypeError
        ``x`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.has_nan(x)])
    >>> print(out)
    [False]
    """
    check_variable("has_nan", "x", x)
    return _declare_like(x, emit("isnan", {"X": x}))


def _declare_like(x: Variable, out: Variable) -> Variable:
    """Return ``out``, declared with the dtype of ``x`` as in Fluid; its value is a bool."""
    out.dtype = x.dtype
    return out


def isfinite(x: Variable) -> Variable:
    """Return whether all elements are finite: bool of shape [1] (operator ``isfinite``).

    Returns
    -------
    Variable
        Bool of shape (1,): whether all elements are finite.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float16, float32, float64, int32 or int64.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.isfinite(x)])
    >>> print(out)
    [ True]
    """
    check_variable("isfinite", "x", x, NUMBERS)
    return emit("isfinite", {"X": x}, dtype=VarType.BOOL)


def allclose(
    input: Variable,
    other: Variable,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
    name: str | None = None,
) -> Variable:
    """Return whether ``|input - other| <= atol + rtol * |other|`` everywhere, as bool [1] (``allclose``).

    Parameters
    ----------
    input, other
        Variables of one shape.
    rtol
        The relative tolerance.
    atol
        The absolute tolerance.
    equal_nan
        Whether two NaNs count as equal.

    Returns
    -------
    Variable
        Bool of shape (1,): whether all pairs are close.

    Raises
    ------
    TypeError
        ``input`` or ``other`` is not a variable of float32 or float64.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> y = fluid.layers.assign(np.array([1, 2.5], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.allclose(x, y)])
    >>> print(out)
    [False]
    """
    check_variable("allclose", "input", input, WIDE_FLOATS)
    check_variable("allclose", "other", other, WIDE_FLOATS)
    attrs = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan}
    inputs = {"Input": input, "Other": other}
    return emit("allclose", inputs, attrs, name=name, dtype=VarType.BOOL)
