"""Losses of pairs of scores or of embeddings.

Parameters
----------
label
    (N, 1): 1 if ``left`` should rank higher, -1 if ``right`` should.
left, right
    Scores (N, 1).
margin
    The distance that the scores should keep.
anchor, positive
    Embeddings (N, D); rows with the same index belong together.
labels
    The class of each row, (N,).
l2_reg
    The weight of the squares of the embeddings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework import Variable
from paddlelike.layers.elementwise.compare import equal
from paddlelike.layers.elementwise.unary import square
from paddlelike.layers.emit import WIDE_FLOATS, check_variable, emit, emit_all
from paddlelike.layers.linalg.products import matmul
from paddlelike.layers.loss.classes import softmax_with_cross_entropy
from paddlelike.layers.reduction import reduce_mean, reduce_sum
from paddlelike.layers.tensor.concat import expand
from paddlelike.layers.tensor.reshape import reshape, transpose

if TYPE_CHECKING:
    pass

__all__ = ["margin_rank_loss", "npair_loss", "rank_loss"]


def rank_loss(label: Variable, left: Variable, right: Variable, name: str | None = None) -> Variable:
    """Return ``log(1 + exp(o)) - label * o`` of ``o = left - right``, all (N, 1) (operator ``rank_loss``).

    Parameters
    ----------
    label
        (N, 1): 1 if ``left`` should rank higher, 0 if ``right`` should.

    Returns
    -------
    Variable
        (N, 1), float32: the loss of each pair.

    Raises
    ------
    TypeError
        ``label``, ``left`` or ``right`` is not a variable of float32.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1]], "float32"))
    >>> y = fluid.layers.assign(np.array([[0.3]], "float32"))
    >>> z = fluid.layers.assign(np.array([[0.5]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.rank_loss(x, y, z)])
    >>> print(out.round(3))
    [[0.798]]
    """
    for argument, value in (("label", label), ("left", left), ("right", right)):
        check_variable("rank_loss", argument, value, (VarType.FP32,))
    return emit("rank_loss", {"Label": label, "Left": left, "Right": right}, name=name)


def margin_rank_loss(
    label: Variable, left: Variable, right: Variable, margin: float = 0.1, name: str | None = None
) -> Variable:
    """Return ``max(0, -label * (left - right) + margin)``, all (N, 1) (operator ``margin_rank_loss``).

    Returns
    -------
    Variable
        (N, 1), float32: the loss of each pair.

    Raises
    ------
    TypeError
        ``label``, ``left`` or ``right`` is not a variable of float32.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1]], "float32"))
    >>> y = fluid.layers.assign(np.array([[0.3]], "float32"))
    >>> z = fluid.layers.assign(np.array([[0.5]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.margin_rank_loss(x, y, z)])
    >>> print(out.round(3))
    [[0.3]]
    """
    for argument, value in (("label", label), ("left", left), ("right", right)):
        check_variable("margin_rank_loss", argument, value, (VarType.FP32,))
    inputs = {"Label": label, "X1": left, "X2": right}
    outputs = {"Out": left.dtype, "Activated": left.dtype}
    return emit_all("margin_rank_loss", inputs, outputs, {"margin": margin}, name=name)[0]


def npair_loss(anchor: Variable, positive: Variable, labels: Variable, l2_reg: float = 0.002) -> Variable:
    """Return the cross entropy of the similarities of all pairs plus an L2 term, of shape [1] (Sohn 2016).

    Rows with equal labels should be similar.

    Returns
    -------
    Variable
        Of shape (1,), in the dtype of ``anchor``.

    Raises
    ------
    TypeError
        ``anchor`` or ``positive`` is not a variable of float32 or float64, or ``labels`` is not a variable.
    GraphError
        N is unknown.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [6, 8])
    >>> y = fluid.data("y", [6, 8])
    >>> z = fluid.data("z", [6], "int64")
    >>> fluid.layers.npair_loss(x, y, z).shape
    (1,)
    """
    for argument, value in (("anchor", anchor), ("positive", positive)):
        check_variable("npair_loss", argument, value, WIDE_FLOATS)
    check_variable("npair_loss", "labels", labels)
    count = labels.shape[0]
    if count < 0:
        raise GraphError(
            f"layer 'npair_loss': labels {labels.name!r} of shape {list(labels.shape)} has an unknown "
            "number of rows",
            hint="declare the batch size as a number",
        )
    column = reshape(labels, [count, 1], inplace=True)
    rows = expand(column, [1, count])
    same = equal(rows, transpose(rows, [1, 0])).astype("float32")
    same = same / reduce_sum(same, dim=1, keep_dim=True)
    length = reduce_mean(reduce_sum(square(anchor), 1)) + reduce_mean(reduce_sum(square(positive), 1))
    penalty = length * 0.25 * l2_reg
    similarity = matmul(anchor, positive, transpose_x=False, transpose_y=True)
    cost = softmax_with_cross_entropy(similarity, same, soft_label=True)
    return penalty + reduce_mean(reduce_sum(same * cost, 0))
