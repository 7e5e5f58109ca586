"""sampled_softmax_with_cross_entropy: a loss over a sample of the classes.

Parameters
----------
logits
    Unnormalized scores (N, classes).
label
    The true classes, int64 (N, num_true).
num_samples
    How many classes are drawn.
num_true
    The count of true classes of a row.
remove_accidental_hits
    Whether drawn classes that are the label do not count.
use_customized_samples
    Whether ``customized_samples`` and ``customized_probabilities`` replace those drawn.
customized_samples
    The classes, int64 (N, num_true + num_samples).
customized_probabilities
    Their probabilities, in the same shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.core.typing import DtypeLike

__all__ = ["sampled_softmax_with_cross_entropy"]


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
    """Return the cross entropy over the label (N, num_true) and ``num_samples`` sampled classes, (N, 1).

    Operators ``sample_logits``, ``one_hot``, ``softmax_with_cross_entropy``. Classes are drawn
    log-uniformly, or given with their probabilities. Jean et al. 2014. Raises TypeError unless ``logits``,
    ``label``, ``customized_samples`` and ``customized_probabilities`` are variables of supported dtypes.

    With ``remove_accidental_hits`` drawn classes that are the label do not count.
    ``use_customized_samples`` takes ``customized_samples`` and ``customized_probabilities`` in place
    of those drawn from ``seed``.

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
