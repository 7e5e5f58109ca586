"""nce: noise-contrastive estimation, a loss over a sample of the classes.

Parameters
----------
input
    Features (N, D).
label
    The true classes, int64 (N, true classes).
num_total_classes
    The count of classes.
sample_weight
    The weight of each row, (N, 1); None for 1.
num_neg_samples
    How many classes are drawn for each row; None for 10.
sampler
    ``"uniform"``, ``"log_uniform"`` or ``"custom_dist"``.
custom_dist
    With that sampler: the probability of each class.
is_sparse
    Whether the gradients hold only the rows that were used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.initializer import NumpyArrayInitializer
from paddlelike.layers.checks import WIDE_FLOATS, check_choice, check_variable
from paddlelike.layers.helper import LayerHelper
from paddlelike.param_attr import ParamAttr

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["nce"]


SAMPLERS: Final = ("uniform", "log_uniform", "custom_dist")


def nce(
    input: Variable,
    label: Variable,
    num_total_classes: int,
    sample_weight: Variable | None = None,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    num_neg_samples: int | None = None,
    name: str | None = None,
    sampler: str = "uniform",
    custom_dist: Sequence[float] | None = None,
    seed: int = 0,
    is_sparse: bool = False,
) -> Variable:
    """Return the loss of noise-contrastive estimation, label against sampled classes: (N, 1) (``nce``).

    ``input`` is (N, D), ``label`` int64 (N, true classes). ``num_neg_samples`` (10) classes are drawn
    uniformly, log-uniformly, or by ``custom_dist``. Gutmann & Hyvärinen 2010. Raises TypeError unless
    ``input`` and ``label`` are variables of supported dtypes, GraphError unless ``custom_dist`` holds one
    probability per class.

    There are ``num_total_classes`` classes, of which noise is drawn by ``sampler``: "uniform",
    "log_uniform" or "custom_dist", from ``seed``. ``sample_weight`` weighs the rows, (N, 1); with
    ``is_sparse`` the gradients are rows.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 8])
    >>> y = fluid.data("y", [None, 1], "int64")
    >>> fluid.layers.nce(x, y, num_total_classes=20, num_neg_samples=5).shape
    (-1, 1)
    """
    check_variable("nce", "input", input, WIDE_FLOATS)
    check_variable("nce", "label", label, (VarType.INT64,))
    check_choice("nce", "sampler", sampler, SAMPLERS)
    helper = LayerHelper("nce", name=name)
    weight = helper.create_parameter(param_attr, [num_total_classes, input.shape[1]], input.dtype)
    inputs = {"Input": input, "Label": label, "Weight": weight}
    bias = helper.create_parameter(bias_attr, [num_total_classes, 1], input.dtype, is_bias=True)
    if bias is not None:
        inputs["Bias"] = bias
    if sample_weight is not None:
        inputs["SampleWeight"] = sample_weight
    outputs = {
        "Cost": helper.create_variable_for_type_inference(input.dtype),
        "SampleLogits": helper.create_variable_for_type_inference(input.dtype),
        "SampleLabels": helper.create_variable_for_type_inference(label.dtype),
    }
    if sampler == "custom_dist":
        inputs |= create_alias_parameters(helper, custom_dist, num_total_classes)
    samples = 10 if num_neg_samples is None else int(num_neg_samples)
    helper.append_op(
        type="nce",
        inputs=inputs,
        outputs=outputs,
        attrs={
            "num_total_classes": int(num_total_classes),
            "num_neg_samples": samples,
            "seed": seed,
            "sampler": SAMPLERS.index(sampler),
            "is_sparse": is_sparse,
            "remote_prefetch": is_sparse,
        },
    )
    return outputs["Cost"] / (samples + 1)


def create_alias_parameters(
    helper: LayerHelper, distribution: Sequence[float] | None, classes: int
) -> dict[str, Variable]:
    """Return the constants with which the operator draws classes of a given distribution."""
    if distribution is None or len(distribution) != classes:
        count = 0 if distribution is None else len(distribution)
        raise GraphError(
            f"layer 'nce': custom_dist holds {count} probabilities, expected {classes}, one per class"
        )
    keep, alias = alias_table(distribution)
    values = {
        "CustomDistProbs": np.asarray(distribution, "float32"),
        "CustomDistAlias": alias,
        "CustomDistAliasProbs": keep,
    }
    constants = {}
    for slot, array in values.items():
        constants[slot] = helper.create_parameter(
            ParamAttr(), array.shape, array.dtype, default_initializer=NumpyArrayInitializer(array)
        )
        constants[slot].stop_gradient = True
    return constants


def alias_table(distribution: Sequence[float]) -> tuple[Any, Any]:
    """Return, per class, the probability to keep it and the class to take otherwise (Walker's alias method).

    A class drawn uniformly is kept with its probability, else replaced; -1: always kept.

    >>> alias_table([0.25, 0.75])
    (array([0.5, 1. ], dtype=float32), array([ 1, -1], dtype=int32))
    """
    keep = np.ones(len(distribution), "float32")
    alias = np.full(len(distribution), -1, "int32")
    scaled = [(i, p * len(distribution)) for i, p in enumerate(distribution)]
    large = [(i, p) for i, p in scaled if p > 1.0]
    small = [(i, p) for i, p in scaled if p < 1.0]
    while large and small:
        (giver, plenty), (taker, little) = large.pop(0), small.pop(0)
        keep[taker], alias[taker] = little, giver
        left = plenty + little - 1.0
        if left > 1.0:
            large.append((giver, left))
        elif left < 1.0:
            small.append((giver, left))
    return keep, alias
