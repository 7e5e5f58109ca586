"""Sequences as padded batches, and masks of their lengths.

Parameters
----------
maxlen
    The width of the result: an int, or a variable of shape [1]; None for the greatest length.
pad_value
    A variable of one number, or of one row.
length
    The length of each row, int64 (N,).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddlelike.core.dtypes import VarType, convert_dtype
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import NUMBERS, check_variable
from paddlelike.layers.emit import emit, emit_all

if TYPE_CHECKING:
    from paddlelike.core.typing import DtypeLike

__all__ = ["sequence_mask", "sequence_pad", "sequence_unpad"]


def sequence_pad(
    x: Variable, pad_value: Variable, maxlen: int | None = None, name: str | None = None
) -> tuple[Variable, Variable]:
    """Return sequences as a batch (sequences, maxlen, D), padded with ``pad_value``, and their lengths.

    Operator ``sequence_pad``. ``pad_value`` holds one number or a row; ``maxlen`` None is the longest.
    Raises TypeError unless ``x`` and ``pad_value`` are variables of supported dtypes.

    Parameters
    ----------
    x
        Sequences of rows: (T, D) with LoD.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> words = fluid.data("words", [None, 1], lod_level=1)
    >>> padded, length = fluid.layers.sequence_pad(words, fluid.layers.zeros([1], "float32"))
    >>> rows = fluid.LoDTensor(np.array([[1], [2], [3]], "float32"), [[0, 2, 3]])
    >>> batch, lengths = fluid.Executor().run(feed={"words": rows}, fetch_list=[padded, length])
    >>> batch[:, :, 0], lengths
    (array([[1., 2.],
           [3., 0.]], dtype=float32), array([2, 1]))
    """
    check_variable("sequence_pad", "x", x, NUMBERS)
    check_variable("sequence_pad", "pad_value", pad_value, NUMBERS).stop_gradient = True
    inputs = {"X": x, "PadValue": pad_value}
    outputs = {"Out": x.dtype, "Length": VarType.INT64}
    attrs = {"padded_length": -1 if maxlen is None else maxlen}
    out, length = emit_all("sequence_pad", inputs, outputs, attrs, name=name)
    length.stop_gradient = True
    return out, length


def sequence_unpad(x: Variable, length: Variable, name: str | None = None) -> Variable:
    """Return a padded batch (N, width, ...) as sequences of these lengths, int64 (N,) (``sequence_unpad``).

    Raises TypeError unless ``x`` and ``length`` are variables of supported dtypes.

    Parameters
    ----------
    x
        (N, width, ...).

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 5, 4])
    >>> y = fluid.data("y", [None], "int64")
    >>> fluid.layers.sequence_unpad(x, y).shape
    (-1, 4)
    """
    check_variable("sequence_unpad", "x", x, NUMBERS)
    check_variable("sequence_unpad", "length", length, (VarType.INT64,)).stop_gradient = True
    return emit("sequence_unpad", {"X": x, "Length": length}, name=name)


def sequence_mask(
    x: Variable, maxlen: int | Variable | None = None, dtype: DtypeLike = "int64", name: str | None = None
) -> Variable:
    """Return ``j < x[...]`` for every j below ``maxlen``: (..., maxlen) from lengths (...), in ``dtype``.

    Operator ``sequence_mask``. ``maxlen`` None is the greatest length. Raises TypeError unless ``x`` is a
    variable.

    Parameters
    ----------
    x
        Lengths, int, of any shape.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> lengths = fluid.layers.assign(np.array([2, 0, 3], "int64"))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.sequence_mask(lengths, maxlen=4)])
    [array([[1, 1, 0, 0],
           [0, 0, 0, 0],
           [1, 1, 1, 0]])]
    """
    check_variable("sequence_mask", "x", x)
    inputs = {"X": x}
    attrs: dict[str, Any] = {"out_dtype": int(convert_dtype(dtype))}
    if isinstance(maxlen, Variable):
        inputs["MaxLenTensor"] = maxlen
    elif maxlen is not None:
        attrs["maxlen"] = maxlen
    out = emit("sequence_mask", inputs, attrs, name=name, dtype=dtype, slot="Y")
    out.stop_gradient = True
    return out
