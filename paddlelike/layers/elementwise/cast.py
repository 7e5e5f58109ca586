"""The same elements in another type.

Parameters
----------
x
    A variable of any shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.core.dtypes import convert_dtype
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variable
from paddlelike.layers.emit import emit

if TYPE_CHECKING:
    from paddlelike.core.typing import DtypeLike

__all__ = ["cast"]


def cast(x: Variable, dtype: DtypeLike) -> Variable:
    """Return ``x`` converted to another element type ``dtype`` (operator ``cast``).

    Raises TypeError unless ``x`` is a variable.

    The result has the shape of ``x``.

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
