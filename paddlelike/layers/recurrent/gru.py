"""GRU: dynamic_gru over sequences of any length, and gru_unit, one step.

Parameters
----------
input
    Sequences (T, 3 * size) with LoD, usually the result of :func:`fc`.
is_reverse
    Whether sequences are read from their ends.
gate_activation
    The activation of the gates.
candidate_activation, activation
    The activation of the candidate.
h_0
    The first states, (sequences, size); None for zeros.
hidden
    The state before the step, (N, size / 3).
origin_mode
    Whether the update gate weighs the candidate as in Cho et al., 2014.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.errors import GraphError
from paddlelike.framework import Variable, warn_quirk
from paddlelike.layers.emit import FLOATS, WIDE_FLOATS, check_choice, check_variable, emit_all
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["dynamic_gru", "gru_unit"]


def dynamic_gru(
    input: Variable,
    size: int,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    candidate_activation: str = "tanh",
    h_0: Variable | None = None,
    origin_mode: bool = False,
) -> Variable:
    """Return the hidden states of gated recurrent units over every sequence, (T, size).

    Operator ``gru``. With ``origin_mode`` the formula is from Cho et al. 2014, otherwise from Chung et al.
    2014.

    Parameters
    ----------
    size
        The width of the state.

    Returns
    -------
    Variable
        (T, size), with the LoD and dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float16, float32 or float64.

    >>> from paddlelike.input import data
    >>> dynamic_gru(data("projected", [None, 24], lod_level=1), size=8).shape
    (-1, 8)
    """
    check_variable("dynamic_gru", "input", input, FLOATS)
    helper = LayerHelper("gru")
    dtype = input.dtype
    inputs = {"Input": input}
    inputs["Weight"] = helper.create_parameter(param_attr, [size, 3 * size], dtype)
    inputs["Bias"] = helper.create_parameter(bias_attr, [1, 3 * size], dtype, is_bias=True)
    if h_0 is not None:
        inputs["H0"] = check_width("dynamic_gru", "h_0", h_0, size)
    outputs = dict.fromkeys(("Hidden", "BatchGate", "BatchResetHiddenPrev", "BatchHidden"), dtype)
    attrs = {
        "is_reverse": is_reverse,
        "gate_activation": gate_activation,
        "activation": candidate_activation,
        "origin_mode": origin_mode,
    }
    return emit_all("gru", inputs, outputs, attrs, helper=helper)[0]


_ACTIVATIONS = ("identity", "sigmoid", "tanh", "relu")  # gru_unit takes their index


def gru_unit(
    input: Variable,
    hidden: Variable,
    size: int,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    activation: str = "tanh",
    gate_activation: str = "sigmoid",
    origin_mode: bool = False,
) -> tuple[Variable, Variable, Variable]:
    """Return the new hidden state of a GRU after one step, the old state after the reset, and the gates.

    Operator ``gru_unit``. Activations other than the defaults are ignored as in Fluid, see
    ``fluid.quirks()``.

    Parameters
    ----------
    input
        One step of N sequences, (N, size), usually the result of :func:`fc`.
    size
        3 times the width of the state.

    Returns
    -------
    hidden : Variable
        (N, size / 3): the new state.
    reset : Variable
        (N, size / 3): the old state times the reset gate.
    gates : Variable
        (N, size): the gates.

    Raises
    ------
    TypeError
        ``input`` or ``hidden`` is not a variable of float32 or float64.
    GraphError
        ``activation`` or ``gate_activation`` is neither sigmoid, tanh, relu nor identity.

    >>> import paddlelike as fluid
    >>> projected, state = fluid.data("projected", [None, 12]), fluid.data("state", [None, 4])
    >>> new_state, reset, gates = fluid.layers.gru_unit(projected, state, size=12)
    >>> new_state.shape, gates.shape
    ((-1, 4), (-1, 12))
    """
    check_variable("gru_unit", "input", input, WIDE_FLOATS)
    check_variable("gru_unit", "hidden", hidden, WIDE_FLOATS)
    check_choice("gru_unit", "activation", activation, _ACTIVATIONS)
    check_choice("gru_unit", "gate_activation", gate_activation, _ACTIVATIONS)
    usual = ("tanh", "sigmoid")
    if (activation, gate_activation) != usual and warn_quirk("gru_unit_activations"):
        activation, gate_activation = usual
    helper = LayerHelper("gru_unit")
    dtype, width = input.dtype, size // 3
    inputs = {"Input": input, "HiddenPrev": hidden}
    inputs["Weight"] = helper.create_parameter(param_attr, [width, 3 * width], dtype)
    slots = ("Gate", "ResetHiddenPrev", "Hidden")
    outputs = {slot: helper.create_variable_for_type_inference(dtype) for slot in slots}
    bias = helper.create_parameter(bias_attr, [1, 3 * width], dtype, is_bias=True)
    if bias is not None:
        inputs["Bias"] = bias
    attrs = {
        "activation": _ACTIVATIONS.index(activation),
        "gate_activation": _ACTIVATIONS.index(gate_activation),
        "origin_mode": origin_mode,
    }
    helper.append_op(type="gru_unit", inputs=inputs, outputs=outputs, attrs=attrs)
    return outputs["Hidden"], outputs["ResetHiddenPrev"], outputs["Gate"]


def check_width(layer: str, argument: str, x: Variable, width: int) -> Variable:
    check_variable(layer, argument, x)
    if len(x.shape) != 2 or x.shape[1] != width:
        raise GraphError(f"layer {layer!r}: {argument} is {list(x.shape)}, expected (sequences, {width})")
    return x
