"""Losses of pairs: distances of predictions and targets, ranks, metric learning.

Parameters
----------
input
    A prediction of any shape.
label
    The target, in the shape of ``input``; 1 or -1 (0 in ``rank_loss``), (N, 1), where it orders ``left``
    and ``right``.
delta
    Where the loss becomes linear.
left, right
    Scores (N, 1).
margin
    The distance that the scores should keep.
anchor, positive
    Embeddings (N, D); the same row of both belongs together.
labels
    The class of each row, (N,).
l2_reg
    The weight of the squares of the embeddings.
x, y
    (N, ...), of one shape.
inside_weight
    Factors of ``x - y``; None for 1.
outside_weight
    Factors of the terms; None for 1.
sigma
    Where a term becomes linear: from ``1 / sigma ** 2`` on; None for 1.
"""

from __future__ import annotations

from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.elementwise.compare import equal
from paddlelike.layers.elementwise.unary import square
from paddlelike.layers.emit import emit, emit_all
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.linalg.matmul import matmul
from paddlelike.layers.loss.cross_entropy import softmax_with_cross_entropy
from paddlelike.layers.reduction.reduce import reduce_mean, reduce_sum
from paddlelike.layers.tensor.expand import expand
from paddlelike.layers.tensor.reshape import reshape, transpose

__all__ = [
    "huber_loss",
    "margin_rank_loss",
    "mse_loss",
    "npair_loss",
    "rank_loss",
    "smooth_l1",
    "square_error_cost",
]


def square_error_cost(input: Variable, label: Variable) -> Variable:
    """Return ``(input - label) ** 2``, element by element (operators ``elementwise_sub``, ``square``).

    Raises TypeError unless ``input`` and ``label`` are variables of supported dtypes.

    >>> from paddlelike.input import data
    >>> square_error_cost(data("guess", [None, 1]), data("truth", [None, 1])).shape
    (-1, 1)
    """
    check_variable("square_error_cost", "input", input, WIDE_FLOATS)
    check_variable("square_error_cost", "label", label, WIDE_FLOATS)
    helper = LayerHelper("square_error_cost")
    difference = helper.create_variable_for_type_inference(input.dtype)
    inputs = {"X": [input], "Y": [label]}
    helper.append_op(type="elementwise_sub", inputs=inputs, outputs={"Out": [difference]})
    return emit("square", {"X": [difference]}, helper=helper, dtype=input.dtype)


def mse_loss(input: Variable, label: Variable) -> Variable:
    """Return the mean of ``(input - label) ** 2``, of shape [1].

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1], [3]], "float32"))
    >>> y = fluid.layers.assign(np.array([[1], [1]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.mse_loss(x, y)])
    >>> print(out)
    [2.]
    """
    return reduce_mean(square_error_cost(input, label))


def huber_loss(input: Variable, label: Variable, delta: float) -> Variable:
    """Return ``r * r / 2`` for ``r = label - input``, or ``delta * (|r| - delta / 2)`` if ``|r| > delta``.

    Operator ``huber_loss``. Raises TypeError unless ``input`` and ``label`` are variables of supported
    dtypes.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1], [5]], "float32"))
    >>> y = fluid.layers.assign(np.array([[1.5], [1]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.huber_loss(x, y, delta=1.0)])
    >>> print(out)
    [[0.125]
     [3.5  ]]
    """
    check_variable("huber_loss", "input", input, WIDE_FLOATS)
    check_variable("huber_loss", "label", label, WIDE_FLOATS)
    outputs = {"Residual": input.dtype, "Out": input.dtype}
    return emit_all("huber_loss", {"X": input, "Y": label}, outputs, {"delta": delta})[1]


def smooth_l1(
    x: Variable,
    y: Variable,
    inside_weight: Variable | None = None,
    outside_weight: Variable | None = None,
    sigma: float | None = None,
) -> Variable:
    """Return per row (N, 1) the sum of ``d * d * sigma ** 2 / 2`` for ``d = (x - y) * inside_weight``.

    Operator ``smooth_l1_loss``. Where ``|d| > 1 / sigma ** 2`` the terms are ``|d| - 1 / (2 * sigma **
    2)``; all are multiplied by ``outside_weight``. Raises TypeError unless ``x`` and ``y`` are variables of
    supported dtypes.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> y = fluid.layers.assign(np.array([[1, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.smooth_l1(x, y)])
    >>> print(out)
    [[1.5]]
    """
    check_variable("smooth_l1", "x", x, WIDE_FLOATS)
    check_variable("smooth_l1", "y", y, WIDE_FLOATS)
    inputs = {"X": x, "Y": y, "InsideWeight": inside_weight, "OutsideWeight": outside_weight}
    outputs = {"Diff": x.dtype, "Out": x.dtype}
    attrs = {"sigma": 1.0 if sigma is None else sigma}
    return emit_all("smooth_l1_loss", inputs, outputs, attrs)[1]


def rank_loss(label: Variable, left: Variable, right: Variable, name: str | None = None) -> Variable:
    """Return ``log(1 + exp(o)) - label * o`` of ``o = left - right``, all (N, 1) (operator ``rank_loss``).

    Raises TypeError unless the inputs are variables of supported dtypes.

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

    Raises TypeError unless the inputs are variables of supported dtypes.

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
    """Return the cross entropy of the similarities of all pairs, plus an L2 term, of shape [1]. Sohn 2016.

    ``anchor`` and ``positive`` are (N, D), ``labels`` (N,): rows with equal labels should be similar.
    Raises TypeError unless the inputs are variables of supported dtypes, GraphError when N is unknown.

    ``l2_reg`` weighs the squares of the embeddings.

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
