"""Extremes, their positions, sorting, and values that occur."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.core.dtypes import VarType, convert_dtype
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.layers.checks import check_variable, describe
from paddlelike.layers.emit import emit, emit_all

if TYPE_CHECKING:
    from paddlelike.core.typing import DtypeLike

__all__ = ["argmax", "argmin", "argsort", "is_empty", "size", "topk", "unique", "unique_with_counts"]


def is_empty(x: Variable, cond: Variable | None = None) -> Variable:
    """Return whether ``x`` has no elements, as bool of shape [1] (operator ``is_empty``).

    Raises TypeError unless ``x`` is a variable.

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


def argmax(x: Variable, axis: int = 0) -> Variable:
    """Return the indices of the maxima along ``axis``: int64, that dim left out (operator ``arg_max``).

    Raises TypeError unless ``x`` is a variable.

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
    """Return the indices of the minima along ``axis``: int64, that dim left out (operator ``arg_min``).

    Raises TypeError unless ``x`` is a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[3, 1], [2, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.argmin(x, axis=1)])
    >>> print(out)
    [1 0]
    """
    check_variable("argmin", "x", x)
    return emit("arg_min", {"X": x}, {"axis": axis}, dtype=VarType.INT64, constant=True)


def argsort(
    input: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> tuple[Variable, ...]:
    """Return the elements sorted along ``axis``, and their indices (int64), both shaped as ``input``.

    Operator ``argsort``. Raises TypeError unless ``input`` is a variable.

    With ``descending`` the largest comes first.

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

    (..., D) gives values and int64 indices of shape (..., k). ``k`` may be a variable of shape [1]. Raises
    TypeError unless ``input`` is a variable.

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
    """Return the unique elements of ``x`` (N,) in order of appearance, and for each element its index there.

    Operator ``unique``. Raises TypeError unless ``x`` is a variable.

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
    """Return :func:`unique` and how often each element appears (operator ``unique_with_counts``).

    Raises TypeError unless ``x`` is a variable.

    Each output has shape (count,) of one dim.

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


def size(input: Variable) -> Variable:
    """Return the count of elements of ``input``, int64 of shape [1] (operator ``size``).

    Raises TypeError unless ``input`` is a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.size(x)])
    >>> print(out)
    [4]
    """
    check_variable("size", "input", input)
    return emit("size", {"Input": input}, dtype=VarType.INT64)
