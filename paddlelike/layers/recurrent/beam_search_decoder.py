"""Beam search as a decoder: BeamSearchDecoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from paddlelike.framework import Variable
from paddlelike.layers.elementwise.binary import (
    elementwise_add,
    elementwise_floordiv,
    elementwise_mod,
    elementwise_mul,
)
from paddlelike.layers.elementwise.compare import equal, logical_not, logical_or
from paddlelike.layers.elementwise.scale import cast
from paddlelike.layers.elementwise.unary import log
from paddlelike.layers.nn.softmax import softmax
from paddlelike.layers.recurrent.cells import RNNCell
from paddlelike.layers.recurrent.decoding import Decoder, gather_tree
from paddlelike.layers.reduction import topk
from paddlelike.layers.tensor.assign import assign
from paddlelike.layers.tensor.concat import expand, stack
from paddlelike.layers.tensor.constant import fill_constant, fill_constant_batch_size_like, range, zeros_like
from paddlelike.layers.tensor.gather import gather_nd
from paddlelike.layers.tensor.reshape import reshape, shape, transpose, unsqueeze
from paddlelike.layers.utils import flatten, map_structure

if TYPE_CHECKING:
    from paddlelike.framework.typing import Nested

__all__ = ["BeamSearchDecoder"]

_LOG_ZERO: Final = -1e9  # the logarithm of a probability of 0


class BeamSearchDecoder(Decoder):
    """A decoder that keeps the ``beam_size`` most likely sequences of every element of the batch.

    Operators ``top_k``, ``gather_nd`` and ``gather_tree``, as in Fluid.

    Parameters
    ----------
    cell
        One step of the network.
    start_token, end_token
        Ids of the first and the last word.
    beam_size
        The number of sequences that are kept.
    embedding_fn
        A function that maps ids to the inputs of the cell.
    output_fn
        A function that maps the outputs of the cell to a score for each word.

    >>> import paddlelike as fluid
    >>> def embed(ids):
    ...     return fluid.embedding(ids, size=[10, 3])
    >>> def score(outputs):
    ...     return fluid.layers.fc(outputs, size=10, num_flatten_dims=2)
    >>> cell = fluid.layers.GRUCell(hidden_size=4)
    >>> decoder = fluid.layers.BeamSearchDecoder(cell, 0, 1, beam_size=2, embedding_fn=embed, output_fn=score)
    >>> start = cell.get_initial_states(fluid.data("state", [None, 4]))
    >>> ids, last = fluid.layers.dynamic_decode(decoder, inits=start, max_step_num=5)
    >>> ids.dtype
    <VarType.INT64: 3>
    """

    class OutputWrapper(NamedTuple):
        """The outputs of a step, ``(N, beam_size)`` each."""

        scores: Variable
        predicted_ids: Variable
        parent_ids: Variable

    class StateWrapper(NamedTuple):
        """The state between two steps."""

        cell_states: Nested
        log_probs: Variable
        finished: Variable
        lengths: Variable

    def __init__(
        self,
        cell: RNNCell,
        start_token: int,
        end_token: int,
        beam_size: int,
        embedding_fn: Callable[[Variable], Variable] | None = None,
        output_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self.cell = cell
        self.embedding_fn = embedding_fn
        self.output_fn = output_fn
        self.start_token = start_token
        self.end_token = end_token
        self.beam_size = beam_size

    @staticmethod
    def tile_beam_merge_with_batch(x: Variable, beam_size: int) -> Variable:
        """Return ``x`` with every row repeated ``beam_size`` times: ``(N * beam_size, ...)``."""
        x = _tile(x, beam_size)
        dims = len(x.shape)
        x = transpose(x, [*_numbers(2, dims), 0, 1])
        x = reshape(x, [0] * (dims - 2) + [-1])
        return transpose(x, [dims - 2, *_numbers(0, dims - 2)])

    def _embed(self, ids: Variable) -> Variable:
        return ids if self.embedding_fn is None else self.embedding_fn(ids)

    def initialize(self, initial_cell_states: Nested) -> tuple[Any, StateWrapper, Variable]:
        """Return the first inputs and states, and False for every beam: no beam has ended."""
        like = flatten(initial_cell_states)[0]
        self._batch = shape(like)[0]
        start = fill_constant([1], "int64", self.start_token)
        self._end = fill_constant([1], "int64", self.end_token)
        states = map_structure(lambda x: _tile(x, self.beam_size), initial_cell_states)
        ids = _tile(expand(start, [self._batch]), self.beam_size)
        chances = np.array([[0.0] + [_LOG_ZERO] * (self.beam_size - 1)], np.float32)
        log_probs = expand(assign(chances), [self._batch, 1])
        finished = fill_constant_batch_size_like(like, [-1, self.beam_size], "bool", False, force_cpu=True)
        lengths = zeros_like(ids)
        return self._embed(ids), self.StateWrapper(states, log_probs, finished, lengths), finished

    def step(
        self, time: Variable, inputs: Nested, states: StateWrapper, **kwargs: Any
    ) -> tuple[Any, Any, Any, Variable]:
        """Return the outputs of one step, the next states and inputs, and whether each sequence has ended."""
        inputs = map_structure(self._merge_beams, inputs)
        cell_states = map_structure(self._merge_beams, states.cell_states)
        outputs, following = self.cell(inputs, cell_states, **kwargs)
        outputs = map_structure(self._split_beams, outputs)
        following = map_structure(self._split_beams, following)
        if self.output_fn is not None:
            outputs = self.output_fn(outputs)
        found, after = self._search(outputs, following, states)
        found.predicted_ids.stop_gradient = True
        return found, after, self._embed(found.predicted_ids), after.finished

    def _merge_beams(self, x: Variable) -> Variable:
        """Return ``(N, beam_size, ...)`` as ``(N * beam_size, ...)``."""
        return reshape(x, [-1, *x.shape[2:]])

    def _split_beams(self, x: Variable) -> Variable:
        """Return ``(N * beam_size, ...)`` as ``(N, beam_size, ...)``."""
        return reshape(x, [-1, self.beam_size, *x.shape[1:]])

    def _search(
        self, logits: Variable, cell_states: Nested, before: StateWrapper
    ) -> tuple[OutputWrapper, StateWrapper]:
        words = logits.shape[-1]
        count = fill_constant([1], "int64", words)
        only_end = np.full(words, _LOG_ZERO, np.float32)
        only_end[self.end_token] = 0.0
        ending = assign(only_end)
        log_probs = _force_end(log(softmax(logits)), before.finished, ending)
        log_probs = elementwise_add(log_probs, before.log_probs, axis=0)
        scores, places = topk(reshape(log_probs, [-1, self.beam_size * words]), self.beam_size)
        parents = elementwise_floordiv(places, count)
        ids = elementwise_mod(places, count)
        chosen = self._gather(reshape(log_probs, [-1, self.beam_size * words]), places)
        states = map_structure(lambda x: self._gather(x, parents), cell_states)
        finished = self._gather(before.finished, parents)
        lengths = self._gather(before.lengths, parents)
        lengths = lengths + cast(logical_not(finished), lengths.dtype)
        finished = logical_or(finished, equal(ids, self._end))
        output = self.OutputWrapper(scores, ids, parents)
        return output, self.StateWrapper(states, chosen, finished, lengths)

    def _gather(self, x: Variable, places: Variable) -> Variable:
        """Return ``x[n, places[n, k]]`` for every n and k."""
        batch = cast(self._batch, places.dtype) if self._batch.dtype != places.dtype else self._batch
        batch.stop_gradient = True
        rows = expand(unsqueeze(range(0, batch, 1, places.dtype), [1]), [1, self.beam_size])
        where = stack([rows, places], axis=2)
        where.stop_gradient = True
        return gather_nd(x, where)

    def finalize(
        self, outputs: OutputWrapper, final_states: Nested, sequence_lengths: Variable
    ) -> tuple[Any, Any]:
        """Return the ids of every beam, traced back from its last step, and the states."""
        return gather_tree(outputs.predicted_ids, outputs.parent_ids), final_states


def _numbers(start: int, stop: int) -> list[int]:
    return list(np.arange(start, stop).tolist())  # range is a layer here


def _tile(x: Variable, beam_size: int) -> Variable:
    """Repeat ``(N, ...)`` to ``(N, beam_size, ...)``."""
    x = unsqueeze(x, [1])
    return expand(x, [1, beam_size] + [1] * (len(x.shape) - 2))


def _force_end(log_probs: Variable, finished: Variable, ending: Variable) -> Variable:
    """Return ``ending`` for finished beams: every probability is 0, except for the end token."""
    mask = cast(finished, log_probs.dtype)
    words = log_probs.shape[-1]
    ended = elementwise_mul(expand(unsqueeze(mask, [2]), [1, 1, words]), ending)
    return ended - elementwise_mul(log_probs, mask - 1, axis=0)
