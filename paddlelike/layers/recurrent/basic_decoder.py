"""BasicDecoder: a cell decoded by a helper that samples and chooses its inputs.

Parameters
----------
embedding_fn
    A function of ids that returns the next inputs.
start_tokens
    The first ids, int64 (N,).
end_token
    The id that ends a sequence.
softmax_temperature
    The divisor of scores; None for 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from paddlelike.core import VarType
from paddlelike.framework import Variable
from paddlelike.layers.elementwise.compare import equal, less_equal
from paddlelike.layers.elementwise.scale import cast
from paddlelike.layers.nn.softmax import softmax
from paddlelike.layers.random.sampling import sampling_id
from paddlelike.layers.recurrent.cells import RNNCell
from paddlelike.layers.recurrent.decoding import Decoder
from paddlelike.layers.reduction import argmax
from paddlelike.layers.tensor.constant import fill_constant, fill_constant_batch_size_like
from paddlelike.layers.tensor.reshape import squeeze
from paddlelike.layers.tensor.slice import pad, slice
from paddlelike.layers.utils import map_structure

if TYPE_CHECKING:
    from paddlelike.framework.typing import Nested

__all__ = ["BasicDecoder", "DecodeHelper", "GreedyEmbeddingHelper", "SampleEmbeddingHelper", "TrainingHelper"]


class DecodeHelper:
    """The interface by which a :class:`BasicDecoder` samples and chooses its next inputs.

    Same as Fluid's class of this name. Ids have the shape (N,).

    Raises
    ------
    NotImplementedError
        The subclass does not define the called method.

    >>> import paddlelike as fluid
    >>> issubclass(fluid.layers.GreedyEmbeddingHelper, fluid.layers.DecodeHelper)
    True
    """

    def initialize(self) -> tuple[Any, Variable]:
        """Return the first inputs, and whether each sequence is finished.

        Raises NotImplementedError unless a subclass defines it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define initialize()")

    def sample(self, time: Variable, outputs: Any, states: Any) -> Variable:
        """Return the ids sampled from the outputs of a step.

        Raises NotImplementedError unless a subclass defines it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define sample(time, outputs, states)")

    def next_inputs(
        self, time: Variable, outputs: Any, states: Any, sample_ids: Variable
    ) -> tuple[Variable, Any, Any]:
        """Return whether each sequence is finished, and the next inputs and states.

        Raises NotImplementedError unless a subclass defines it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define next_inputs")


class TrainingHelper(DecodeHelper):
    """A helper that takes the next input from the true sequence ("teacher forcing").

    Williams & Zipser, A learning algorithm for continually running networks, 1989.

    Parameters
    ----------
    inputs
        (N, T, ...), or (T, N, ...) with ``time_major``.
    sequence_length
        The lengths, (N,).
    time_major
        Whether time is the first dim.

    >>> import paddlelike as fluid
    >>> words, length = fluid.data("words", [None, 6, 3]), fluid.data("length", [None], "int64")
    >>> first_inputs, finished = fluid.layers.TrainingHelper(words, length).initialize()
    >>> first_inputs.shape, finished.dtype
    ((-1, 3), <VarType.BOOL: 0>)
    """

    def __init__(self, inputs: Nested, sequence_length: Variable, time_major: bool = False) -> None:
        self.inputs = inputs
        self.sequence_length = sequence_length
        self.time_major = time_major
        self._axis = 0 if time_major else 1
        self._inputs_and_one_step = map_structure(
            self._append_step, inputs
        )  # the step after the last is never used

    def _append_step(self, x: Variable) -> Variable:
        paddings = [0, 0] * len(x.shape)
        paddings[2 * self._axis + 1] = 1
        return pad(x, paddings)

    def initialize(self) -> tuple[Any, Variable]:
        """Return the first step of the sequences, and whether each has length 0."""
        zero = fill_constant([1], self.sequence_length.dtype, 0)
        finished = equal(self.sequence_length, zero)
        return map_structure(lambda x: x[0] if self.time_major else x[:, 0], self.inputs), finished

    def sample(self, time: Variable, outputs: Variable, states: Nested) -> Variable:
        """Return the most likely ids."""
        return argmax(outputs, axis=-1)

    def next_inputs(
        self, time: Variable, outputs: Variable, states: Nested, sample_ids: Variable
    ) -> tuple[Variable, Any, Any]:
        """Return whether each sequence has ended, the next step, and the states."""
        time = cast(time, "int32")
        lengths = self.sequence_length
        if lengths.dtype != VarType.INT32:
            lengths = cast(lengths, "int32")
        following = time + 1
        finished = less_equal(lengths, following)
        axes = [self._axis]

        def part(x: Variable) -> Variable:
            return squeeze(slice(x, axes, [following], [following + 1]), axes)

        return finished, map_structure(part, self._inputs_and_one_step), states


class GreedyEmbeddingHelper(DecodeHelper):
    """A helper whose next input is the embedding of the most likely id.

    Operator ``arg_max``. The token ``end_token`` ends a sequence.

    >>> import paddlelike as fluid
    >>> start = fluid.data("start", [None], "int64")
    >>> embed = lambda ids: fluid.embedding(ids, [100, 8])
    >>> helper = fluid.layers.GreedyEmbeddingHelper(embed, start, end_token=1)
    >>> inputs, finished = helper.initialize()
    >>> inputs.shape
    (-1, 8)
    """

    def __init__(
        self, embedding_fn: Callable[[Variable], Variable], start_tokens: Variable, end_token: int
    ) -> None:
        self.embedding_fn = embedding_fn
        self.start_tokens = start_tokens
        self.end_token = fill_constant([1], "int64", end_token)

    def initialize(self) -> tuple[Any, Variable]:
        """Return the embeddings of the start tokens; no sequence is finished."""
        finished = fill_constant_batch_size_like(self.start_tokens, [-1], "bool", 0, force_cpu=True)
        return self.embedding_fn(self.start_tokens), finished

    def sample(self, time: Variable, outputs: Variable, states: Nested) -> Variable:
        """Return the most likely ids."""
        return argmax(outputs, axis=-1)

    def next_inputs(
        self, time: Variable, outputs: Variable, states: Nested, sample_ids: Variable
    ) -> tuple[Variable, Any, Any]:
        """Return whether each sample is the end token, the embeddings of the samples, and the states."""
        finished = equal(sample_ids, self.end_token)
        return finished, self.embedding_fn(sample_ids), states


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """A helper whose next input is the embedding of an id drawn from ``softmax(outputs / temperature)``.

    Operators ``softmax`` and ``sampling_id``. The token ``end_token`` ends a sequence.

    >>> import paddlelike as fluid
    >>> start = fluid.data("start", [None], "int64")
    >>> embed = lambda ids: fluid.embedding(ids, [100, 8])
    >>> helper = fluid.layers.SampleEmbeddingHelper(embed, start, end_token=1)
    >>> inputs, finished = helper.initialize()
    >>> inputs.shape
    (-1, 8)
    """

    def __init__(
        self,
        embedding_fn: Callable[[Variable], Variable],
        start_tokens: Variable,
        end_token: int,
        softmax_temperature: float | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding_fn, start_tokens, end_token)
        self.softmax_temperature = softmax_temperature
        self.seed = 0 if seed is None else seed
        if softmax_temperature is not None:
            self._temperature = fill_constant([1], "float32", softmax_temperature)

    def sample(self, time: Variable, outputs: Variable, states: Nested) -> Variable:
        """Return ids drawn at random."""
        logits = outputs if self.softmax_temperature is None else outputs / self._temperature
        chances = softmax(logits)
        chances.stop_gradient = True
        return sampling_id(chances, seed=self.seed, dtype=self.start_tokens.dtype)


class BasicDecoder(Decoder):
    """A decoder with a cell, an optional layer on its output, and a helper that chooses the next inputs.

    Same as Fluid's class of this name.

    Parameters
    ----------
    cell
        One step of the network.
    helper
        A :class:`TrainingHelper`, :class:`GreedyEmbeddingHelper` or :class:`SampleEmbeddingHelper`.
    output_fn
        A layer that maps the outputs of the cell to the outputs of the decoder.

    >>> import paddlelike as fluid
    >>> words, length = fluid.data("words", [None, 6, 3]), fluid.data("length", [None], "int64")
    >>> teacher = fluid.layers.TrainingHelper(words, length)
    >>> def project(hidden):
    ...     return fluid.layers.fc(hidden, 10)
    >>> decoder = fluid.layers.BasicDecoder(fluid.layers.GRUCell(4), teacher, output_fn=project)
    >>> outputs, last = fluid.layers.dynamic_decode(decoder, inits=fluid.data("state", [None, 4]))
    >>> outputs.cell_outputs.shape
    (-1, -1, 10)
    """

    class OutputWrapper(NamedTuple):
        """The outputs of a step."""

        cell_outputs: Variable
        sample_ids: Variable

    def __init__(
        self, cell: RNNCell, helper: DecodeHelper, output_fn: Callable[[Any], Any] | None = None
    ) -> None:
        self.cell = cell
        self.helper = helper
        self.output_fn = output_fn

    def initialize(self, initial_cell_states: Nested) -> tuple[Any, Any, Variable]:
        """Return the first inputs of the helper, the given states, and whether each sequence is finished."""
        inputs, finished = self.helper.initialize()
        return inputs, initial_cell_states, finished

    def step(
        self, time: Variable, inputs: Nested, states: Nested, **kwargs: Any
    ) -> tuple[Any, Any, Any, Variable]:
        """Return the outputs of one step, the next states and inputs, and whether each sequence has ended."""
        outputs, states = self.cell(inputs, states, **kwargs)
        if self.output_fn is not None:
            outputs = self.output_fn(outputs)
        sample_ids = self.helper.sample(time, outputs=outputs, states=states)
        sample_ids.stop_gradient = True
        finished, inputs, states = self.helper.next_inputs(
            time, outputs=outputs, states=states, sample_ids=sample_ids
        )
        return self.OutputWrapper(outputs, sample_ids), states, inputs, finished
