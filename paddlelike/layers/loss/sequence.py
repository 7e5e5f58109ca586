"""Losses of labelled sequences: conditional random fields and CTC.

Parameters
----------
input
    Scores of each label: (T, D) with LoD, or (N, L, D) with ``length``.
label
    The labels, int64: (T, 1) with LoD, or (N, L) with ``length``.
length
    The lengths of the sequences, int64 (N, 1), for padded batches; None if the rows have a LoD.
blank
    The class of the blank, which stands for no symbol.
input_length
    The lengths of the inputs, int64, for padded batches; None if the rows have a LoD.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from paddlelike.core import VarType
from paddlelike.framework import Variable
from paddlelike.layers.emit import WIDE_FLOATS, check_variable, emit, emit_all
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.reduction import topk
from paddlelike.layers.tensor.reshape import squeeze

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["crf_decoding", "ctc_greedy_decoder", "linear_chain_crf", "warpctc"]


def linear_chain_crf(
    input: Variable, label: Variable, param_attr: ParamAttrLike = None, length: Variable | None = None
) -> Variable:
    """Return the loss of each sequence's labels under a conditional random field: (sequences, 1).

    Operator ``linear_chain_crf``. :func:`crf_decoding` finds the weight by the name that you give it.

    Parameters
    ----------
    param_attr
        The weight (D + 2, D): scores of first labels, of last labels and of transitions.

    Returns
    -------
    Variable
        (sequences, 1), in the dtype of ``input``: the negative log likelihood of the labels.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32 or float64, or ``label`` is not a variable of int64.

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

    Operator ``crf_decoding``. With ``label`` the result is 1 where the decoded label is correct, else 0.

    Parameters
    ----------
    label
        The labels to compare with; None to return the decoded ones.
    param_attr
        The name of the weight of :func:`linear_chain_crf`.

    Returns
    -------
    Variable
        int64 (T, 1) with the LoD of ``input``, or (N, L) with ``length``: the labels; 1 or 0 with ``label``.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32 or float64.

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


def warpctc(
    input: Variable,
    label: Variable,
    blank: int = 0,
    norm_by_times: bool = False,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
) -> Variable:
    """Return the CTC loss of each sequence, (sequences, 1), computed from the softmax of ``input``.

    Operator ``warpctc``. Graves et al. 2006.

    Parameters
    ----------
    input
        Unnormalized scores (T, classes + 1) with LoD, or (longest, N, classes + 1) with ``input_length``.
    label
        int32 (T, 1) with LoD, or (N, longest label) with ``label_length``.
    norm_by_times
        Whether gradients are divided by the number of steps.
    label_length
        The lengths of the labels, int64 (N,), for padded batches; None if the rows have a LoD.

    Returns
    -------
    Variable
        (sequences, 1), in the dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32 or float64, ``label`` not one of int32, or a length not one of
        int64.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> scores = fluid.data("scores", [None, 3], lod_level=1)
    >>> label = fluid.data("label", [None, 1], "int32", lod_level=1)
    >>> loss = fluid.layers.warpctc(scores, label, blank=0)
    >>> steps = fluid.LoDTensor(np.zeros((2, 3), "float32"), [[0, 2]])
    >>> one = fluid.LoDTensor(np.array([[1]], "int32"), [[0, 1]])
    >>> (costs,) = fluid.Executor().run(feed={"scores": steps, "label": one}, fetch_list=[loss])
    >>> bool(np.allclose(costs, np.log(3)))  # three of nine equally likely paths give the label
    True
    """
    check_variable("warpctc", "input", input, WIDE_FLOATS)
    check_variable("warpctc", "label", label, (VarType.INT32,))
    inputs = {"Logits": input, "Label": label}
    if input_length is not None and label_length is not None:
        for argument, length in (("input_length", input_length), ("label_length", label_length)):
            check_variable("warpctc", argument, length, (VarType.INT64,))
        inputs |= {"LogitsLength": input_length, "LabelLength": label_length}
    attrs = {"blank": blank, "norm_by_times": norm_by_times}
    outputs = {"Loss": input.dtype, "WarpCTCGrad": input.dtype}
    return emit_all("warpctc", inputs, outputs, attrs)[0]


@overload
def ctc_greedy_decoder(
    input: Variable, blank: int, input_length: None = None, padding_value: int = 0, name: str | None = None
) -> Variable: ...


@overload
def ctc_greedy_decoder(
    input: Variable, blank: int, input_length: Variable, padding_value: int = 0, name: str | None = None
) -> tuple[Variable, Variable]: ...


def ctc_greedy_decoder(
    input: Variable,
    blank: int,
    input_length: Variable | None = None,
    padding_value: int = 0,
    name: str | None = None,
) -> Variable | tuple[Variable, Variable]:
    """Return the most likely class of every step, without repeats and blanks (``top_k``, ``ctc_align``).

    ``input`` (T, classes + 1) with LoD gives int64 (T', 1) with LoD; (N, L, classes + 1) with
    ``input_length`` (N, 1) gives (N, L), padded with ``padding_value``, and the lengths.

    Parameters
    ----------
    input
        Probabilities (T, classes + 1) with LoD, or (N, L, classes + 1) with ``input_length``.
    padding_value
        The value that fills rows of a padded result.

    Returns
    -------
    out : Variable
        int64 (T', 1) with LoD; or (N, L) with ``input_length``.
    lengths : Variable
        Only with ``input_length``: int64 (N, 1), the number of classes in each row.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32 or float64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 5], "float32", lod_level=1)
    >>> fluid.layers.ctc_greedy_decoder(x, blank=4).shape
    (-1, 1)
    """
    check_variable("ctc_greedy_decoder", "input", input, WIDE_FLOATS)
    helper = LayerHelper("ctc_greedy_decoder", name=name)
    _, best = topk(input, k=1)
    out = helper.create_variable_for_type_inference(VarType.INT64)
    attrs = {"merge_repeated": True, "blank": blank}
    if input_length is None:
        helper.append_op(type="ctc_align", inputs={"Input": best}, outputs={"Output": out}, attrs=attrs)
        return out
    length = helper.create_variable_for_type_inference(VarType.INT64)
    helper.append_op(
        type="ctc_align",
        inputs={"Input": squeeze(best, [2]), "InputLength": input_length},
        outputs={"Output": out, "OutputLength": length},
        attrs={**attrs, "padding_value": padding_value},
    )
    return out, length
