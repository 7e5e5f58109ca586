"""Cells of recurrent networks, and the loop over the steps of a batch.

Parameters
----------
hidden_size
    The width of the states.
gate_activation
    The activation layer of the gates; None for sigmoid.
activation
    The activation layer of the candidates; None for tanh.
forget_bias
    Added to the forget gate.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from paddlelike import unique_name
from paddlelike.framework import Variable
from paddlelike.layers.elementwise.activation import sigmoid, tanh
from paddlelike.layers.elementwise.binary import elementwise_add, elementwise_mul
from paddlelike.layers.emit import check_variable
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.linalg.products import matmul
from paddlelike.layers.recurrent.static_rnn import StaticRNN
from paddlelike.layers.sequence.lengths import sequence_mask
from paddlelike.layers.tensor.concat import concat, reverse, split
from paddlelike.layers.tensor.constant import fill_constant, fill_constant_batch_size_like
from paddlelike.layers.tensor.reshape import shape, transpose
from paddlelike.layers.utils import flatten, map_structure, pack_sequence_as
from paddlelike.param_attr import ParamAttr

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.framework.typing import Nested
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "rnn"]


Activation = Callable[[Variable], Variable]


class RNNCell:
    """One step of a recurrent network. A subclass defines :meth:`call` and :attr:`state_shape`.

    Same as Fluid's class of this name.

    Raises
    ------
    NotImplementedError
        :meth:`call` or :attr:`state_shape` is used, and the subclass does not define it.

    >>> import paddlelike as fluid
    >>> class Sum(fluid.layers.RNNCell):
    ...     state_shape = [4]
    ...
    ...     def call(self, inputs, states):
    ...         total = inputs + states
    ...         return total, total
    >>> words = fluid.data("words", [None, 6, 4])
    >>> outputs, last = fluid.layers.rnn(Sum(), words)
    >>> outputs.shape, last.shape
    ((-1, 6, 4), (-1, 4))
    """

    def call(self, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return the outputs and the new states of one step.

        Raises NotImplementedError unless a subclass defines it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define call(inputs, states)")

    def __call__(self, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return the result of :meth:`call`."""
        return self.call(inputs, states, **kwargs)

    @property
    def state_shape(self) -> Any:
        """The shape of a state without the batch dim, or nested shapes.

        Raises NotImplementedError unless a subclass defines it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define the property state_shape")

    @property
    def state_dtype(self) -> Any:
        """The element type of the states, nested like :attr:`state_shape`.

        Raises NotImplementedError unless a subclass defines it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define the property state_dtype")

    def get_initial_states(
        self,
        batch_ref: Nested,
        shape: Sequence[Any] | None = None,
        dtype: DtypeLike | Sequence[Any] | None = "float32",
        init_value: float = 0,
        batch_dim_idx: int = 0,
    ) -> Any:
        """Return states filled with ``init_value``, with the batch size of ``batch_ref``.

        Raises TypeError unless ``batch_ref`` is a variable.
        """
        like = check_variable("get_initial_states", "batch_ref", flatten(batch_ref)[0])
        shapes = self.state_shape if shape is None else shape
        if dtype is None:
            dtype = self.state_dtype

        def fill(dims: Any, kind: Any) -> Any:
            if isinstance(dims, list | tuple) and not all(isinstance(dim, int) for dim in dims):
                kinds = kind if isinstance(kind, list | tuple) else [kind] * len(dims)
                return [fill(one, each) for one, each in zip(dims, kinds, strict=True)]
            whole = list(dims) if dims[0] == -1 else [-1, *dims]
            state = fill_constant_batch_size_like(like, whole, kind, init_value, batch_dim_idx)
            state.stop_gradient = False  # Paddle's recurrent operator requires gradients of all its states
            return state

        return fill(shapes, dtype)


class _Unit:
    """The parameters of a cell, created when the size of its inputs is known."""

    def __init__(
        self, name: str, kind: str, param_attr: ParamAttrLike, bias_attr: ParamAttrLike, dtype: DtypeLike
    ) -> None:
        self._helper = LayerHelper(kind, name=unique_name.generate(f"{name}/{kind}"))
        self._attrs = ParamAttr._to_attr(param_attr), ParamAttr._to_attr(bias_attr)
        self._dtype = dtype

    def weight(self, shape: Sequence[int], suffix: str = "") -> Variable:
        """Return a weight; ``suffix`` is appended to the name of a ParamAttr."""
        parameter: Variable = self._helper.create_parameter(
            _append_suffix(self._attrs[0], suffix), shape, self._dtype
        )
        return parameter

    def bias(self, size: int, suffix: str = "") -> Variable | None:
        """Return a bias, or None where bias_attr is False."""
        attr = _append_suffix(self._attrs[1], suffix)
        parameter: Variable | None = self._helper.create_parameter(attr, [size], self._dtype, is_bias=True)
        return parameter


def _append_suffix(attr: ParamAttr | Literal[False], suffix: str) -> ParamAttr | Literal[False]:
    attr = copy.deepcopy(attr)
    if attr is not False and attr.name is not None:
        attr.name += suffix
    return attr


def _project(parts: list[Variable], weight: Variable, bias: Variable | None) -> Variable:
    """Return ``concat(parts) weight + bias``."""
    out = matmul(concat(parts, 1), weight)
    return out if bias is None else elementwise_add(out, bias)


class GRUCell(RNNCell):
    """A gated recurrent unit of width ``hidden_size`` (Cho et al. 2014).

    With ``z = [x, h]``: ``r, u = gate(z W + b)``, ``c = act([x, r * h] W' + b')``, ``h' = u * h + (1 - u) *
    c``. ``gate`` is the layer ``gate_activation``, by default sigmoid; ``act`` is ``activation``, by
    default tanh. The parameters are of ``dtype``; they are created at the first call.

    >>> import paddlelike as fluid
    >>> cell = fluid.layers.GRUCell(hidden_size=4)
    >>> words = fluid.data("words", [None, 6, 3])
    >>> outputs, last = fluid.layers.rnn(cell, words)
    >>> outputs.shape, last.shape
    ((-1, 6, 4), (-1, 4))
    """

    def __init__(
        self,
        hidden_size: int,
        param_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        gate_activation: Activation | None = None,
        activation: Activation | None = None,
        dtype: DtypeLike = "float32",
        name: str = "GRUCell",
    ) -> None:
        self.hidden_size = hidden_size
        self._gate = sigmoid if gate_activation is None else gate_activation
        self._act = tanh if activation is None else activation
        self._dtype = dtype
        self._unit = _Unit(name, "BasicGRUUnit", param_attr, bias_attr, dtype)
        self._parameters: list[Any] | None = None

    def call(self, inputs: Variable, states: Variable) -> tuple[Variable, Variable]:  # type: ignore[override]
        """Return the new state twice: as output and as state.

        Raises TypeError unless ``inputs`` and ``states`` are variables.
        """
        check_variable("GRUCell", "inputs", inputs)
        check_variable("GRUCell", "states", states)
        size = self.hidden_size
        if self._parameters is None:
            rows = inputs.shape[-1] + size
            weights = [
                self._unit.weight([rows, 2 * size], "_gate"),
                self._unit.weight([rows, size], "_candidate"),
            ]
            biases = [self._unit.bias(2 * size, "_gate"), self._unit.bias(size, "_candidate")]
            self._parameters = [*weights, *biases]
        gate_weight, weight, gate_bias, bias = self._parameters
        reset, update = split(self._gate(_project([inputs, states], gate_weight, gate_bias)), 2, dim=1)
        candidate = self._act(_project([inputs, reset * states], weight, bias))
        state = update * states + (1 - update) * candidate
        return state, state

    @property
    def state_shape(self) -> list[int]:
        """The shape of the state, ``[hidden_size]``."""
        return [self.hidden_size]

    @property
    def state_dtype(self) -> DtypeLike:
        """The element type of the parameters."""
        return self._dtype


class LSTMCell(RNNCell):
    """Long short-term memory of width ``hidden_size``; the states are ``[h, c]``.

    Hochreiter & Schmidhuber 1997: ``i, j, f, o = [x, h] W + b``, ``c' = c * gate(f + forget_bias) + gate(i)
    * act(j)``, ``h' = act(c') * gate(o)``. ``gate`` is the layer ``gate_activation``, by default sigmoid;
    ``act`` is ``activation``, by default tanh. The parameters are of ``dtype``; they are created at the
    first call.

    >>> import paddlelike as fluid
    >>> cell = fluid.layers.LSTMCell(hidden_size=4)
    >>> words = fluid.data("words", [None, 6, 3])
    >>> outputs, (hidden, memory) = fluid.layers.rnn(cell, words)
    >>> outputs.shape, hidden.shape, memory.shape
    ((-1, 6, 4), (-1, 4), (-1, 4))
    """

    def __init__(
        self,
        hidden_size: int,
        param_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        gate_activation: Activation | None = None,
        activation: Activation | None = None,
        forget_bias: float = 1.0,
        dtype: DtypeLike = "float32",
        name: str = "LSTMCell",
    ) -> None:
        self.hidden_size = hidden_size
        self._gate = sigmoid if gate_activation is None else gate_activation
        self._act = tanh if activation is None else activation
        self._dtype = dtype
        self._unit = _Unit(name, "BasicLSTMUnit", param_attr, bias_attr, dtype)
        self._forget_bias = fill_constant([1], dtype, forget_bias)
        self._forget_bias.stop_gradient = False
        self._parameters: tuple[Variable, Variable | None] | None = None

    def call(  # type: ignore[override]
        self, inputs: Variable, states: Sequence[Variable]
    ) -> tuple[Variable, list[Variable]]:
        """Return the new ``h``, and ``[h, c]``.

        Raises TypeError unless ``inputs`` is a variable.
        """
        check_variable("LSTMCell", "inputs", inputs)
        hidden, memory = states
        size = self.hidden_size
        if self._parameters is None:
            rows = inputs.shape[-1] + size
            self._parameters = self._unit.weight([rows, 4 * size]), self._unit.bias(4 * size)
        i, j, f, o = split(_project([inputs, hidden], *self._parameters), 4, dim=-1)
        kept = elementwise_mul(memory, self._gate(elementwise_add(f, self._forget_bias)))
        memory = elementwise_add(kept, elementwise_mul(self._gate(i), self._act(j)))
        hidden = self._act(memory) * self._gate(o)
        return hidden, [hidden, memory]

    @property
    def state_shape(self) -> list[list[int]]:
        """The shapes of both states, ``[[hidden_size], [hidden_size]]``."""
        return [[self.hidden_size], [self.hidden_size]]

    @property
    def state_dtype(self) -> list[Any]:
        """The element type of the parameters, twice."""
        return [self._dtype, self._dtype]


def swap_batch_and_time(x: Variable) -> Variable:
    """Return ``x`` with its first two dims, batch and time, swapped."""
    return transpose(x, [1, 0, *range(2, len(x.shape))])


def rnn(
    cell: RNNCell,
    inputs: Nested,
    initial_states: Nested | None = None,
    sequence_length: Variable | None = None,
    time_major: bool = False,
    is_reverse: bool = False,
    **kwargs: Any,
) -> tuple[Any, Any]:
    """Return the outputs of ``cell`` at every step, and the last states (operator ``recurrent``).

    Parameters
    ----------
    time_major
        Whether time is the first dim of the inputs and outputs.
    cell
        The cell. It is called with the inputs and states of one step, and ``kwargs``.
    inputs
        ``(N, T, ...)``, or ``(T, N, ...)`` with ``time_major``; or a structure of such variables.
    initial_states
        The states before the first step; None for zeros.
    sequence_length
        The lengths of the sequences, ``(N,)``; after its last step a sequence keeps its states.
    is_reverse
        Whether to process the last step first.

    Returns
    -------
    outputs
        The outputs of ``cell`` at every step, (N, T, ...); (T, N, ...) with ``time_major``.
    states
        The last states, in the structure and the shapes of the initial states.

    >>> from paddlelike.input import data
    >>> from paddlelike.layers.recurrent.cells import GRUCell
    >>> outputs, state = rnn(GRUCell(4), data("rnn_x", [2, 5, 3], "float32"))
    >>> outputs.shape
    (2, 5, 4)
    """
    if initial_states is None:
        initial_states = cell.get_initial_states(inputs, batch_dim_idx=1 if time_major else 0)
    if not time_major:
        inputs = map_structure(swap_batch_and_time, inputs)
    mask = None
    if sequence_length is not None:
        steps = shape(flatten(inputs)[0])[0]
        mask = sequence_mask(sequence_length, steps, flatten(initial_states)[0].dtype)
        mask = transpose(mask, [1, 0])
    if is_reverse:
        inputs = map_structure(lambda x: reverse(x, 0), inputs)
        mask = None if mask is None else reverse(mask, 0)
    outputs, states = _repeat_cell(cell, inputs, initial_states, mask, kwargs)
    if is_reverse:
        outputs = map_structure(lambda x: reverse(x, 0), outputs)
    return (outputs if time_major else map_structure(swap_batch_and_time, outputs)), states


def _repeat_cell(
    cell: RNNCell, inputs: Nested, initial_states: Nested, mask: Variable | None, kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    """Return the outputs of all steps and the states of the last step."""
    network = StaticRNN()
    with network.step():
        now = map_structure(network.step_input, inputs)
        states = map_structure(network.memory, initial_states)
        outputs, following = cell.call(now, map_structure(lambda x: x, states), **kwargs)
        if mask is not None:
            here = network.step_input(mask)
            following = map_structure(lambda old, new: _select_rows(old, new, here), states, following)
        map_structure(network.update_memory, states, following)
        for one in [*flatten(outputs), *flatten(following)]:
            network.step_output(one)
    found = network()
    found = found if isinstance(found, list) else [found]
    count = len(flatten(outputs))
    last = pack_sequence_as(following, [state[-1] for state in found[count:]])
    return pack_sequence_as(outputs, found[:count]), last


def _select_rows(old: Variable, new: Variable, mask: Variable) -> Variable:
    """Return ``new`` in the rows where ``mask`` is 1, ``old`` where it is 0."""
    return elementwise_mul(new, mask, axis=0) - elementwise_mul(old, mask - 1, axis=0)
