"""One step of LSTM and GRU: lstm_unit and gru_unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.layers.checks import WIDE_FLOATS, check_choice, check_variable
from paddlelike.layers.emit import emit_all
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.linalg.matmul import fc
from paddlelike.layers.tensor.joining import concat

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["gru_unit", "lstm_unit"]


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
    """Return the new hidden state of a GRU after one step, the old one after reset, and the gates.

    Operator ``gru_unit``. ``input`` is (N, size), ``hidden`` (N, size / 3); the gates are (N, size).
    ``activation`` is that of the candidate, ``gate_activation`` that of the gates; other ones than the
    defaults are ignored as in Fluid, see ``fluid.quirks()``. With ``origin_mode`` the update gate weights
    the candidate as in Cho et al. 2014. Raises TypeError unless ``input`` and ``hidden`` are variables of
    supported dtypes and GraphError for another ``activation`` or ``gate_activation``.

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


def lstm_unit(
    x_t: Variable,
    hidden_t_prev: Variable,
    cell_t_prev: Variable,
    forget_bias: float = 0.0,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Return the new hidden state and cell of an LSTM after one step, (N, D) each.

    ``concat`` of ``x_t`` (N, M) and ``hidden_t_prev`` (N, D), ``fc`` to 4 D gates, operator ``lstm_unit``
    on those and ``cell_t_prev`` (N, D). Raises TypeError unless the inputs are variables of supported
    dtypes, GraphError when shapes do not match.

    ``forget_bias`` is added to the forget gate.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3])
    >>> y = fluid.data("y", [None, 4])
    >>> z = fluid.data("z", [None, 4])
    >>> [one.shape for one in fluid.layers.lstm_unit(x, y, z)]
    [(-1, 4), (-1, 4)]
    """
    rows = {"x_t": x_t, "hidden_t_prev": hidden_t_prev, "cell_t_prev": cell_t_prev}
    for argument, variable in rows.items():
        check_variable("lstm_unit", argument, variable, WIDE_FLOATS)
        if len(variable.shape) != 2:
            raise GraphError(f"layer 'lstm_unit': {argument} is {list(variable.shape)}, expected 2 dims")
    if len({variable.shape[0] for variable in rows.values()}) > 1:
        described = ", ".join(f"{argument} {list(v.shape)}" for argument, v in rows.items())
        raise GraphError(f"layer 'lstm_unit': {described}; expected equal counts of rows")
    if hidden_t_prev.shape[1] != cell_t_prev.shape[1]:
        described = f"hidden_t_prev {list(hidden_t_prev.shape)}, cell_t_prev {list(cell_t_prev.shape)}"
        raise GraphError(f"layer 'lstm_unit': {described}; expected equal widths")
    gates = fc(
        concat([x_t, hidden_t_prev], axis=1),
        4 * cell_t_prev.shape[1],
        param_attr=param_attr,
        bias_attr=bias_attr,
    )
    inputs = {"X": gates, "C_prev": cell_t_prev}
    outputs = {"C": x_t.dtype, "H": x_t.dtype}
    attrs = {"forget_bias": forget_bias}
    cell, hidden = emit_all("lstm_unit", inputs, outputs, attrs, name=name)
    return hidden, cell
