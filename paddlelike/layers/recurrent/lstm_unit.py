"""lstm_unit: one step of LSTM.

Parameters
----------
x_t
    The input of the step, (N, M).
hidden_t_prev, cell_t_prev
    The states before the step, (N, D).
forget_bias
    Added to the forget gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.emit import emit_all
from paddlelike.layers.linalg.fc import fc
from paddlelike.layers.tensor.concat import concat

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["lstm_unit"]


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
