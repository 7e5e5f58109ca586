"""Tensors stacked along a new dim, and taken apart."""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variable, check_variables
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper

__all__ = ["stack", "unstack"]


def stack(x: Variable | Sequence[Variable], axis: int = 0) -> Variable:
    """Return variables of one shape stacked along a new dim ``axis`` (operator ``stack``).

    Raises TypeError unless ``x`` is a variable.

    Parameters
    ----------
    x
        A list of variables of one shape.
    axis
        Where the new dim stands in the result.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> y = fluid.layers.assign(np.array([3, 4], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.stack([x, y])])
    >>> print(out)
    [[1. 2.]
     [3. 4.]]
    """
    many = check_variables("stack", "x", x)
    return emit("stack", {"X": many}, {"axis": axis}, slot="Y")


def unstack(x: Variable, axis: int = 0, num: int | None = None) -> list[Variable]:
    """Return the slices of ``x`` along dim ``axis``, without that dim (operator ``unstack``).

    ``num`` is their count; it may be None when the dim is known. Raises TypeError unless ``x`` is a
    variable, GraphError otherwise.

    Parameters
    ----------
    x
        A variable of any shape.
    axis
        The dim that is taken apart.
    num
        The length of that dim; None where it is known.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [2, 3])
    >>> [one.shape for one in fluid.layers.unstack(x)]
    [(3,), (3,)]
    """
    check_variable("unstack", "x", x)
    count = x.shape[axis] if num is None else num
    if count <= 0:
        raise GraphError(
            f"layer 'unstack': dim {axis} of x {x.name!r} of shape {list(x.shape)} is unknown",
            hint="pass num",
        )
    helper = LayerHelper("unstack")
    outs = [helper.create_variable_for_type_inference(x.dtype) for _ in range(count)]
    attrs = {"axis": axis, "num": count}
    helper.append_op(type="unstack", inputs={"X": [x]}, outputs={"Y": outs}, attrs=attrs)
    return outs
