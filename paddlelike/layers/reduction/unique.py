"""Values that occur, once each.

Parameters
----------
x
    A variable (N,).
dtype
    The type of the indices: ``"int32"`` or ``"int64"``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.core.dtypes import convert_dtype
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variable
from paddlelike.layers.emit import emit_all

if TYPE_CHECKING:
    from paddlelike.core.typing import DtypeLike

__all__ = ["unique", "unique_with_counts"]


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
