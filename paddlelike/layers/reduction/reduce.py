"""Reductions along dims, sorting, and searching for extremes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from paddlelike.core.dtypes import VarType, convert_dtype
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.layers.checks import BOOL, FLOATS, NUMBERS, WIDE_FLOATS, check_variable
from paddlelike.layers.elementwise.activation import exp, log
from paddlelike.layers.emit import emit, emit_all
from paddlelike.layers.tensor.creation import assign

if TYPE_CHECKING:
    from paddlelike.core.typing import DtypeLike

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "cos_sim",
    "cumsum",
    "l2_normalize",
    "logsumexp",
    "mean",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "topk",
    "unique",
    "unique_with_counts",
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


def cumsum(
    x: Variable,
    axis: int | None = None,
    exclusive: bool | None = None,
    reverse: bool | None = None,
) -> Variable:
    """Return the running sum along ``axis``, the last by default, in the shape of ``x`` (``cumsum``).

    ``exclusive``: without the element itself; ``reverse``: from the end. Raises TypeError unless ``x`` is a
    variable.

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


def l2_normalize(x: Variable, axis: int | None, epsilon: float = 1e-12, name: str | None = None) -> Variable:
    """Return ``x / sqrt(sum(x * x) + epsilon)`` along ``axis`` (1 for None) (operator ``norm``).

    Raises TypeError unless ``x`` is a variable of a supported dtype.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[3, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.l2_normalize(x, axis=1)])
    >>> print(out)
    [[0.6 0.8]]
    """
    check_variable("l2_normalize", "x", x, WIDE_FLOATS)
    if len(x.shape) == 1:
        axis = 0
    outputs = {"Out": x.dtype, "Norm": x.dtype}
    attrs = {"axis": 1 if axis is None else axis, "epsilon": epsilon}
    out, _ = emit_all("norm", {"X": x}, outputs, attrs, layer="l2_normalize", name=name)
    return out


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


def cos_sim(X: Variable, Y: Variable) -> Variable:  # noqa: N803  (Fluid's names)
    """Return the cosine of the angle between the rows of (N, D) and (N, D), or (1, D): (N, 1).

    Operator ``cos_sim``. Raises TypeError unless ``X`` and ``Y`` are variables of supported dtypes.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 0], [1, 1]], "float32"))
    >>> y = fluid.layers.assign(np.array([[2, 0], [0, 3]], "float32"))
    >>> (cosines,) = fluid.Executor().run(fetch_list=[fluid.layers.cos_sim(x, y)])
    >>> cosines.round(3)
    array([[1.   ],
           [0.707]], dtype=float32)
    """
    check_variable("cos_sim", "X", X, (VarType.FP32,))
    check_variable("cos_sim", "Y", Y, (VarType.FP32,))
    outputs = dict.fromkeys(("Out", "XNorm", "YNorm"), X.dtype)
    return emit_all("cos_sim", {"X": X, "Y": Y}, outputs)[0]
