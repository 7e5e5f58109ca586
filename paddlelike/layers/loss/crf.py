"""Conditional random fields over sequences.

Parameters
----------
input
    Scores of each label: (T, D) with LoD, or (N, L, D) with ``length``.
label
    The labels, int64: (T, 1) with LoD, or (N, L) with ``length``.
length
    The lengths of the sequences, int64 (N, 1), for padded batches; None where there is a LoD.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.emit import emit, emit_all
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["crf_decoding", "linear_chain_crf"]


def linear_chain_crf(
    input: Variable, label: Variable, param_attr: ParamAttrLike = None, length: Variable | None = None
) -> Variable:
    """Return the loss of each sequence's labels under a conditional random field: (sequences, 1).

    Operator ``linear_chain_crf``. ``input`` (T, D) holds a score per label; ``label`` is int64 (T, 1), both
    with LoD; or (N, L, D) and (N, L) with ``length`` (N, 1). The weight, (D + 2, D), holds the scores of
    first labels, of last labels and of transitions. Name it, to use it in :func:`crf_decoding`. Raises
    TypeError unless ``input`` and ``label`` are variables of supported dtypes.

    Parameters
    ----------
    param_attr
        The weight (D + 2, D): scores of first labels, of last labels and of transitions.

    >>> from paddlelike.input import data
    >>> words, tags = data("words", [None, 4], lod_level=1), data("tags", [None, 1], "int64", lod_level=1)
    >>> linear_chain_crf(words, tags, param_attr="crfw").shape
    (-1, 1)
    >>> crf_decoding(words, "crfw").lod_level
    1
    """
    check_variable("linear_chain_crf", "input", input, WIDE_FLOATS)
    check_variable("linear_chain_crf", "label", label, (VarType.INT64,))
    helper = LayerHelper("linear_chain_crf")
    size = input.shape[1 if length is None else 2]
    transition = helper.create_parameter(param_attr, [size + 2, size], input.dtype)
    slots = ("Alpha", "EmissionExps", "TransitionExps", "LogLikelihood")
    inputs = {"Emission": input, "Transition": transition, "Label": label, "Length": length}
    return emit_all("linear_chain_crf", inputs, dict.fromkeys(slots, input.dtype), helper=helper)[-1]


def crf_decoding(
    input: Variable, param_attr: ParamAttrLike, label: Variable | None = None, length: Variable | None = None
) -> Variable:
    """Return the label sequences with the greatest score, int64 (T, 1), or (N, L) with ``length``.

    Operator ``crf_decoding``. ``param_attr`` names the weight of :func:`linear_chain_crf`. With ``label``
    the result is 1 where it is correct, else 0. Raises TypeError unless ``input`` is a variable of a
    supported dtype.

    Parameters
    ----------
    label
        The labels to compare with; None to return the decoded ones.
    param_attr
        The weight of :func:`linear_chain_crf`, by its name.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> words = fluid.data("words", [None, 2], lod_level=1)
    >>> tags = fluid.data("tags", [None, 1], "int64", lod_level=1)
    >>> no_preference = fluid.ParamAttr("crf", fluid.initializer.Constant(0.0))
    >>> loss = fluid.layers.linear_chain_crf(words, tags, param_attr=no_preference)
    >>> best = fluid.layers.crf_decoding(words, fluid.ParamAttr("crf"))
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> scores = fluid.LoDTensor(np.array([[3, 1], [0, 2], [5, 4]], "float32"), [[0, 2, 3]])
    >>> labels = fluid.LoDTensor(np.zeros((3, 1), "int64"), [[0, 2, 3]])
    >>> (found,) = exe.run(feed={"words": scores, "tags": labels}, fetch_list=[best], return_numpy=False)
    >>> np.array(found).ravel()
    array([0, 1, 0])
    """
    check_variable("crf_decoding", "input", input, WIDE_FLOATS)
    helper = LayerHelper("crf_decoding", param_attr=param_attr)
    inputs = {
        "Emission": input,
        "Transition": helper.get_parameter(getattr(helper.param_attr, "name", "")),
        "Label": label,
        "Length": length,
    }
    return emit("crf_decoding", inputs, helper=helper, dtype=VarType.INT64, slot="ViterbiPath")
