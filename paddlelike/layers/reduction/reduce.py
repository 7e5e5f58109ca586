"""Reductions along dims.

Parameters
----------
input, x
    A variable of any shape.
dim
    The dim or dims that are reduced, negative ones from the end; None for all.
keep_dim, keepdim
    Whether the reduced dims stay, with length 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import BOOL, FLOATS, NUMBERS, WIDE_FLOATS, check_variable
from paddlelike.layers.elementwise.unary import exp, log
from paddlelike.layers.emit import emit
from paddlelike.layers.tensor.assign import assign

__all__ = [
    "logsumexp",
    "mean",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
]


_FLOATS = 'np.array([[1, 2], [3, 7]], "float32")'


_BOOLS = "np.array([[True, False], [True, True]])"


class Reduction(Protocol):
    """A layer that works along some dims."""

    def __call__(
        self,
        input: Variable,
        dim: int | Sequence[int] | None = None,
        keep_dim: bool = False,
        name: str | None = None,
    ) -> Variable: ...


def _make_reduction(
    type: str, what: str, example: tuple[str, str], dtypes: Sequence[VarType] = NUMBERS
) -> Reduction:
    """Return the layer that appends the operator ``type``; ``example``: an array, its result along dim 1."""

    def layer(
        input: Variable,
        dim: int | Sequence[int] | None = None,
        keep_dim: bool = False,
        name: str | None = None,
    ) -> Variable:
        check_variable(type, "input", input, dtypes)
        dims = [] if dim is None else [dim] if isinstance(dim, int) else list(dim)
        attrs = {"dim": dims or [0], "keep_dim": keep_dim, "reduce_all": not dims}
        return emit(type, {"X": input}, attrs, name=name)

    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = f"""Return the {what} along ``dim``, an int or several; None: of all.

    Operator ``{type}``. Those dims of ``input`` are left out, or with ``keep_dim`` kept with length 1; over
    all dims the result has shape [1]. Raises TypeError unless ``input`` is a variable of a supported dtype.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign({example[0]})
    >>> fluid.Executor().run(fetch_list=[fluid.layers.{type}(x, dim=1)])
    [array({example[1]})]
    """
    return layer


reduce_all = _make_reduction("reduce_all", "logical and", (_BOOLS, "[False,  True]"), BOOL)


reduce_any = _make_reduction("reduce_any", "logical or", (_BOOLS, "[ True,  True]"), BOOL)


reduce_max = _make_reduction("reduce_max", "greatest number", (_FLOATS, "[2., 7.], dtype=float32"))


reduce_mean = _make_reduction("reduce_mean", "mean", (_FLOATS, "[1.5, 5. ], dtype=float32"))


reduce_min = _make_reduction("reduce_min", "least number", (_FLOATS, "[1., 3.], dtype=float32"))


reduce_prod = _make_reduction("reduce_prod", "product", (_FLOATS, "[ 2., 21.], dtype=float32"))


reduce_sum = _make_reduction("reduce_sum", "sum", (_FLOATS, "[ 3., 10.], dtype=float32"))


def mean(x: Variable, name: str | None = None) -> Variable:
    """Return the mean of all elements, of shape [1] (operator ``mean``).

    Raises TypeError unless ``x`` is a variable of a supported dtype.

    >>> from paddlelike.input import data
    >>> mean(data("costs", [None, 1])).shape
    (1,)
    """
    check_variable("mean", "x", x, FLOATS)
    return emit("mean", {"X": x}, name=name)


def logsumexp(
    x: Variable,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Return ``log(sum(exp(x)))`` along ``dim`` (operators ``exp``, ``reduce_sum``, ``log``).

    Raises TypeError unless ``x`` is a variable of a supported dtype.

    With ``keepdim`` the dims that were reduced stay, of size 1.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.logsumexp(x, dim=1)])
    >>> print(out.round(3))
    [2.313 4.313]
    """
    check_variable("logsumexp", "x", x, WIDE_FLOATS)
    total = reduce_sum(exp(x), dim=dim, keep_dim=keepdim)
    found = log(total, name=name)
    return found if out is None else assign(found, out)
