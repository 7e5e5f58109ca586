"""Reductions, sums, cumulative sums, sorting, and searching.

Parameters
----------
input, x
    A variable of any shape.
dim
    The dim or dims that are reduced, negative ones from the end; None for all.
keep_dim, keepdim
    Whether the reduced dims stay, with length 1.
axis
    The dim that is searched and left out. Negative ones count from the end.
exclusive
    Whether a sum leaves out its own element.
reverse
    Whether sums begin at the end.
descending
    Whether the greatest element comes first.
k
    The number of elements: an int, or a variable of shape [1].
dtype
    The type of the indices: ``"int32"`` or ``"int64"``.

Raises
------
TypeError
    The input is not a variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from paddlelike.core import VarType, convert_dtype
from paddlelike.framework import Variable, warn_quirk
from paddlelike.layers.elementwise.unary import exp, log
from paddlelike.layers.emit import (
    BOOL,
    FLOATS,
    NUMBERS,
    WIDE_FLOATS,
    check_variable,
    check_variables,
    describe,
    emit,
    emit_all,
    name_dtypes,
)
from paddlelike.layers.tensor.assign import assign

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "cumsum",
    "is_empty",
    "logsumexp",
    "mean",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "size",
    "sum",
    "sums",
    "topk",
    "unique",
    "unique_with_counts",
]


_FLOATS = 'np.array([[1, 2], [3, 7]], "float32")'


_BOOLS = "np.array([[True, False], [True, True]])"


class Reduction(Protocol):
    """A layer that reduces over some dims."""

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
    """Return the layer for the operator ``type``; ``example`` is an array and the result along dim 1."""

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
    layer.__doc__ = f"""Return the {what} along ``dim``, one dim or several; None for all dims.

    Operator ``{type}``.

    Returns
    -------
    Variable
        ``input`` without the reduced dims, (1,) if all dims are reduced; with ``keep_dim`` they stay, of
        length 1. In the dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable of {name_dtypes(dtypes)}.

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

    Returns
    -------
    Variable
        Of shape (1,), in the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float16, float32 or float64.

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

    Returns
    -------
    Variable
        ``x`` without the reduced dims, (1,) if all dims are reduced; with ``keepdim`` they stay, of length 1.
        It is ``out`` if that is given.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float32 or float64.

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


def sums(input: Variable | Sequence[Variable], out: Variable | None = None) -> Variable:
    """Return the sum of variables of one shape (operator ``sum``), written to ``out`` if that is given.

    Parameters
    ----------
    input
        A variable, or a list of variables of one shape.

    Returns
    -------
    Variable
        In the shape and dtype of each of ``input``. It is ``out`` if that is given.

    Raises
    ------
    TypeError
        ``input``, or an element of it, is not a variable.

    >>> import paddlelike as fluid
    >>> one, two = fluid.layers.ones([2], "float32"), fluid.layers.fill_constant([2], "float32", 2.0)
    >>> fluid.Executor().run(fetch_list=[fluid.layers.sums([one, two, two])])
    [array([5., 5.], dtype=float32)]
    """
    many = check_variables("sums", "input", input)
    return emit("sum", {"X": many}, {"use_mkldnn": False}, out=out)


def sum(x: Variable | Sequence[Variable]) -> Variable:
    """Return the sum of variables of one shape (operator ``sum``).

    Parameters
    ----------
    x
        A variable, or a list of variables of one shape.

    Returns
    -------
    Variable
        In the shape and dtype of each of ``x``.

    Raises
    ------
    TypeError
        ``x``, or an element of it, is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> y = fluid.layers.assign(np.array([3, 4], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.sum([x, y])])
    >>> print(out)
    [4. 6.]
    """
    return emit("sum", {"X": check_variables("sum", "x", x)}, {"use_mkldnn": False})


def cumsum(
    x: Variable, axis: int | None = None, exclusive: bool | None = None, reverse: bool | None = None
) -> Variable:
    """Return the running sum along ``axis``, the last by default, in the shape of ``x`` (``cumsum``).

    Parameters
    ----------
    axis
        The dim along which numbers are added; None for the last.

    Returns
    -------
    Variable
        In the shape and dtype of ``x``: the sums up to each element.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.cumsum(x, axis=1)])
    >>> print(out)
    [[1. 3.]
     [3. 7.]]
    """
    check_variable("cumsum", "x", x)
    attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    return emit("cumsum", {"X": x}, {k: v for k, v in attrs.items() if v is not None})


def argmax(x: Variable, axis: int = 0) -> Variable:
    """Return the indices of the maxima along ``axis``, as int64 without that dim (operator ``arg_max``).

    Returns
    -------
    Variable
        int64, in the shape of ``x`` without dim ``axis``: an index along that dim for each place.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[3, 1], [2, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.argmax(x, axis=1)])
    >>> print(out)
    [0 1]
    """
    check_variable("argmax", "x", x)
    return emit("arg_max", {"X": x}, {"axis": axis}, dtype=VarType.INT64, constant=True)


def argmin(x: Variable, axis: int = 0) -> Variable:
    """Return the indices of the minima along ``axis``, as int64 without that dim (operator ``arg_min``).

    Returns
    -------
    Variable
        int64, in the shape of ``x`` without dim ``axis``: an index along that dim for each place.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[3, 1], [2, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.argmin(x, axis=1)])
    >>> print(out)
    [1 0]
    """
    check_variable("argmin", "x", x)
    return emit("arg_min", {"X": x}, {"axis": axis}, dtype=VarType.INT64, constant=True)


def is_empty(x: Variable, cond: Variable | None = None) -> Variable:
    """Return whether ``x`` has no elements, as bool of shape [1] (operator ``is_empty``).

    Returns
    -------
    Variable
        Bool of shape (1,). It is ``cond`` if that is given.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.is_empty(x)])
    >>> print(out)
    [False]
    """
    check_variable("is_empty", "x", x)
    if cond is not None and not isinstance(cond, Variable):
        raise TypeError(f"layer 'is_empty': cond must be a variable, got {describe(cond)}")
    return emit("is_empty", {"X": x}, dtype=VarType.BOOL, out=cond, constant=True)


def size(input: Variable) -> Variable:
    """Return the number of elements of ``input``, int64 of shape [1] (operator ``size``).

    Returns
    -------
    Variable
        int64 of shape (1,).

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.size(x)])
    >>> print(out)
    [4]
    """
    check_variable("size", "input", input)
    return emit("size", {"Input": input}, dtype=VarType.INT64)


def argsort(
    input: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> tuple[Variable, ...]:
    """Return the elements sorted along ``axis``, and their indices (int64), both shaped as ``input``.

    Operator ``argsort``.

    Parameters
    ----------
    axis
        The dim that is sorted. Negative ones count from the end.

    Returns
    -------
    out : Variable
        In the shape and dtype of ``input``: its elements, sorted.
    indices : Variable
        int64, in the shape of ``input``: the former index of each element along ``axis``.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 5])
    >>> [one.shape for one in fluid.layers.argsort(x)]
    [(-1, 5), (-1, 5)]
    """
    check_variable("argsort", "input", input)
    outputs = {"Out": input.dtype, "Indices": VarType.INT64}
    attrs = {"axis": axis, "descending": descending}
    return emit_all("argsort", {"X": input}, outputs, attrs, name=name, constant=True)


def topk(input: Variable, k: int | Variable, name: str | None = None) -> tuple[Variable, ...]:
    """Return the ``k`` greatest elements of every row, in descending order, and their indices (``top_k``).

    (..., D) gives values and int64 indices of shape (..., k). ``k`` may be a variable of shape [1].

    Returns
    -------
    values : Variable
        (..., k), in the dtype of ``input`` (..., D): the greatest elements of each row, in descending order.
    indices : Variable
        int64 (..., k): the columns of these elements.

    >>> from paddlelike.input import data
    >>> values, indices = topk(data("scores", [None, 10]), k=3)
    >>> values.shape, indices.dtype
    ((-1, 3), <VarType.INT64: 3>)
    """
    check_variable("topk", "input", input)
    inputs, attrs = {"X": input}, {}
    if isinstance(k, Variable):
        inputs["K"] = k
        warn_quirk("topk_variable")
    else:
        attrs["k"] = k
    outputs = {"Out": input.dtype, "Indices": VarType.INT64}
    return emit_all("top_k", inputs, outputs, attrs, name=name, constant=True)


def unique(x: Variable, dtype: DtypeLike = "int32") -> tuple[Variable, ...]:
    """Return the unique elements of ``x`` (N,) in order of appearance, and each element's index among them.

    Operator ``unique``.

    Parameters
    ----------
    x
        A variable (N,).

    Returns
    -------
    out : Variable
        (U,), in the dtype of ``x``: each of the U different elements once.
    index : Variable
        (N,), of ``dtype``: the index in ``out`` of each element of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([3, 1, 3], "int64"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.unique(x)[0]])
    >>> print(out)
    [3 1]
    """
    check_variable("unique", "x", x)
    kind = convert_dtype(dtype)
    return emit_all("unique", {"X": x}, {"Out": x.dtype, "Index": kind}, {"dtype": int(kind)})


def unique_with_counts(x: Variable, dtype: DtypeLike = "int32") -> tuple[Variable, ...]:
    """Return the results of :func:`unique`, and how often each element appears (operator
    ``unique_with_counts``).

    Parameters
    ----------
    x
        A variable (N,).

    Returns
    -------
    out : Variable
        (U,), in the dtype of ``x``: each of the U different elements once.
    index : Variable
        (N,), of ``dtype``: the index in ``out`` of each element of ``x``.
    count : Variable
        (U,), of ``dtype``: how often each element of ``out`` is in ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([3, 1, 3], "int64"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.unique_with_counts(x)[2]])
    >>> print(out)
    [2 1]
    """
    check_variable("unique_with_counts", "x", x)
    kind = convert_dtype(dtype)
    outputs = {"Out": x.dtype, "Index": kind, "Count": kind}
    return emit_all("unique_with_counts", {"X": x}, outputs, {"dtype": int(kind)})
