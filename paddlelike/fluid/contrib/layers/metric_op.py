"""``fluid.contrib.layers.metric_op``: sums over all batches, for metrics of click-through rates."""

from __future__ import annotations

from paddlelike.errors import ShapeError
from paddlelike.framework import Variable
from paddlelike.initializer import Constant
from paddlelike.layers.helper import LayerHelper

__all__ = ["ctr_metric_bundle"]

_PERSISTABLE = ("abserr", "sqrerr", "prob", "q", "pos_num", "ins_num")
_BATCH = ("prob", "abserr", "sqrerr", "q", "pos_num", "ins_num")


def ctr_metric_bundle(input: Variable, label: Variable) -> tuple[Variable, ...]:
    """Return six sums over all batches; scripts add the sums of all trainers, then divide.

    Parameters
    ----------
    input
        Predicted probabilities, float32 (N, 1).
    label
        0 or 1, float32 (N, 1).

    Returns
    -------
    tuple
        Squared error, absolute error, ``input``, sigmoid of ``input``, ``label``, number of rows; each (1,).

    Raises
    ------
    ShapeError
        The shapes of ``input`` and ``label`` differ.

    See Also
    --------
    fluid.metrics.Auc

    >>> from paddlelike.input import data
    >>> len(ctr_metric_bundle(data("x", [None, 1]), data("y", [None, 1])))
    6
    """
    if input.shape != label.shape:
        raise ShapeError(f"ctr_metric_bundle: input has shape {list(input.shape)}, label {list(label.shape)}")
    helper = LayerHelper("ctr_metric_bundle")

    def create(persistable: bool, shape: int) -> Variable:
        return helper.create_global_variable(persistable=persistable, dtype="float32", shape=[shape])

    # In Fluid's order, for its names.
    local = {name: create(True, 1) for name in _PERSISTABLE}
    error, sigmoid, ones = (create(False, -1) for _ in range(3))
    batch = {name: create(False, 1) for name in _BATCH}
    pairs = [(local[name], batch[name]) for name in ("abserr", "sqrerr", "prob", "q")]
    last = [batch["pos_num"], batch["ins_num"], local["pos_num"], local["ins_num"]]
    for variable in [*(one for pair in pairs for one in pair), *last]:
        helper.set_variable_initializer(variable, Constant(value=0.0, force_cpu=True))

    def append(type: str, x: Variable, out: Variable, **more: Variable) -> None:
        inputs = {"X": [x], **{slot: [one] for slot, one in more.items()}}
        helper.append_op(type=type, inputs=inputs, outputs={"Out": [out]})

    def accumulate(name: str) -> None:
        append("elementwise_add", batch[name], local[name], Y=local[name])

    append("elementwise_sub", input, error, Y=label)
    append("squared_l2_norm", error, batch["sqrerr"])
    accumulate("sqrerr")
    append("l1_norm", error, batch["abserr"])
    accumulate("abserr")
    append("reduce_sum", input, batch["prob"])
    accumulate("prob")
    append("sigmoid", input, sigmoid)
    append("reduce_sum", sigmoid, batch["q"])
    accumulate("q")
    append("reduce_sum", label, batch["pos_num"])
    accumulate("pos_num")
    helper.append_op(
        type="fill_constant_batch_size_like",
        inputs={"Input": label},
        outputs={"Out": [ones]},
        attrs={"shape": [-1, 1], "dtype": ones.dtype, "value": 1.0},
    )
    append("reduce_sum", ones, batch["ins_num"])
    accumulate("ins_num")
    return tuple(local[name] for name in ("sqrerr", "abserr", "prob", "q", "pos_num", "ins_num"))
