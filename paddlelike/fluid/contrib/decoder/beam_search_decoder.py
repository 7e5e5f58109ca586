"""``fluid.contrib.decoder``: one recurrent cell that trains in a loop over words and decodes by beam search.

A :class:`StateCell` holds named inputs and states, and the function that computes a step. A
:class:`TrainingDecoder` runs it in a ``DynamicRNN``, a :class:`BeamSearchDecoder` in a ``While`` whose states
are arrays with an entry for each step. The programs are those that Fluid 1.8.5 builds.

Parameters
----------
state_cell
    The cell of the decoder.
name
    A name for messages; no variable bears it.
x
    A variable whose sequences are read, or which every step sees.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from paddlelike import layers, unique_name
from paddlelike.core import VarType
from paddlelike.fluid.contrib.decoder.state_cell import ArrayState, InitState, MemoryState, State, StateCell
from paddlelike.framework import Block, Variable, default_main_program

__all__ = ["BeamSearchDecoder", "InitState", "StateCell", "TrainingDecoder"]


class _Decoder(ABC):
    """Base class of decoders: a block, entered once, in which a cell computes the steps."""

    def __init__(self, state_cell: StateCell) -> None:
        self._state_cell = state_cell
        self._status = "before"
        state_cell._enter(self)

    @abstractmethod
    def _hold(self, start: InitState) -> State:
        """Return the object that keeps a state of the cell inside the loop."""

    @contextmanager
    def _enter(self) -> Iterator[None]:
        if self._status != "before":
            raise ValueError(f"{type(self).__name__}.block() can be entered once")
        self._status = "inside"
        yield
        self._status = "after"
        self._state_cell._leave()

    def _require(self, status: str, method: str) -> None:
        if self._status != status:
            where = {"inside": "inside", "after": "behind"}[status]
            raise ValueError(f"{type(self).__name__}.{method} is for use {where} the decoder's block()")

    @property
    def state_cell(self) -> StateCell:
        self._require("inside", "state_cell")
        return self._state_cell


class TrainingDecoder(_Decoder):
    """A decoder that reads the correct words: a step for each word of its sequences.

    Parameters
    ----------
    state_cell
        The cell that makes a step.
    name
        It has no effect, as in Fluid.

    See Also
    --------
    fluid.contrib.BeamSearchDecoder, fluid.contrib.StateCell, fluid.contrib.InitState

    >>> from paddlelike import layers, data
    >>> words = data("words", [None, 4], lod_level=1)
    >>> start = InitState(data("start", [None, 3]), need_reorder=True)
    >>> cell = StateCell({"x": None}, {"h": start}, "h")
    >>> @cell.state_updater
    ... def step(cell):
    ...     both = [cell.get_input("x"), cell.get_state("h")]
    ...     cell.set_state("h", layers.fc(both, 3, act="tanh"))
    >>> decoder = TrainingDecoder(cell)
    >>> with decoder.block():
    ...     cell.compute_state({"x": decoder.step_input(words)})
    ...     cell.update_states()
    ...     decoder.output(cell.out_state())
    >>> decoder().shape
    (-1, 3)
    """

    BEFORE_DECODER, IN_DECODER, AFTER_DECODER = 0, 1, 2

    def __init__(self, state_cell: StateCell, name: str | None = None) -> None:
        self.dynamic_rnn = layers.DynamicRNN()
        super().__init__(state_cell)

    def _hold(self, start: InitState) -> State:
        return MemoryState(self.dynamic_rnn, start)

    @contextmanager
    def block(self) -> Iterator[None]:
        """Enter the step; allowed once."""
        with self._enter(), self.dynamic_rnn.block():
            yield

    @property
    def type(self) -> int:
        """1, for training."""
        return 1

    def step_input(self, x: Variable) -> Variable:
        """Return the variable that holds one word of each sequence in a step."""
        self._require("inside", "step_input")
        return self.dynamic_rnn.step_input(x)

    def static_input(self, x: Variable) -> Variable:
        """Return the variable that every step reads as a whole."""
        self._require("inside", "static_input")
        return self.dynamic_rnn.static_input(x)

    def output(self, *outputs: Variable) -> None:
        """Declare the outputs of a step.

        Parameters
        ----------
        outputs
            Variables of the step.
        """
        self._require("inside", "output")
        self.dynamic_rnn.output(*outputs)

    def __call__(self) -> Variable | list[Variable]:
        """Return the outputs of all steps."""
        self._require("after", "__call__()")
        found: Variable | list[Variable] = self.dynamic_rnn()
        return found


class BeamSearchDecoder(_Decoder):
    """A decoder that extends the best candidates word by word until they end.

    Parameters
    ----------
    state_cell
        The cell that makes a step.
    name
        It has no effect, as in Fluid.
    init_ids
        The first word of each sentence, with two levels of sequences.
    init_scores
        The score of each.
    target_dict_dim
        The number of words.
    word_dim
        The width of their embedding.
    input_var_dict
        More inputs of the cell, by name.
    topk_size
        The number of words of a step that are looked at.
    sparse_emb
        Whether the embedding's gradient is sparse.
    max_len
        The largest number of steps.
    beam_size
        The number of sentences that are kept.
    end_id
        The word that ends a sentence, where they are put together; steps end at 1, as in Fluid.

    See Also
    --------
    fluid.contrib.TrainingDecoder, fluid.contrib.StateCell, fluid.contrib.InitState

    >>> from paddlelike.input import data
    >>> start = InitState(data("start", [None, 3]))
    >>> cell = StateCell({"x": None}, {"h": start}, "h")
    >>> ids, scores = data("ids", [None, 1], "int64", lod_level=2), data("scores", [None, 1], lod_level=2)
    >>> decoder = BeamSearchDecoder(cell, ids, scores, target_dict_dim=10, word_dim=4)
    """

    BEFORE_BEAM_SEARCH_DECODER, IN_BEAM_SEARCH_DECODER, AFTER_BEAM_SEARCH_DECODER = 0, 1, 2

    def __init__(
        self,
        state_cell: StateCell,
        init_ids: Variable,
        init_scores: Variable,
        target_dict_dim: int,
        word_dim: int,
        input_var_dict: Mapping[str, Variable] = {},
        topk_size: int = 50,
        sparse_emb: bool = True,
        max_len: int = 100,
        beam_size: int = 1,
        end_id: int = 1,
        name: str | None = None,
    ) -> None:
        self._step = layers.zeros([1], "int64")
        self._step.stop_gradient = True
        self._max_len = layers.fill_constant([1], "int64", max_len)
        self._goes_on = layers.less_than(self._step, layers.fill_constant([1], "int64", max_len))
        self._loop = layers.While(self._goes_on)
        super().__init__(state_cell)
        self._zero = layers.fill_constant([1], "int64", 0, force_cpu=True)
        self._init_ids, self._init_scores = init_ids, init_scores
        self._target_dict_dim, self._word_dim = target_dict_dim, word_dim
        self._input_var_dict = dict(input_var_dict)
        self._topk_size, self._sparse_emb = topk_size, sparse_emb
        self._beam_size, self._end_id = beam_size, end_id
        self._arrays: dict[str, Variable] = {}
        self._updates: list[tuple[Variable, Variable]] = []
        self._ids: Any = None
        self._scores: Any = None

    @property
    def type(self) -> int:
        """2, for beam search."""
        return 2

    def _hold(self, start: InitState) -> State:
        return ArrayState(self._parent_block(), start)

    def _parent_block(self) -> Block:
        program = default_main_program()
        return program.block(program.current_block().parent_idx)

    @contextmanager
    def block(self) -> Iterator[None]:
        """Enter the step; allowed once."""
        with self._enter(), self._loop.block():
            yield
            with layers.Switch() as switch, switch.case(self._goes_on):
                layers.increment(self._step, 1.0, in_place=True)
                for value, array in self._updates:
                    layers.array_write(value, self._step, array)
                layers.less_than(self._step, self._max_len, cond=self._goes_on)

    def early_stop(self) -> None:
        """End the search after this step."""
        layers.fill_constant([1], "bool", 0, force_cpu=True, out=self._goes_on)

    def read_array(self, init: Variable, is_ids: bool = False, is_scores: bool = False) -> Variable:
        """Return a value of the previous step; in the first step ``init``.

        Parameters
        ----------
        init
            The value before the first step.
        is_ids
            Whether these are the words.
        is_scores
            Whether these are the scores.
        """
        self._require("inside", "read_array")
        if is_ids and is_scores:
            raise ValueError("is_ids and is_scores are both true; an array holds words or scores")
        if not isinstance(init, Variable):
            raise TypeError(f"init must be a variable, got {type(init).__name__}")
        block = self._parent_block()
        name = unique_name.generate("beam_search_decoder_array")
        array = block.create_var(name=name, type=VarType.LOD_TENSOR_ARRAY, dtype=init.dtype)
        block.append_op("write_to_array", inputs={"X": init, "I": self._zero}, outputs={"Out": array})
        if is_ids:
            self._ids = array
        elif is_scores:
            self._scores = array
        found = layers.array_read(array, self._step)
        self._arrays[found.name] = array
        return found

    def update_array(self, array: Variable, value: Variable) -> None:
        """Set the value that the next step reads.

        Parameters
        ----------
        array
            The array that :meth:`read_array` returned.
        value
            The variable of this step.
        """
        self._require("inside", "update_array")
        for given in (array, value):
            if not isinstance(given, Variable):
                raise TypeError(f"update_array takes variables, got {type(given).__name__}")
        if array.name not in self._arrays:
            raise ValueError(f"{array.name!r} is not a value of read_array")
        self._updates.append((value, self._arrays[array.name]))

    def decode(self) -> None:
        """Build one step: embedding, cell, softmax, and the choice of the best words."""
        with self.block():
            ids = self.read_array(self._init_ids, is_ids=True)
            scores = self.read_array(self._init_scores, is_scores=True)
            size = [self._target_dict_dim, self._word_dim]
            embedding = layers.embedding(ids, size, is_sparse=self._sparse_emb)
            cell, given, before = self._state_cell, {}, {}
            for name, start in self._input_var_dict.items():
                if name not in cell._inputs:
                    raise ValueError(
                        f"input_var_dict names {name!r}; the cell's inputs are {', '.join(cell._inputs)}"
                    )
                before[name] = self.read_array(start)
                given[name] = layers.sequence_expand(before[name], scores)
            for name in cell._starts:
                cell.set_state(name, layers.sequence_expand(cell.get_state(name), scores))
            cell.compute_state({**{name: embedding for name in cell._inputs if name not in given}, **given})
            state = layers.lod_reset(cell.out_state(), scores)
            shares = layers.fc(state, self._target_dict_dim, act="softmax")
            best, words = layers.topk(shares, self._topk_size)
            total = layers.elementwise_add(layers.log(best), layers.reshape(scores, [-1]), axis=0)
            chosen = layers.beam_search(ids, scores, words, total, self._beam_size, end_id=1, level=0)
            with layers.Switch() as switch:
                with switch.case(layers.is_empty(chosen[0])):
                    self.early_stop()
                with switch.default():
                    cell.update_states()
                    self.update_array(ids, chosen[0])
                    self.update_array(scores, chosen[1])
                    for name, value in before.items():
                        self.update_array(value, given[name])

    def __call__(self) -> tuple[Variable, Variable]:
        """Return the words and the scores of the sentences."""
        self._require("after", "__call__()")
        return layers.beam_search_decode(self._ids, self._scores, self._beam_size, self._end_id)
