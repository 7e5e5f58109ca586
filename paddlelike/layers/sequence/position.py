"""Positions in sequences: their encoding, and row_conv, which looks some steps ahead.

Parameters
----------
alpha
    The factor of ``input``.
beta
    The factor of the encoding.
future_context_size
    How many rows after its own a row sees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["add_position_encoding", "row_conv"]


def add_position_encoding(input: Variable, alpha: float, beta: float, name: str | None = None) -> Variable:
    """Return ``alpha * input + beta * sines and cosines of the position`` for (N, T, D).

    Operator ``add_position_encoding``. Raises TypeError unless ``input`` is a variable of a supported
    dtype.

    Parameters
    ----------
    input
        (N, T, D), D even; or (T, D) with LoD.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 6, 8])
    >>> fluid.layers.add_position_encoding(x, alpha=1.0, beta=1.0).shape
    (-1, 6, 8)
    """
    check_variable("add_position_encoding", "input", input, WIDE_FLOATS)
    attrs = {"alpha": alpha, "beta": beta}
    return emit("add_position_encoding", {"X": input}, attrs, name=name)


def row_conv(
    input: Variable, future_context_size: int, param_attr: ParamAttrLike = None, act: str | None = None
) -> Variable:
    """Return ``sum over j of weight[j] * input[t + j]`` for each row, column by column (``row_conv``).

    The weight is (future_context_size + 1, D). Amodei et al. 2016. Raises TypeError unless ``input`` is a
    variable of a supported dtype.

    Parameters
    ----------
    input
        Sequences of rows: (T, D) with LoD.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4], "float32", lod_level=1)
    >>> fluid.layers.row_conv(x, future_context_size=2).shape
    (-1, 4)
    """
    check_variable("row_conv", "input", input, WIDE_FLOATS)
    helper = LayerHelper("row_conv", act=act)
    shape = [future_context_size + 1, input.shape[-1]]
    weight = helper.create_parameter(param_attr, shape, input.dtype)
    return emit("row_conv", {"X": input, "Filter": weight}, helper=helper)
