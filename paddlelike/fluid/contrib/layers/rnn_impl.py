"""``fluid.contrib.layers.rnn_impl``: LSTM and GRU networks over padded sequences, made of plain operators."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from paddlelike import layers, unique_name
from paddlelike.foundation.docstrings import complete_docstring, describe_like, read_entries
from paddlelike.framework import Variable
from paddlelike.layers.helper import LayerHelper
from paddlelike.param_attr import ParamAttr

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["BasicGRUUnit", "BasicLSTMUnit", "basic_gru", "basic_lstm"]

Activation = Callable[[Variable], Variable]


class _Unit:
    """One step of one layer; the first call creates its parameters, since it shows the input's width."""

    def __init__(
        self,
        name_scope: str,
        hidden_size: int,
        param_attr: ParamAttrLike,
        bias_attr: ParamAttrLike,
        dtype: DtypeLike,
    ) -> None:
        full_name = unique_name.generate(f"{name_scope}/{type(self).__name__}")
        self._helper = LayerHelper(full_name, name=full_name)
        self._hidden_size = hidden_size
        self._param_attr = param_attr
        self._bias_attr = bias_attr
        self._dtype = dtype
        self._parameters: list[Any] = []

    def _create(self, attr: ParamAttrLike, shape: list[int]) -> Variable:
        parameter: Variable = self._helper.create_parameter(attr, shape, self._dtype, is_bias=len(shape) == 1)
        self._parameters.append(parameter)
        return parameter


class BasicLSTMUnit(_Unit):
    """One step of an LSTM: ``unit(input, hidden, cell)`` returns the new hidden state and cell.

    Both are (N, hidden_size).

    The weight is (input + hidden_size, 4 * hidden_size), columns for input gate, candidate, forget gate and
    output gate; ``forget_bias`` is added to the forget gate's bias. As in Fluid, ``gate_activation`` and
    ``activation`` have no effect: gates use sigmoid, candidate and cell tanh.

    Parameters
    ----------
    name_scope
        The first part of the parameters' names.

    See Also
    --------
    fluid.contrib.basic_gru, fluid.contrib.basic_lstm, fluid.contrib.BasicGRUUnit, fluid.layers.rnn

    >>> from paddlelike.input import data
    >>> unit = BasicLSTMUnit("lstm", hidden_size=3)
    >>> hidden, cell = unit(data("x", [2, 4]), data("h", [2, 3]), data("c", [2, 3]))
    >>> cell.shape
    (2, 3)
    """

    def __init__(
        self,
        name_scope: str,
        hidden_size: int,
        param_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        gate_activation: Activation | None = None,
        activation: Activation | None = None,
        forget_bias: float = 1.0,
        dtype: DtypeLike = "float32",
    ) -> None:
        super().__init__(name_scope, hidden_size, param_attr, bias_attr, dtype)
        self._forget_bias = layers.fill_constant([1], dtype, forget_bias)
        self._forget_bias.stop_gradient = False

    def __call__(
        self, input: Variable, pre_hidden: Variable, pre_cell: Variable
    ) -> tuple[Variable, Variable]:
        """Return the new hidden state and cell."""
        if not self._parameters:
            size = self._hidden_size
            self._create(self._param_attr, [input.shape[-1] + size, 4 * size])
            self._create(self._bias_attr, [4 * size])
        weight, bias = self._parameters
        gates = layers.elementwise_add(layers.matmul(layers.concat([input, pre_hidden], 1), weight), bias)
        i, j, f, o = layers.split(gates, num_or_sections=4, dim=-1)
        forget = layers.sigmoid(layers.elementwise_add(f, self._forget_bias))
        kept = layers.elementwise_mul(pre_cell, forget)
        added = layers.elementwise_mul(layers.sigmoid(i), layers.tanh(j))
        cell = layers.elementwise_add(kept, added)
        return layers.tanh(cell) * layers.sigmoid(o), cell


class BasicGRUUnit(_Unit):
    """One step of a GRU: ``unit(input, hidden)`` returns the new hidden state, (N, hidden_size).

    The weights are (input + hidden_size, 2 * hidden_size) for reset and update gate, (input + hidden_size,
    hidden_size) for the candidate; given names get the endings ``_gate`` and ``_candidate``.

    Parameters
    ----------
    name_scope
        The first part of the parameters' names.

    See Also
    --------
    fluid.contrib.basic_gru, fluid.contrib.basic_lstm, fluid.contrib.BasicLSTMUnit, fluid.layers.rnn

    >>> from paddlelike.input import data
    >>> unit = BasicGRUUnit("gru", hidden_size=3)
    >>> unit(data("x", [2, 4]), data("h", [2, 3])).shape
    (2, 3)
    """

    def __init__(
        self,
        name_scope: str,
        hidden_size: int,
        param_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        gate_activation: Activation | None = None,
        activation: Activation | None = None,
        dtype: DtypeLike = "float32",
    ) -> None:
        super().__init__(name_scope, hidden_size, param_attr, bias_attr, dtype)
        self._gate_activation = gate_activation or layers.sigmoid
        self._activation = activation or layers.tanh

    def __call__(self, input: Variable, pre_hidden: Variable) -> Variable:
        """Return the new hidden state."""
        if not self._parameters:
            size = self._hidden_size
            width = input.shape[-1] + size
            self._create(_extend_name(self._param_attr, "_gate"), [width, 2 * size])
            self._create(_extend_name(self._param_attr, "_candidate"), [width, size])
            self._create(_extend_name(self._bias_attr, "_gate"), [2 * size])
            self._create(_extend_name(self._bias_attr, "_candidate"), [size])
        gate_weight, candidate_weight, gate_bias, candidate_bias = self._parameters
        gates = layers.matmul(layers.concat([input, pre_hidden], 1), gate_weight)
        gates = self._gate_activation(layers.elementwise_add(gates, gate_bias))
        r, u = layers.split(gates, num_or_sections=2, dim=1)
        candidate = layers.matmul(layers.concat([input, r * pre_hidden], 1), candidate_weight)
        candidate = self._activation(layers.elementwise_add(candidate, candidate_bias))
        return u * pre_hidden + (1 - u) * candidate


def basic_lstm(
    input: Variable,
    init_hidden: Variable | None,
    init_cell: Variable | None,
    hidden_size: int,
    num_layers: int = 1,
    sequence_length: Variable | None = None,
    dropout_prob: float = 0.0,
    bidirectional: bool = False,
    batch_first: bool = True,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    gate_activation: Activation | None = None,
    activation: Activation | None = None,
    forget_bias: float = 1.0,
    dtype: DtypeLike = "float32",
    name: str = "basic_lstm",
) -> tuple[Variable, Variable, Variable]:
    """Return outputs, last hidden states and last cells of an LSTM network of several layers.

    ``input`` and outputs are (N, T, width) or, unless ``batch_first``, (T, N, width); the width of the
    outputs is ``hidden_size``, or twice that if ``bidirectional``. States are (layers * directions, N,
    hidden_size), by default zeros. Steps after ``sequence_length``, (N,), do not change states. Dropout
    follows every layer.

    Parameters
    ----------
    input
        A batch of sequences, padded, (N, T, D), or (T, N, D) without ``batch_first``.
    init_hidden, init_cell
        The first states, (layers * directions, N, hidden_size); None for zeros.
    hidden_size
        The width of a state.
    num_layers
        The number of layers.
    sequence_length
        The length of each sequence, (N,). None means that all are full.
    dropout_prob
        The probability of dropout between layers.
    bidirectional
        Whether a second network reads backwards.
    batch_first
        Whether the first dim is the batch, not the time.
    param_attr, bias_attr
        The parameters of the units: a :class:`~paddlelike.ParamAttr`, a name, or None.
    gate_activation, activation
        The activations of gates and values, functions of a variable; :func:`basic_lstm`
        does not use them, as in Fluid.
    forget_bias
        The number that is added to the forget gate.
    dtype
        The element type.
    name
        The first part of the parameters' names.

    Returns
    -------
    tuple
        Outputs (N, T, directions * hidden_size), or (T, N, ...), and last hidden states and cells
        (layers * directions, N, hidden_size).

    See Also
    --------
    fluid.contrib.basic_gru, fluid.contrib.BasicGRUUnit, fluid.contrib.BasicLSTMUnit
    fluid.layers.rnn

    Raises
    ------
    TypeError
        ``input`` is not a variable, or ``hidden_size`` is not an int.

    >>> from paddlelike.input import data
    >>> out, hidden, cell = basic_lstm(data("x", [2, 5, 4]), None, None, hidden_size=3)
    >>> out.shape
    (2, 5, 3)
    """

    def make_unit(scope: str, layer: int, kind: str) -> BasicLSTMUnit:
        weight = _extend_name(param_attr, f"_{kind}_w_{layer}")
        # Fluid takes the weight's attribute for biases without a name in the backward direction.
        unnamed = bias_attr if kind == "fw" or getattr(bias_attr, "name", None) else weight
        bias = _extend_name(unnamed, f"_{kind}_b_{layer}") if unnamed is bias_attr else param_attr
        settings = (gate_activation, activation, forget_bias, dtype)
        return BasicLSTMUnit(scope, hidden_size, weight, bias, *settings)

    units = _make_units(make_unit, name, num_layers, bidirectional)
    states = None if init_hidden is None else [init_hidden, init_cell]

    def drop(x: Variable) -> Variable:
        return layers.dropout(x, dropout_prob, dropout_implementation="upscale_in_train")

    network = _Network(units, hidden_size, 2, drop if dropout_prob else None)
    out, (hidden, cell) = network.run(input, states, sequence_length, batch_first)
    return out, hidden, cell


@describe_like(basic_lstm)
def basic_gru(
    input: Variable,
    init_hidden: Variable | None,
    hidden_size: int,
    num_layers: int = 1,
    sequence_length: Variable | None = None,
    dropout_prob: float = 0.0,
    bidirectional: bool = False,
    batch_first: bool = True,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    gate_activation: Activation | None = None,
    activation: Activation | None = None,
    dtype: DtypeLike = "float32",
    name: str = "basic_gru",
) -> tuple[Variable, Variable]:
    """Return outputs and last hidden states of a GRU network of several layers; see :func:`basic_lstm`.

    Dropout does not scale up in training.

    Parameters
    ----------
    input
        A batch of sequences, padded, (N, T, D), or (T, N, D) without ``batch_first``.
    init_hidden
        The first states, (layers * directions, N, hidden_size); None for zeros.

    Returns
    -------
    tuple
        Outputs (N, T, directions * hidden_size), or (T, N, ...), and last states
        (layers * directions, N, hidden_size).

    See Also
    --------
    fluid.contrib.basic_lstm, fluid.contrib.BasicGRUUnit, fluid.contrib.BasicLSTMUnit
    fluid.layers.rnn

    >>> from paddlelike.input import data
    >>> out, last = basic_gru(data("x", [2, 5, 4]), None, hidden_size=3)
    >>> out.shape
    (2, 5, 3)
    """

    def make_unit(scope: str, layer: int, kind: str) -> BasicGRUUnit:
        weight = _extend_name(param_attr, f"_{kind}_w_{layer}")
        bias = _extend_name(bias_attr, f"_{kind}_b_{layer}")
        return BasicGRUUnit(scope, hidden_size, weight, bias, gate_activation, activation, dtype)

    units = _make_units(make_unit, name, num_layers, bidirectional)
    states = None if init_hidden is None else [init_hidden]

    def drop(x: Variable) -> Variable:
        return layers.dropout(x, dropout_prob)

    network = _Network(units, hidden_size, 1, drop if dropout_prob else None)
    out, (hidden,) = network.run(input, states, sequence_length, batch_first)
    return out, hidden


def _make_units(
    make: Callable[[str, int, str], Any], name: str, num_layers: int, bidirectional: bool
) -> list[list[Any]]:
    """Return the units of each direction, layer by layer."""
    directions = [("fw", f"{name}_layers_"), ("bw", f"{name}_reverse_layers_")]
    return [
        [make(f"{scope}{layer}", layer, kind) for layer in range(num_layers)]
        for kind, scope in directions[: 1 + bidirectional]
    ]


def _extend_name(attr: ParamAttrLike, ending: str) -> ParamAttrLike:
    """Return a copy of the attribute with ``ending`` appended to its name; without a name, the same
    attribute.
    """
    if not isinstance(attr, ParamAttr) or attr.name is None:
        return attr
    attr = copy.deepcopy(attr)
    attr.name = f"{attr.name}{ending}"
    return attr


class _Network:
    """Layers of units in one or two directions."""

    def __init__(
        self, units: list[list[Any]], hidden_size: int, state_count: int, drop: Activation | None
    ) -> None:
        self._units = units
        self._size = hidden_size
        self._states = state_count
        self._drop = drop

    def run(
        self, input: Variable, init: Sequence[Any] | None, sequence_length: Variable | None, batch_first: bool
    ) -> tuple[Variable, list[Variable]]:
        """Return the outputs, and the last value of each state over layers and directions."""
        directions, depth = len(self._units), len(self._units[0])
        if batch_first:
            input = layers.transpose(input, [1, 0, 2])
        mask = None
        if sequence_length is not None:
            longest = layers.shape(input)[0]
            mask = layers.sequence_mask(sequence_length, maxlen=longest, dtype="float32")
            mask = layers.transpose(mask, [1, 0])
        if init is not None:
            init = [layers.reshape(state, [depth, directions, -1, self._size]) for state in init]
        out, last = self._run_direction(input, mask, init, 0)
        if directions == 2:
            backward = layers.reverse(input, [0])
            backward_mask = None if mask is None else layers.reverse(mask, [0])
            back_out, back_last = self._run_direction(backward, backward_mask, init, 1)
            out = layers.concat([out, layers.reverse(back_out, [0])], axis=2)
            last = [
                layers.reshape(layers.concat(list(pair), axis=1), [depth * 2, -1, self._size])
                for pair in zip(last, back_last, strict=True)
            ]
        return (layers.transpose(out, [1, 0, 2]) if batch_first else out), last

    def _run_direction(
        self, input: Variable, mask: Variable | None, init: Sequence[Variable] | None, direction: int
    ) -> tuple[Variable, list[Variable]]:
        """Return the outputs (T, N, hidden_size), and the last states, (layers, N, hidden_size)."""
        rnn = layers.StaticRNN()
        units = self._units[direction]
        with rnn.step():
            step = rnn.step_input(input)
            step_mask = None if mask is None else rnn.step_input(mask)
            for layer, unit in enumerate(units):
                before = [
                    rnn.memory(batch_ref=input, shape=[-1, self._size], ref_batch_dim_idx=1)
                    if init is None
                    else rnn.memory(init=init[index][layer, direction])
                    for index in range(self._states)
                ]
                found = unit(step, *before)
                after = list(found) if isinstance(found, tuple) else [found]
                if step_mask is not None:
                    after = [_mask(new, old, step_mask) for new, old in zip(after, before, strict=True)]
                for old, new in zip(before, after, strict=True):
                    rnn.update_memory(old, new)
                for new in after:
                    rnn.step_output(new)
                step = after[0] if self._drop is None else self._drop(after[0])
            rnn.step_output(step)
        outputs = rnn()
        return outputs[-1], self._take_last(outputs, len(units))

    def _take_last(self, outputs: list[Variable], depth: int) -> list[Variable]:
        """Return the last step of the states, layer by layer."""
        last: list[list[Variable]] = [[] for _ in range(self._states)]
        for layer in range(depth):
            for index, found in enumerate(last):
                found.append(outputs[layer * self._states + index][-1])
        shape = [depth, -1, self._size]
        return [layers.reshape(layers.concat(found, axis=0), shape) for found in last]


def _mask(new: Variable, old: Variable, mask: Variable) -> Variable:
    """Return ``new`` where the mask is 1, ``old`` where it is 0."""
    kept = layers.elementwise_mul(new, mask, axis=0)
    return kept - layers.elementwise_mul(old, mask - 1, axis=0)


for _unit in (BasicGRUUnit, BasicLSTMUnit):
    complete_docstring(_unit, read_entries(basic_lstm))
