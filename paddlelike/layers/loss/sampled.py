"""Losses that evaluate only some of many classes: noise-contrastive estimation, sampled logits, class trees.

Parameters
----------
input
    Features (N, D).
num_total_classes
    The number of classes.
sample_weight
    The weight of each row, (N, 1); None for 1.
num_neg_samples
    The number of classes that are drawn for each row; None for 10.
sampler
    ``"uniform"``, ``"log_uniform"`` or ``"custom_dist"``.
custom_dist
    The probability of each class, for ``"custom_dist"``.
logits
    Unnormalized scores (N, classes).
num_samples
    The number of classes that are drawn.
num_true
    The number of true classes of a row.
remove_accidental_hits
    Whether to ignore drawn classes that are the label.
use_customized_samples
    Whether ``customized_samples`` and ``customized_probabilities`` replace drawn classes.
customized_samples
    The given classes, int64 (N, num_true + num_samples).
customized_probabilities
    The probabilities of ``customized_samples``, in the same shape.
num_classes
    The number of classes, at least 2; with ``is_custom``, the number of inner nodes.
path_table
    With ``is_custom``: the nodes from the class to the root, int64 (N, L), padded with -1.
path_code
    With ``is_custom``: 0 or 1 at each of these nodes, padded with -1.
is_custom
    Whether ``path_table`` and ``path_code`` define the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework import Variable
from paddlelike.initializer import NumpyArrayInitializer
from paddlelike.layers.emit import WIDE_FLOATS, check_choice, check_variable
from paddlelike.layers.helper import LayerHelper
from paddlelike.param_attr import ParamAttr

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["hsigmoid", "nce", "sampled_softmax_with_cross_entropy"]


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
    """Return the loss (N, 1) of noise-contrastive estimation: labels against sampled classes (``nce``).

    Gutmann & Hyvärinen 2010.

    Parameters
    ----------
    label
        The true classes, int64 (N, true classes).
    is_sparse
        Whether the gradients hold only the rows that were used.

    Returns
    -------
    Variable
        (N, 1), in the dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32 or float64, or ``label`` is not a variable of int64.
    GraphError
        ``custom_dist`` does not hold one probability per class.

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
    """Return the constants with which the operator draws classes from a given distribution."""
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
    """Return, per class, the probability to keep it and the alternative class (Walker's alias method).

    A class drawn uniformly is kept with its probability, else replaced. The alternative -1 means always kept.

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


def sampled_softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    num_samples: int,
    num_true: int = 1,
    remove_accidental_hits: bool = True,
    use_customized_samples: bool = False,
    customized_samples: Variable | None = None,
    customized_probabilities: Variable | None = None,
    seed: int = 0,
) -> Variable:
    """Return the cross entropy (N, 1) over the true classes and ``num_samples`` sampled ones.

    Operators ``sample_logits``, ``one_hot``, ``softmax_with_cross_entropy``. The sampled classes are drawn
    log-uniformly, or given with their probabilities. Jean et al. 2014.

    Parameters
    ----------
    label
        The true classes, int64 (N, num_true).

    Returns
    -------
    Variable
        (N, 1), in the dtype of ``logits``.

    Raises
    ------
    TypeError
        ``logits`` is not a variable of float32 or float64, or ``label`` is not a variable of int64, or
        ``customized_samples`` or ``customized_probabilities`` is not a variable.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 100])
    >>> y = fluid.data("y", [None, 1], "int64")
    >>> fluid.layers.sampled_softmax_with_cross_entropy(x, y, num_samples=10).shape
    (-1, 1)
    """
    layer = "sampled_softmax_with_cross_entropy"
    check_variable(layer, "logits", logits, WIDE_FLOATS)
    check_variable(layer, "label", label, (VarType.INT64,))
    helper = LayerHelper("sample_logits")

    def temporary(dtype: DtypeLike) -> Variable:
        return helper.create_variable_for_type_inference(dtype)

    inputs = {"Logits": logits, "Labels": label}
    if use_customized_samples:
        samples = check_variable(layer, "customized_samples", customized_samples)
        chances = check_variable(layer, "customized_probabilities", customized_probabilities)
        inputs |= {"CustomizedSamples": samples, "CustomizedProbabilities": chances}
    else:
        samples, chances = temporary("int64"), temporary(logits.dtype)
    sampled_logits, sampled_label = temporary(logits.dtype), temporary("int64")
    sampled_soft_label = temporary("float32")
    dims = {"LogitsDim": temporary(logits.dtype), "LabelsDim": temporary(label.type)}
    helper.append_op(
        type="sample_logits",
        inputs=inputs,
        outputs={
            "Samples": samples,
            "Probabilities": chances,
            "SampledLabels": sampled_label,
            "SampledLogits": sampled_logits,
            **dims,
        },
        attrs={
            "use_customized_samples": use_customized_samples,
            "uniq": True,
            "remove_accidental_hits": remove_accidental_hits,
            "num_samples": num_samples,
            "seed": seed,
        },
    )
    dims["LabelsDim"].dtype = label.type  # as Fluid declares it; it holds no values
    loss, probabilities = temporary(logits.dtype), temporary(logits.dtype)
    helper.append_op(
        type="one_hot",
        inputs={"X": sampled_label},
        outputs={"Out": sampled_soft_label},
        attrs={"depth": num_samples + 1},
    )
    helper.append_op(
        type="softmax_with_cross_entropy",
        inputs={"Logits": sampled_logits, "Label": sampled_soft_label},
        outputs={"Softmax": probabilities, "Loss": loss},
        attrs={"soft_label": True, "ignore_index": 0, "numeric_stable_mode": False},
    )
    return loss / num_true


def hsigmoid(
    input: Variable,
    label: Variable,
    num_classes: int,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    name: str | None = None,
    path_table: Variable | None = None,
    path_code: Variable | None = None,
    is_custom: bool = False,
    is_sparse: bool = False,
) -> Variable:
    """Return the loss (N, 1) of finding the label (N, 1) in a binary tree of classes.

    Operator ``hierarchical_sigmoid``. ``input`` is (N, D). The tree is complete, or, with ``is_custom``,
    defined by ``path_table`` and ``path_code``. Morin & Bengio 2005.

    Parameters
    ----------
    label
        The class, int64 (N, 1).
    is_sparse
        Whether the gradient holds only the rows that were used.

    Returns
    -------
    Variable
        (N, 1), in the dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32 or float64, or ``label`` is not a variable of int64.
    GraphError
        There are fewer than two classes, or a custom tree has no paths.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 8])
    >>> y = fluid.data("y", [None, 1], "int64")
    >>> fluid.layers.hsigmoid(x, y, num_classes=6).shape
    (-1, 1)
    """
    check_variable("hsigmoid", "input", input, WIDE_FLOATS)
    check_variable("hsigmoid", "label", label, (VarType.INT64,))
    if not is_custom and num_classes < 2:
        raise GraphError(f"layer 'hsigmoid': num_classes is {num_classes}, expected 2 or more")
    if is_custom and (path_table is None or path_code is None):
        raise GraphError("layer 'hsigmoid': is_custom needs path_table and path_code")
    helper = LayerHelper("hierarchical_sigmoid", name=name)
    out = helper.create_variable_for_type_inference(input.dtype)
    before = helper.create_variable_for_type_inference(input.dtype)
    nodes = num_classes if is_custom else num_classes - 1
    weight = helper.create_parameter(param_attr, [nodes, input.shape[1]], input.dtype)
    inputs = {"X": input, "W": weight, "Label": label}
    if path_table is not None and path_code is not None:
        inputs |= {"PathTable": path_table, "PathCode": path_code}
    bias = helper.create_parameter(bias_attr, [nodes, 1], input.dtype, is_bias=True)
    if bias is not None:
        inputs["Bias"] = bias
    helper.append_op(
        type="hierarchical_sigmoid",
        inputs=inputs,
        outputs={"Out": out, "PreOut": before, "W_Out": weight},
        attrs={
            "num_classes": num_classes,
            "is_sparse": is_sparse and is_custom,
            "remote_prefetch": is_sparse and is_custom,
        },
    )
    return out
