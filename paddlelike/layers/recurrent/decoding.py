"""Decoding: the loop over steps, and beams of the best sequences.

Parameters
----------
max_step_num
    The largest number of steps; None for no limit.
beam_size
    The number of continuations that are kept for a source.
end_id
    The id that ends a sentence.
ids
    The ids of each step, int (T, N, beams).
parents
    The beam that each id continues, in the same shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddlelike.core import VarType
from paddlelike.framework import Variable
from paddlelike.layers.control.loops import While
from paddlelike.layers.control.tensor_array import (
    array_read,
    array_write,
    create_array,
    tensor_array_to_tensor,
)
from paddlelike.layers.elementwise.binary import elementwise_add, elementwise_mul
from paddlelike.layers.elementwise.compare import less_equal, logical_and, logical_not, logical_or
from paddlelike.layers.elementwise.scale import cast, increment
from paddlelike.layers.emit import INTEGERS, check_variable, emit, emit_all
from paddlelike.layers.recurrent.cells import swap_batch_and_time
from paddlelike.layers.reduction import reduce_all
from paddlelike.layers.tensor.assign import assign
from paddlelike.layers.tensor.constant import fill_constant, zeros_like
from paddlelike.layers.utils import map_structure

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.framework.typing import Nested

__all__ = ["Decoder", "beam_search", "beam_search_decode", "dynamic_decode", "gather_tree"]


class Decoder:
    """A decoder for :func:`dynamic_decode`. A subclass defines :meth:`initialize` and :meth:`step`.

    Same as Fluid's class of this name. Inputs have the shape (N, ...).

    Raises
    ------
    NotImplementedError
        The subclass does not define the called method.

    >>> import paddlelike as fluid
    >>> issubclass(fluid.layers.BasicDecoder, fluid.layers.Decoder)
    True
    """

    def initialize(self, inits: Any) -> tuple[Any, Any, Variable]:
        """Return the inputs and states of the first step, and whether each sequence is already finished.

        Raises NotImplementedError unless a subclass defines it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define initialize(inits)")

    def step(self, time: Variable, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Variable]:
        """Return the outputs of step ``time``, the next states and inputs, and whether sequences have ended.

        Raises NotImplementedError unless a subclass defines it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define step(time, inputs, states)")

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Variable) -> tuple[Any, Any]:
        """Return the outputs of all steps and the last states for the caller, by default unchanged."""
        return outputs, final_states


def dynamic_decode(
    decoder: Decoder,
    inits: Nested | None = None,
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
    decoder
        The decoder: a :class:`BeamSearchDecoder`, a :class:`BasicDecoder`, or your own subclass of
        :class:`Decoder`.
    inits
        The argument of ``decoder.initialize``.
    output_time_major
        Whether time, instead of the batch, is the first dim of the outputs.
    impute_finished
        Whether finished sequences keep their states.
    is_test
        Whether to keep nothing for a backward pass.
    return_length
        Whether to return the number of steps of every sequence as well.
    kwargs
        Passed to ``decoder.step``.

    Returns
    -------
    outputs
        The outputs of all steps, in the decoder's structure: (N, T, ...), or (T, N, ...) with
        ``output_time_major``.
    states
        The last states, in the structure of the decoder's states.
    lengths : Variable
        Only with ``return_length``: int64 (N,), the number of steps of each sequence.

    >>> import paddlelike as fluid
    >>> words, length = fluid.data("words", [None, 6, 3]), fluid.data("length", [None], "int64")
    >>> teacher = fluid.layers.TrainingHelper(words, length)
    >>> decoder = fluid.layers.BasicDecoder(fluid.layers.GRUCell(4), teacher)
    >>> outputs, last = fluid.layers.dynamic_decode(decoder, inits=fluid.data("state", [None, 4]))
    >>> outputs.cell_outputs.shape
    (-1, -1, 4)
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
            after = map_structure(lambda old, new: _impute(old, new, finished), before, after)
        arrays = map_structure(lambda x: _create_array_outside(loop, x.dtype), outputs)
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
    """Inputs and states of all steps, kept in arrays for a backward pass."""

    def __init__(self, inputs: Nested, states: Nested, step: Variable) -> None:
        self._step = step
        self._inputs = map_structure(lambda x: array_write(x, step), inputs)
        self._states = map_structure(lambda x: array_write(x, step), states)

    def read(self) -> tuple[Any, Any]:
        """Return the inputs and states of the current step."""
        return self._read_current(self._inputs), self._read_current(self._states)

    def _read_current(self, arrays: Nested) -> Any:
        return map_structure(lambda array: array_read(array, self._step), arrays)

    def write(self, inputs: Nested, states: Nested) -> None:
        """Write the inputs and states of the next step, at the incremented index."""
        for values, arrays in ((inputs, self._inputs), (states, self._states)):
            map_structure(lambda x, array: array_write(x, self._step, array), values, arrays)

    def last(self) -> Any:
        """Return the states after the last step."""
        return self._read_current(self._states)


class _Reused:
    """Inputs and states of the current step only."""

    def __init__(self, inputs: Nested, states: Nested) -> None:
        self._inputs, self._states = inputs, states

    def read(self) -> tuple[Any, Any]:
        """Return the inputs and states of the current step."""
        return self._inputs, self._states

    def write(self, inputs: Nested, states: Nested) -> None:
        """Overwrite inputs and states with the next step's."""
        map_structure(assign, inputs, self._inputs)
        map_structure(assign, states, self._states)

    def last(self) -> Any:
        """Return the states after the last step."""
        return self._states


def _create_array_outside(loop: While, dtype: DtypeLike) -> Variable:
    """Return a new array in the block around the loop."""
    program = loop.helper.main_program
    inside = program.current_block()
    program.current_block_idx = inside.parent_idx
    try:
        return create_array(dtype)
    finally:
        program.current_block_idx = inside.idx


def _impute(old: Variable, new: Variable, finished: Variable) -> Variable:
    """Return ``old`` in finished rows, ``new`` in the others."""
    kind = new.dtype
    if kind == VarType.BOOL:
        old, new = cast(old, "float32"), cast(new, "float32")
    mask = cast(finished, new.dtype)
    chosen = elementwise_mul(old, mask, axis=0) - elementwise_mul(new, mask - 1, axis=0)
    return cast(chosen, kind) if kind == VarType.BOOL else chosen


def beam_search(
    pre_ids: Variable,
    pre_scores: Variable,
    ids: Variable | None,
    scores: Variable,
    beam_size: int,
    end_id: int,
    level: int = 0,
    is_accumulated: bool = True,
    name: str | None = None,
    return_parent_idx: bool = False,
) -> tuple[Variable, ...]:
    """Return the ids and scores of the ``beam_size`` best continuations for each source.

    Operator ``beam_search``. All inputs have two levels of LoD: sources, and prefixes.

    Rows that hold ``end_id`` are not continued. Without ``is_accumulated`` the operator adds the scores of
    earlier steps.

    Parameters
    ----------
    pre_ids, pre_scores
        The selection of the previous step, (prefixes, 1).
    ids, scores
        The candidates of every prefix, (prefixes, K), often of :func:`topk`.
    level
        The level of LoD that separates the sources.
    is_accumulated
        Whether scores include the scores of earlier steps.
    return_parent_idx
        Whether the index of each prefix is returned as well.

    Returns
    -------
    ids : Variable
        int64 (selected, 1), with the LoD of sources and prefixes.
    scores : Variable
        (selected, 1), in the dtype of ``scores``.
    parents : Variable
        Only with ``return_parent_idx``: the index of the prefix that each selected id continues.

    Raises
    ------
    TypeError
        ``pre_ids``, ``pre_scores`` or ``scores`` is not a variable.

    >>> import paddlelike as fluid
    >>> ids, scores = fluid.data("ids", [None, 1], "int64", 2), fluid.data("scores", [None, 1], "float32", 2)
    >>> best, indices = fluid.layers.topk(fluid.data("probs", [None, 100], "float32"), k=4)
    >>> chosen, totals = fluid.layers.beam_search(ids, scores, indices, best, beam_size=2, end_id=1)
    >>> chosen.shape, totals.shape
    ((-1, 1), (-1, 1))
    """
    given = {"pre_ids": pre_ids, "pre_scores": pre_scores, "ids": ids, "scores": scores}
    for argument, value in given.items():
        if value is not None or argument != "ids":
            check_variable("beam_search", argument, value)
    outputs = {
        "selected_scores": pre_scores.dtype,
        "selected_ids": pre_ids.dtype,
        "parent_idx": VarType.INT32,
    }
    attrs = {"level": level, "beam_size": beam_size, "end_id": end_id, "is_accumulated": is_accumulated}
    best_scores, best_ids, parents = emit_all("beam_search", given, outputs, attrs, name=name)
    return (best_ids, best_scores, parents) if return_parent_idx else (best_ids, best_scores)


def beam_search_decode(
    ids: Variable, scores: Variable, beam_size: int, end_id: int, name: str | None = None
) -> tuple[Variable, Variable]:
    """Return the decoded sentences and their scores, with a LoD of sources and sentences.

    Operator ``beam_search_decode``.

    A sentence ends at its first ``end_id``. The outputs have two levels of LoD, the sources and their
    sentences, and one row for each word.

    Parameters
    ----------
    ids, scores
        Arrays with one element per step of :func:`beam_search`.

    Returns
    -------
    sentences : Variable
        int64 (words,): the ids, with a LoD of sources and sentences.
    scores : Variable
        (words,) with the same LoD, in the dtype of ``scores``.

    >>> import paddlelike as fluid
    >>> zero = fluid.layers.fill_constant([1], "int64", 0)
    >>> ids = fluid.layers.array_write(fluid.data("ids", [None, 1], "int64", 2), zero)
    >>> scores = fluid.layers.array_write(fluid.data("scores", [None, 1], "float32", 2), zero)
    >>> sentences, totals = fluid.layers.beam_search_decode(ids, scores, beam_size=2, end_id=1)
    >>> sentences.dtype.name, totals.dtype.name
    ('INT64', 'FP32')
    """
    inputs = {"Ids": ids, "Scores": scores}
    outputs = {"SentenceIds": ids.dtype, "SentenceScores": scores.dtype}
    attrs = {"beam_size": beam_size, "end_id": end_id}
    out_ids, out_scores = emit_all("beam_search_decode", inputs, outputs, attrs, name=name)
    return out_ids, out_scores


def gather_tree(ids: Variable, parents: Variable) -> Variable:
    """Return the sequences of a beam search from its ids and parents (T, N, beams) (``gather_tree``).

    Returns
    -------
    Variable
        (T, N, beams), in the dtype of ``ids``.

    Raises
    ------
    TypeError
        ``ids`` or ``parents`` is not a variable of int32 or int64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [3, 2, 2], "int64")
    >>> y = fluid.data("y", [3, 2, 2], "int64")
    >>> fluid.layers.gather_tree(x, y).shape
    (3, 2, 2)
    """
    check_variable("gather_tree", "ids", ids, INTEGERS)
    check_variable("gather_tree", "parents", parents, INTEGERS)
    return emit("gather_tree", {"Ids": ids, "Parents": parents})
