"""Sequences made step by step: Decoder, dynamic_decode, BasicDecoder and its helpers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.control.loops import While
from paddlelike.layers.control.tensor_array import (
    array_read,
    array_write,
    create_array,
    tensor_array_to_tensor,
)
from paddlelike.layers.elementwise.activation import softmax
from paddlelike.layers.elementwise.arithmetic import elementwise_add, elementwise_mul, increment
from paddlelike.layers.elementwise.comparison import equal, less_equal, logical_and, logical_not, logical_or
from paddlelike.layers.random.tensors import sampling_id
from paddlelike.layers.recurrent.cells import RNNCell
from paddlelike.layers.recurrent.padded import swap_batch_and_time
from paddlelike.layers.reduction.reduce import argmax, reduce_all
from paddlelike.layers.tensor.constants import fill_constant, fill_constant_batch_size_like, zeros_like
from paddlelike.layers.tensor.creation import assign
from paddlelike.layers.tensor.indexing import pad, slice
from paddlelike.layers.tensor.shaping import cast, squeeze
from paddlelike.layers.utils import map_structure

__all__ = [
    "BasicDecoder",
    "DecodeHelper",
    "Decoder",
    "GreedyEmbeddingHelper",
    "SampleEmbeddingHelper",
    "TrainingHelper",
    "dynamic_decode",
]


class Decoder:
    """What :func:`dynamic_decode` runs. A subclass gives :meth:`initialize` and :meth:`step`."""

    def initialize(self, inits: Any) -> tuple[Any, Any, Variable]:
        """The inputs and states of the first step, and which sequences are finished before it."""
        raise NotImplementedError(f"{type(self).__name__} needs a method initialize(inits)")

    def step(self, time: Variable, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Variable]:
        """The outputs of step ``time``; states, inputs and finished sequences for the next."""
        raise NotImplementedError(f"{type(self).__name__} needs a method step(time, inputs, states)")

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Variable) -> tuple[Any, Any]:
        """The outputs of all steps and the last states as the caller gets them; as they are, by default."""
        return outputs, final_states


def dynamic_decode(
    decoder: Decoder,
    inits: Any = None,
    max_step_num: int | None = None,
    output_time_major: bool = False,
    impute_finished: bool = False,
    is_test: bool = False,
    return_length: bool = False,
    **kwargs: Any,
) -> tuple[Any, ...]:
    """Run ``decoder`` until every sequence is finished, or ``max_step_num`` steps (operator ``while``).

    Parameters
    ----------
    inits
        What ``decoder.initialize`` takes.
    output_time_major
        Whether time or batch is the first dim of the outputs.
    impute_finished
        Whether finished sequences keep their states.
    is_test
        Keep nothing for a backward pass.
    return_length
        Return the number of steps of every sequence as well.
    kwargs
        Handed to ``decoder.step``.

    Returns
    -------
    The outputs of all steps and the last states.
    """
    inputs, states, finished = decoder.initialize(inits)
    finished.stop_gradient = True
    step = fill_constant([1], "int64", 0)
    going = logical_not(reduce_all(finished))
    limit = None if max_step_num is None else fill_constant([1], "int64", max_step_num)
    loop = While(going, is_test)
    lengths = cast(zeros_like(finished), "int64")
    lengths.stop_gradient = True
    carried = _Reused(inputs, states) if is_test else _Kept(inputs, states, step)
    with loop.block():
        now, before = carried.read()
        outputs, after, following, done = decoder.step(step, now, before, **kwargs)
        done = logical_or(done, finished)
        longer = elementwise_add(lengths, cast(logical_not(finished), lengths.dtype))
        if impute_finished:
            after = map_structure(lambda old, new: _imputed(old, new, finished), before, after)
        arrays = map_structure(lambda x: _array_around(loop, x.dtype), outputs)
        map_structure(lambda x, array: array_write(x, step, array), outputs, arrays)
        increment(step)
        carried.write(following, after)
        assign(done, finished)
        assign(longer, lengths)
        still = logical_not(reduce_all(finished), out=going if limit is None else None)
        if limit is not None:
            logical_and(still, less_equal(step, limit), out=going)
    outputs = map_structure(lambda array: tensor_array_to_tensor(array, axis=0, use_stack=True)[0], arrays)
    outputs, last = decoder.finalize(outputs, carried.last(), lengths)
    if not output_time_major:
        outputs = map_structure(swap_batch_and_time, outputs)
    return (outputs, last, lengths) if return_length else (outputs, last)


class _Kept:
    """Inputs and states of all steps, in arrays, as a backward pass needs them."""

    def __init__(self, inputs: Any, states: Any, step: Variable) -> None:
        self._step = step
        self._inputs = map_structure(lambda x: array_write(x, step), inputs)
        self._states = map_structure(lambda x: array_write(x, step), states)

    def read(self) -> tuple[Any, Any]:
        """Those of the present step."""
        return self._now(self._inputs), self._now(self._states)

    def _now(self, arrays: Any) -> Any:
        return map_structure(lambda array: array_read(array, self._step), arrays)

    def write(self, inputs: Any, states: Any) -> None:
        """Those of the next step, whose number is set already."""
        for values, arrays in ((inputs, self._inputs), (states, self._states)):
            map_structure(lambda x, array: array_write(x, self._step, array), values, arrays)

    def last(self) -> Any:
        """The states after the last step."""
        return self._now(self._states)


class _Reused:
    """Inputs and states of the present step only."""

    def __init__(self, inputs: Any, states: Any) -> None:
        self._inputs, self._states = inputs, states

    def read(self) -> tuple[Any, Any]:
        """Those of the present step."""
        return self._inputs, self._states

    def write(self, inputs: Any, states: Any) -> None:
        """Those of the next step, over the present ones."""
        map_structure(assign, inputs, self._inputs)
        map_structure(assign, states, self._states)

    def last(self) -> Any:
        """The states after the last step."""
        return self._states


def _array_around(loop: While, dtype: Any) -> Variable:
    """An array around the block of the loop being built."""
    program = loop.helper.main_program
    inside = program.current_block()
    program.current_block_idx = inside.parent_idx
    try:
        return create_array(dtype)
    finally:
        program.current_block_idx = inside.idx


def _imputed(old: Variable, new: Variable, finished: Variable) -> Variable:
    """``old`` in the rows that are finished, ``new`` in the others."""
    kind = new.dtype
    if kind == VarType.BOOL:
        old, new = cast(old, "float32"), cast(new, "float32")
    mask = cast(finished, new.dtype)
    chosen = elementwise_mul(old, mask, axis=0) - elementwise_mul(new, mask - 1, axis=0)
    return cast(chosen, kind) if kind == VarType.BOOL else chosen


class DecodeHelper:
    """How a :class:`BasicDecoder` samples and chooses its next inputs."""

    def initialize(self) -> tuple[Any, Variable]:
        """The first inputs, and which sequences are finished before them."""
        raise NotImplementedError(f"{type(self).__name__} needs a method initialize()")

    def sample(self, time: Variable, outputs: Any, states: Any) -> Variable:
        """The numbers that the outputs of a step stand for."""
        raise NotImplementedError(f"{type(self).__name__} needs a method sample(time, outputs, states)")

    def next_inputs(
        self, time: Variable, outputs: Any, states: Any, sample_ids: Variable
    ) -> tuple[Variable, Any, Any]:
        """Finished sequences, inputs and states for the next step."""
        raise NotImplementedError(f"{type(self).__name__} needs a method next_inputs")


class TrainingHelper(DecodeHelper):
    """The next input is that of the true sequence ("teacher forcing").

    ``inputs`` are ``(N, T, ...)``, or ``(T, N, ...)`` with ``time_major``; ``sequence_length`` is ``(N,)``.
    """

    def __init__(self, inputs: Any, sequence_length: Variable, time_major: bool = False) -> None:
        self.inputs = inputs
        self.sequence_length = sequence_length
        self.time_major = time_major
        self._axis = 0 if time_major else 1
        self._padded = map_structure(self._with_one_more, inputs)  # the step after the last is never used

    def _with_one_more(self, x: Variable) -> Variable:
        paddings = [0, 0] * len(x.shape)
        paddings[2 * self._axis + 1] = 1
        return pad(x, paddings)

    def initialize(self) -> tuple[Any, Variable]:
        """The first step of the sequences; those of length 0 are finished."""
        zero = fill_constant([1], self.sequence_length.dtype, 0)
        finished = equal(self.sequence_length, zero)
        return map_structure(lambda x: x[0] if self.time_major else x[:, 0], self.inputs), finished

    def sample(self, time: Variable, outputs: Any, states: Any) -> Variable:
        """The most likely number."""
        return argmax(outputs, axis=-1)

    def next_inputs(
        self, time: Variable, outputs: Any, states: Any, sample_ids: Variable
    ) -> tuple[Variable, Any, Any]:
        """The next step of the sequences."""
        time = cast(time, "int32")
        lengths = self.sequence_length
        if lengths.dtype != VarType.INT32:
            lengths = cast(lengths, "int32")
        following = time + 1
        finished = less_equal(lengths, following)
        axes = [self._axis]

        def part(x: Variable) -> Variable:
            return squeeze(slice(x, axes, [following], [following + 1]), axes)

        return finished, map_structure(part, self._padded), states


class GreedyEmbeddingHelper(DecodeHelper):
    """The next input is the embedding of the most likely number.

    ``start_tokens`` is int64 ``(N,)``; a sequence is finished with ``end_token``.
    """

    def __init__(
        self, embedding_fn: Callable[[Variable], Variable], start_tokens: Variable, end_token: int
    ) -> None:
        self.embedding_fn = embedding_fn
        self.start_tokens = start_tokens
        self.end_token = fill_constant([1], "int64", end_token)

    def initialize(self) -> tuple[Any, Variable]:
        """The embeddings of the start tokens; nothing is finished."""
        finished = fill_constant_batch_size_like(self.start_tokens, [-1], "bool", 0, force_cpu=True)
        return self.embedding_fn(self.start_tokens), finished

    def sample(self, time: Variable, outputs: Any, states: Any) -> Variable:
        """The most likely number."""
        return argmax(outputs, axis=-1)

    def next_inputs(
        self, time: Variable, outputs: Any, states: Any, sample_ids: Variable
    ) -> tuple[Variable, Any, Any]:
        """The embeddings of the samples."""
        finished = equal(sample_ids, self.end_token)
        return finished, self.embedding_fn(sample_ids), states


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """The next input is the embedding of a number drawn from ``softmax(outputs / softmax_temperature)``."""

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

    def sample(self, time: Variable, outputs: Any, states: Any) -> Variable:
        """Numbers drawn at random."""
        logits = outputs if self.softmax_temperature is None else outputs / self._temperature
        chances = softmax(logits)
        chances.stop_gradient = True
        return sampling_id(chances, seed=self.seed, dtype=self.start_tokens.dtype)


class BasicDecoder(Decoder):
    """A cell, an optional layer behind it, and a helper that chooses the next inputs.

    >>> from paddlelike.input import data
    >>> from paddlelike.layers.recurrent.cells import GRUCell
    >>> target, length = data("target", [None, 6, 3], "float32"), data("length", [None], "int64")
    >>> state = data("state", [None, 4], "float32")
    >>> decoder = BasicDecoder(GRUCell(4), TrainingHelper(target, length))
    >>> outputs, last = dynamic_decode(decoder, inits=state)
    """

    class OutputWrapper(NamedTuple):
        """What a step gives out."""

        cell_outputs: Any
        sample_ids: Any

    def __init__(
        self, cell: RNNCell, helper: DecodeHelper, output_fn: Callable[[Any], Any] | None = None
    ) -> None:
        self.cell = cell
        self.helper = helper
        self.output_fn = output_fn

    def initialize(self, initial_cell_states: Any) -> tuple[Any, Any, Variable]:
        """The helper's first inputs, the states given."""
        inputs, finished = self.helper.initialize()
        return inputs, initial_cell_states, finished

    def step(self, time: Variable, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Variable]:
        """One step of the cell, a sample of its output, the helper's next inputs."""
        outputs, states = self.cell(inputs, states, **kwargs)
        if self.output_fn is not None:
            outputs = self.output_fn(outputs)
        sample_ids = self.helper.sample(time, outputs=outputs, states=states)
        sample_ids.stop_gradient = True
        finished, inputs, states = self.helper.next_inputs(
            time, outputs=outputs, states=states, sample_ids=sample_ids
        )
        return self.OutputWrapper(outputs, sample_ids), states, inputs, finished
