"""CTC: labels of sequences without an alignment.

Parameters
----------
blank
    The class that stands for no symbol.
input_length
    The lengths of the inputs, int64, for padded batches; None where there is a LoD.
"""

from __future__ import annotations

from typing import overload

from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.emit import emit_all
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.reduction.sort import topk
from paddlelike.layers.tensor.reshape import squeeze

__all__ = ["ctc_greedy_decoder", "warpctc"]


def warpctc(
    input: Variable,
    label: Variable,
    blank: int = 0,
    norm_by_times: bool = False,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
) -> Variable:
    """Return the CTC loss of each sequence, (sequences, 1), of the softmax of ``input``.

    Operator ``warpctc``. ``input`` (T, classes + 1) and ``label`` int32 (T, 1) have LoD; or they are
    (longest, N, classes + 1) and (N, longest label) with their lengths ``input_length`` and
    ``label_length``, int64 (N,). ``blank`` is the class of no label. ``norm_by_times`` divides gradients by
    the number of steps. Graves et al. 2006. Raises TypeError unless the inputs are variables of supported
    dtypes.

    Parameters
    ----------
    input
        Unnormalized scores (T, classes + 1) with LoD, or (longest, N, classes + 1) with ``input_length``.
    label
        int32 (T, 1) with LoD, or (N, longest label) with ``label_length``.
    norm_by_times
        Whether gradients are divided by the count of steps.
    label_length
        The lengths of the labels, int64 (N,), for padded batches; None where there is a LoD.

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
    ``input_length`` (N, 1) gives (N, L), padded with ``padding_value``, and the lengths. Raises TypeError
    unless ``input`` is a variable of a supported dtype.

    ``blank`` is the class that stands for no symbol.

    Parameters
    ----------
    input
        Probabilities (T, classes + 1) with LoD, or (N, L, classes + 1) with ``input_length``.
    padding_value
        What fills rows of a padded result.

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
