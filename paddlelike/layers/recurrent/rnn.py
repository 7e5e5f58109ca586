"""rnn: a cell repeated over a batch of sequences that are padded to one length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.elementwise.binary import elementwise_mul
from paddlelike.layers.recurrent.cells import RNNCell
from paddlelike.layers.recurrent.static_rnn import StaticRNN
from paddlelike.layers.sequence.pad import sequence_mask
from paddlelike.layers.tensor.expand import reverse
from paddlelike.layers.tensor.reshape import shape, transpose
from paddlelike.layers.utils import flatten, map_structure, pack_sequence_as

if TYPE_CHECKING:
    from paddlelike.framework.typing import Nested

__all__ = ["rnn"]


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
        Called with the inputs and states of one step, and ``kwargs``.
    inputs
        ``(N, T, ...)``, or ``(T, N, ...)`` with ``time_major``; or nested such variables.
    initial_states
        Zeros if None.
    sequence_length
        ``(N,)``: after its last step a sequence keeps its states.
    is_reverse
        Process the last step first.

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
    """Return the outputs of all steps, the states of the last one."""
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
