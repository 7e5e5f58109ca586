"""Parts of sequences: slices, reshaping, reversal, scattering, enumeration.

Parameters
----------
input, x
    Sequences of rows: (T, D) with LoD.
win_size
    How many ids stand in a row.
new_dim
    The width of the new rows.
index
    The column of each update, int64 (T, 1) with the LoD of ``updates``.
updates
    Numbers (T, 1) with LoD: one sequence per row of ``input``.
offset
    Where each part begins, int64 (sequences, 1).
length
    The length of each part, int64 (sequences, 1).
"""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import INTEGERS, NUMBERS, check_variable
from paddlelike.layers.emit import emit

__all__ = ["sequence_enumerate", "sequence_reshape", "sequence_reverse", "sequence_scatter", "sequence_slice"]


def sequence_slice(input: Variable, offset: Variable, length: Variable, name: str | None = None) -> Variable:
    """Return ``length`` rows of each sequence from ``offset`` on; both int64 (sequences, 1).

    Operator ``sequence_slice``. Raises TypeError unless the inputs are variables of supported dtypes.

    ``input`` holds sequences of rows.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4], "float32", lod_level=1)
    >>> y = fluid.data("y", [None, 1], "int64")
    >>> z = fluid.data("z", [None, 1], "int64")
    >>> fluid.layers.sequence_slice(x, y, z).shape
    (-1, 4)
    """
    check_variable("sequence_slice", "input", input, NUMBERS)
    for argument, value in (("offset", offset), ("length", length)):
        check_variable("sequence_slice", argument, value, INTEGERS).stop_gradient = True
    return emit("sequence_slice", {"X": input, "Offset": offset, "Length": length}, name=name)


def sequence_reshape(input: Variable, new_dim: int) -> Variable:
    """Return the elements of each sequence in rows of ``new_dim`` (operator ``sequence_reshape``).

    Raises TypeError unless ``input`` is a variable of a supported dtype.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 6], "float32", lod_level=1)
    >>> fluid.layers.sequence_reshape(x, new_dim=3).shape
    (-1, 3)
    """
    check_variable("sequence_reshape", "input", input, NUMBERS)
    return emit("sequence_reshape", {"X": input}, {"new_dim": new_dim})


def sequence_scatter(
    input: Variable, index: Variable, updates: Variable, name: str | None = None
) -> Variable:
    """Return ``input`` (N, D) with sequence i of ``updates`` added to row i (``sequence_scatter``).

    ``index`` holds their columns, in sequences like those of ``updates``. Raises TypeError unless
    ``input``, ``index`` and ``updates`` are variables of supported dtypes.

    Parameters
    ----------
    input
        (N, D).

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [3, 6])
    >>> y = fluid.data("y", [None, 1], "int64", lod_level=1)
    >>> z = fluid.data("z", [None, 1], "float32", lod_level=1)
    >>> fluid.layers.sequence_scatter(x, y, z).shape
    (3, 6)
    """
    check_variable("sequence_scatter", "input", input, NUMBERS)
    check_variable("sequence_scatter", "index", index, INTEGERS)
    check_variable("sequence_scatter", "updates", updates, NUMBERS)
    return emit("sequence_scatter", {"X": input, "Ids": index, "Updates": updates}, name=name)


def sequence_enumerate(
    input: Variable, win_size: int, pad_value: int = 0, name: str | None = None
) -> Variable:
    """Return ids (T, 1) with those that follow, ``win_size`` in a row, ``pad_value`` after the end.

    Operator ``sequence_enumerate``. Raises TypeError unless ``input`` is a variable of a supported dtype.

    Parameters
    ----------
    pad_value
        The id after the end of a sequence.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 1], "int64", lod_level=1)
    >>> fluid.layers.sequence_enumerate(x, win_size=2).shape
    (-1, 2)
    """
    check_variable("sequence_enumerate", "input", input, INTEGERS)
    attrs = {"win_size": win_size, "pad_value": pad_value}
    return emit("sequence_enumerate", {"X": input}, attrs, name=name, constant=True)


def sequence_reverse(x: Variable, name: str | None = None) -> Variable:
    """Return each sequence with its rows reversed (operator ``sequence_reverse``).

    Raises TypeError unless ``x`` is a variable.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4], "float32", lod_level=1)
    >>> fluid.layers.sequence_reverse(x).shape
    (-1, 4)
    """
    check_variable("sequence_reverse", "x", x)
    return emit("sequence_reverse", {"X": x}, name=name, slot="Y")
