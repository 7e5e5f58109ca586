"""Long short-term memory over sequences, over padded batches, and of one step.

Parameters
----------
input
    (T, size) with LoD, usually the result of :func:`fc`.
size
    4 times the width of the cell.
h_0, c_0
    The initial states (``h_0``) and cells (``c_0``), one row per sequence; None for zeros.
use_peepholes
    Whether the gates read the cell.
is_reverse
    Whether sequences are read from their ends.
gate_activation
    The activation of the gates: sigmoid, tanh, relu or identity.
cell_activation
    The activation of the cell's output.
candidate_activation
    The activation of the candidates.
proj_size
    The width of the projection.
proj_activation
    The activation of the projection.
cell_clip, proj_clip
    The bound of the absolute values of cells and of projections; None for no bound.
x_t
    The input of the step, (N, M).
hidden_t_prev, cell_t_prev
    The states before the step, (N, D).
forget_bias
    Added to the forget gate.
init_h, init_c
    The first states, (layers * directions, N, hidden_size).
max_len
    It has no effect.
hidden_size
    The width of the states.
num_layers
    The number of stacked LSTMs.
dropout_prob
    The probability of dropout between layers.
is_bidirec
    Whether each layer reads in both directions.
default_initializer
    The initializer of the weights; None for Xavier's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddlelike.core import VarType, convert_dtype
from paddlelike.errors import GraphError
from paddlelike.framework import Variable, warn_quirk
from paddlelike.layers.emit import WIDE_FLOATS, check_variable, emit_all
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.linalg.products import fc
from paddlelike.layers.recurrent.gru import check_width
from paddlelike.layers.tensor.concat import concat

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.initializer import Initializer
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["dynamic_lstm", "dynamic_lstmp", "lstm", "lstm_unit"]


def dynamic_lstm(
    input: Variable,
    size: int,
    h_0: Variable | None = None,
    c_0: Variable | None = None,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    dtype: DtypeLike = "float32",
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Return the hidden states and cells of an LSTM over every sequence, (T, size / 4) each.

    Operator ``lstm``. Hochreiter & Schmidhuber 1997.

    Returns
    -------
    hidden : Variable
        (T, size / 4), with the LoD and dtype of ``input``.
    cell : Variable
        The cells, in the same shape.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32 or float64.

    >>> from paddlelike.input import data
    >>> hidden, cell = dynamic_lstm(data("projected", [None, 32], lod_level=1), size=32)
    >>> hidden.shape, hidden.lod_level
    ((-1, 8), 1)
    """
    check_variable("dynamic_lstm", "input", input, WIDE_FLOATS)
    width = _cell_width("dynamic_lstm", size)
    helper = LayerHelper("lstm", name=name)
    inputs = {"Input": input, **_initial_states("dynamic_lstm", width, h_0, width, c_0)}
    inputs["Weight"] = helper.create_parameter(param_attr, [width, size], dtype)
    inputs["Bias"] = _bias(helper, "dynamic_lstm", bias_attr, (7 if use_peepholes else 4) * width, dtype)
    outputs = dict.fromkeys(("Hidden", "Cell", "BatchGate", "BatchCellPreAct"), dtype)
    attrs = {
        "use_peepholes": use_peepholes,
        "is_reverse": is_reverse,
        "gate_activation": gate_activation,
        "cell_activation": cell_activation,
        "candidate_activation": candidate_activation,
    }
    hidden, cell, *_ = emit_all("lstm", inputs, outputs, attrs, helper=helper)
    _warn_cell_gradient(width, dtype)
    return hidden, cell


def dynamic_lstmp(
    input: Variable,
    size: int,
    proj_size: int,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    proj_activation: str = "tanh",
    dtype: DtypeLike = "float32",
    name: str | None = None,
    h_0: Variable | None = None,
    c_0: Variable | None = None,
    cell_clip: float | None = None,
    proj_clip: float | None = None,
) -> tuple[Variable, Variable]:
    """Return the projections (T, proj_size) and cells of an LSTM whose projection is fed back.

    Operator ``lstmp``. ``h_0`` is (sequences, proj_size), ``c_0`` (sequences, size / 4). Sak et al. 2014.

    Returns
    -------
    projection : Variable
        (T, proj_size), with the LoD and dtype of ``input``.
    cell : Variable
        (T, size / 4), with the same LoD.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32 or float64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 16], "float32", lod_level=1)
    >>> [one.shape for one in fluid.layers.dynamic_lstmp(x, size=16, proj_size=3)]
    [(-1, 3), (-1, 4)]
    """
    check_variable("dynamic_lstmp", "input", input, WIDE_FLOATS)
    width = _cell_width("dynamic_lstmp", size)
    helper = LayerHelper("lstmp", name=name)
    inputs = {"Input": input, **_initial_states("dynamic_lstmp", proj_size, h_0, width, c_0)}
    inputs["Weight"] = helper.create_parameter(param_attr, [proj_size, size], dtype)
    inputs["ProjWeight"] = helper.create_parameter(param_attr, [width, proj_size], dtype)
    inputs["Bias"] = _bias(helper, "dynamic_lstmp", bias_attr, (7 if use_peepholes else 4) * width, dtype)
    projection, cell, _, hidden, gate, pre_act = (
        helper.create_variable_for_type_inference(dtype) for _ in range(6)
    )  # the third is created and not used, as in Fluid
    outputs = {
        "Projection": projection,
        "Cell": cell,
        "BatchHidden": hidden,
        "BatchGate": gate,
        "BatchCellPreAct": pre_act,
    }
    attrs: dict[str, Any] = {
        "use_peepholes": use_peepholes,
        "is_reverse": is_reverse,
        "gate_activation": gate_activation,
        "cell_activation": cell_activation,
        "candidate_activation": candidate_activation,
        "proj_activation": proj_activation,
        "cell_clip": cell_clip,
        "proj_clip": proj_clip,
    }
    helper.append_op(type="lstmp", inputs=inputs, outputs=outputs, attrs=attrs)
    if not cell_clip:
        _warn_cell_gradient(width, dtype)
    return projection, cell


def _warn_cell_gradient(width: int, dtype: DtypeLike) -> None:
    if width % 8 == 0 and convert_dtype(dtype) == VarType.FP32:
        warn_quirk("lstm_cell_gradient")


def _cell_width(layer: str, size: int) -> int:
    if size % 4:
        raise GraphError(
            f"layer {layer!r}: size is {size}, expected 4 times the width of the cell",
            hint="project the input first: fc(input, size=4 * width), then size=4 * width here",
        )
    return size // 4


def _bias(helper: LayerHelper, layer: str, attr: ParamAttrLike, width: int, dtype: DtypeLike) -> Variable:
    bias: Variable | None = helper.create_parameter(attr, [1, width], dtype, is_bias=True)
    if bias is None:
        raise GraphError(
            f"layer {layer!r}: bias_attr is False, but the operator always has a bias",
            hint="ParamAttr(trainable=False, initializer=fluid.initializer.Constant(0.0)) keeps it at 0",
        )
    return bias


def _initial_states(
    layer: str, h_width: int, h_0: Variable | None, c_width: int, c_0: Variable | None
) -> dict[str, Variable]:
    """Return the initial states as inputs of an operator."""
    given = {}
    if h_0 is not None:
        given["H0"] = check_width(layer, "h_0", h_0, h_width)
    if c_0 is not None:
        given["C0"] = check_width(layer, "c_0", c_0, c_width)
    return given


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

    ``x_t`` and ``hidden_t_prev`` are concatenated, and ``fc`` computes 4 D gates from them. The operator
    ``lstm_unit`` computes the result from the gates and ``cell_t_prev``.

    Returns
    -------
    hidden : Variable
        (N, D), in the dtype of ``x_t``.
    cell : Variable
        (N, D).

    Raises
    ------
    TypeError
        An input is not a variable of float32 or float64.
    GraphError
        An input is not a matrix, the numbers of rows differ, or ``hidden_t_prev`` and ``cell_t_prev`` have
        different widths.

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
        raise GraphError(f"layer 'lstm_unit': {described}; expected equal numbers of rows")
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


def lstm(
    input: Variable,
    init_h: Variable,
    init_c: Variable,
    max_len: int,
    hidden_size: int,
    num_layers: int,
    dropout_prob: float = 0.0,
    is_bidirec: bool = False,
    is_test: bool = False,
    name: str | None = None,
    default_initializer: Initializer | None = None,
    seed: int = -1,
) -> tuple[Variable, Variable, Variable]:
    """Return the outputs of stacked LSTMs over a batch of sequences of one length (``cudnn_lstm``).

    All weights are one vector. Unlike Fluid's, this layer runs on a CPU.

    Parameters
    ----------
    seed
        The seed of the dropout; -1 for the program's.
    input
        (T, N, D).

    Returns
    -------
    out : Variable
        (T, N, hidden_size * directions): the hidden states of the last layer.
    last_h : Variable
        (layers * directions, N, hidden_size): the last hidden state of each layer and direction.
    last_c : Variable
        The last cells, in the shape of ``last_h``.

    Raises
    ------
    TypeError
        An input is not a variable of float32 or float64.

    >>> from paddlelike.input import data
    >>> first = [data(name, [2, 3, 8]) for name in ("h", "c")]
    >>> out, _, _ = lstm(data("x", [5, 3, 4]), *first, max_len=5, hidden_size=8, num_layers=2)
    >>> out.shape
    (5, 3, 8)
    """
    check_variable("lstm", "input", input, WIDE_FLOATS)
    for argument, value in (("init_h", init_h), ("init_c", init_c)):
        check_variable("lstm", argument, value, WIDE_FLOATS)
    from paddlelike.ops.recurrent.cudnn_lstm import count_parameters  # late: for few programs

    helper = LayerHelper("cudnn_lstm", name=name)
    width = input.shape[-1]
    count = count_parameters(width, hidden_size, num_layers, is_bidirec=is_bidirec)
    weight = helper.create_parameter(
        helper.param_attr, [count], input.dtype, default_initializer=default_initializer
    )
    outputs = {
        slot: helper.create_variable_for_type_inference(input.dtype) for slot in ("Out", "last_h", "last_c")
    }
    cache = helper.create_variable(persistable=True, type=VarType.RAW, stop_gradient=True)
    helper.append_op(
        type="cudnn_lstm",
        inputs={"Input": input, "InitH": init_h, "InitC": init_c, "W": weight, "Cache": cache},
        outputs=outputs,
        attrs={
            "max_len": max_len,
            "is_bidirec": is_bidirec,
            "input_size": width,
            "hidden_size": hidden_size,
            "num_layers": num_layers,
            "is_test": is_test,
            "dropout_prob": dropout_prob,
            "seed": seed,
        },
    )
    return outputs["Out"], outputs["last_h"], outputs["last_c"]
