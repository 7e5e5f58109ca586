"""lstm: layers of LSTM over a batch of sequences that are padded to one length.

Parameters
----------
input
    (T, N, D).
init_h, init_c
    The first states, (layers * directions, N, hidden_size).
max_len
    Not read.
hidden_size
    The width of the states.
num_layers
    How many LSTMs lie one above the other.
dropout_prob
    The probability of dropout between layers.
is_bidirec
    Whether each layer reads in both directions.
default_initializer
    The initializer of the weights; None for Xavier's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.helper import LayerHelper
from paddlelike.ops.recurrent.cudnn_lstm import count_parameters

if TYPE_CHECKING:
    from paddlelike.initializer import Initializer

__all__ = ["lstm"]


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

    ``input`` is (T, N, D); ``init_h`` and ``init_c`` are (layers x directions, N, hidden_size). The results
    are the hidden states of the last layer, (T, N, hidden_size x directions), and the last states of all
    layers. All weights are one vector. Dropout is between layers. Unlike in Fluid it runs on a CPU. Raises
    TypeError unless the inputs are variables of supported dtypes.

    ``max_len`` is not read. ``num_layers`` LSTMs lie one above the other, with dropout of
    ``dropout_prob`` between them, drawn from ``seed``; with ``is_bidirec`` each reads in both
    directions. ``default_initializer`` sets the weights.

    Parameters
    ----------
    seed
        The seed of the dropout; -1 for the program's.

    >>> from paddlelike.input import data
    >>> first = [data(name, [2, 3, 8]) for name in ("h", "c")]
    >>> out, _, _ = lstm(data("x", [5, 3, 4]), *first, max_len=5, hidden_size=8, num_layers=2)
    >>> out.shape
    (5, 3, 8)
    """
    check_variable("lstm", "input", input, WIDE_FLOATS)
    for argument, value in (("init_h", init_h), ("init_c", init_c)):
        check_variable("lstm", argument, value, WIDE_FLOATS)
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
