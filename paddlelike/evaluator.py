"""Evaluators, the older form of :mod:`paddlelike.metrics`: their sums over batches are persistables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paddlelike import layers, metrics, unique_name
from paddlelike.errors import GraphError
from paddlelike.foundation.docstrings import describe_like
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program, Variable, program_guard
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.core import Array, DtypeLike
    from paddlelike.executor.run import Executor

__all__ = ["ChunkEvaluator", "DetectionMAP", "EditDistance", "Evaluator"]


class Evaluator:
    """Base class of evaluators: operators add the values of each batch to states, which :meth:`reset` sets to
    0.

    Attributes
    ----------
    states
        The persistable sums, saved with checkpoints.
    metrics
        The values of the current batch, to be fetched.

    Parameters
    ----------
    name
        The first part of the names of the states.

    Raises
    ------
    GraphError
        It is built inside of a branch or a loop.

    See Also
    --------
    fluid.evaluator.ChunkEvaluator, fluid.evaluator.DetectionMAP, fluid.evaluator.EditDistance
    fluid.metrics.MetricBase

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     Evaluator("sums").states
    []
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        own = type(self).__name__
        warn_user(
            f"fluid.evaluator.{own} is deprecated, as in Fluid; use fluid.metrics.{own}", DeprecationWarning
        )
        self.helper = LayerHelper(name, **kwargs)
        self.states: list[Variable] = []
        self.metrics: list[Variable] = []
        if self.helper.main_program.current_block().idx != 0:
            raise GraphError(f"evaluator.{own}: it must be built outside of branches and loops")

    def reset(self, executor: Executor, reset_program: Program | None = None) -> None:
        """Set the states to 0, by operators that are appended to ``reset_program`` (None means a new one)."""
        program = Program() if reset_program is None else reset_program
        with program_guard(program):
            for state in self.states:
                twin = _declare(program, state)
                layers.fill_constant(list(state.shape), state.dtype, 0.0, out=twin)
        executor.run(program)

    def eval(self, executor: Executor, eval_program: Program | None = None) -> object:
        """Return the result of all batches since the reset; each subclass defines its own."""
        raise NotImplementedError(f"{type(self).__name__} must define eval(executor)")

    def _fetch_states(self, executor: Executor, program: Program | None) -> list[float]:
        program = Program() if program is None else program
        fetched = executor.run(program, fetch_list=[_declare(program, state) for state in self.states])
        return [float(np.asarray(value).reshape(-1)[0]) for value in fetched]

    def _create_state(self, suffix: str, dtype: DtypeLike, shape: Sequence[int]) -> Variable:
        """Return a new persistable of the program, one of the states."""
        name = f"{unique_name.generate(self.helper.name)}_{suffix}"
        state = self.helper.create_variable(name=name, persistable=True, dtype=dtype, shape=shape)
        self.states.append(state)
        return state

    def _add_up(self, state: Variable, value: Variable) -> None:
        layers.sums([state, value], out=state)


def _declare(program: Program, state: Variable) -> Variable:
    """Return the variable of that name in another program, which shares the value in the scope."""
    return program.global_block().create_var(
        name=state.name, shape=state.shape, dtype=state.dtype, lod_level=state.lod_level, persistable=True
    )


@describe_like(layers.chunk_eval)
class ChunkEvaluator(Evaluator):
    """Precision, recall and F1 of chunks; the arguments are as for :func:`layers.chunk_eval`.

    See Also
    --------
    fluid.evaluator.Evaluator, fluid.evaluator.DetectionMAP, fluid.evaluator.EditDistance
    fluid.metrics.MetricBase

    >>> import warnings
    >>> import paddlelike as fluid
    >>> tags, labels = (fluid.data(name, [None, 1], "int64", lod_level=1) for name in ("tags", "labels"))
    >>> with warnings.catch_warnings(action="ignore"):
    ...     chunks = ChunkEvaluator(tags, labels, "IOB", num_chunk_types=3)
    >>> len(chunks.metrics)
    3
    """

    def __init__(
        self,
        input: Variable,
        label: Variable,
        chunk_scheme: str,
        num_chunk_types: int,
        excluded_chunk_types: Sequence[int] | None = None,
    ) -> None:
        super().__init__("chunk_eval")
        self.num_infer_chunks = self._create_state("num_infer_chunks", "int64", [1])
        self.num_label_chunks = self._create_state("num_label_chunks", "int64", [1])
        self.num_correct_chunks = self._create_state("num_correct_chunks", "int64", [1])
        found = layers.chunk_eval(input, label, chunk_scheme, num_chunk_types, excluded_chunk_types)
        for state, count in zip(self.states, found[3:], strict=True):
            self._add_up(state, count)
        self.metrics.extend(found[:3])

    def eval(self, executor: Executor, eval_program: Program | None = None) -> tuple[Array, Array, Array]:
        """Return precision, recall and F1 since the reset, each float32 of shape (1,)."""
        inferred, labelled, correct = self._fetch_states(executor, eval_program)
        precision = correct / inferred if inferred else 0.0
        recall = correct / labelled if labelled else 0.0
        f1 = 2 * precision * recall / (precision + recall) if correct else 0.0
        return (np.array([precision], np.float32), np.array([recall], np.float32), np.array([f1], np.float32))


class EditDistance(Evaluator):
    """The mean edit distance of sequences (operator ``edit_distance``), and the fraction of wrong sequences.

    ``input`` and ``label`` are int64 sequences of the same count; ``ignored_tokens`` are removed first.

    Parameters
    ----------
    input, label
        int64 sequences (T, 1), one LoD level, the same number of each.
    ignored_tokens
        Ids that are removed from both first; None for none.

    See Also
    --------
    fluid.evaluator.Evaluator, fluid.evaluator.ChunkEvaluator, fluid.evaluator.DetectionMAP
    fluid.metrics.MetricBase

    >>> import warnings
    >>> import paddlelike as fluid
    >>> found, right = (fluid.data(name, [None, 1], "int64", lod_level=1) for name in ("found", "right"))
    >>> with warnings.catch_warnings(action="ignore"):
    ...     distance = EditDistance(found, right)
    >>> len(distance.metrics)
    2
    """

    def __init__(
        self, input: Variable, label: Variable, ignored_tokens: Sequence[int] | None = None, **kwargs: Any
    ) -> None:
        super().__init__("edit_distance", **kwargs)
        self.total_distance = self._create_state("total_distance", "float32", [1])
        self.seq_num = self._create_state("seq_num", "int64", [1])
        self.instance_error = self._create_state("instance_error", "int64", [1])
        distances, count = layers.edit_distance(input, label, ignored_tokens=ignored_tokens)
        right = layers.cast(layers.equal(distances, layers.fill_constant([1], "float32", 0.0)), "int64")
        right_count = layers.reduce_sum(right)
        wrong_count = layers.elementwise_sub(count, right_count)
        total = layers.reduce_sum(distances)
        for state, value in zip(self.states, (total, count, wrong_count), strict=True):
            self._add_up(state, value)
        self.metrics.extend((total, wrong_count))

    def eval(self, executor: Executor, eval_program: Program | None = None) -> tuple[Array, Array]:
        """Return the mean distance and the share of wrong sequences since the reset, float32 (1,) each."""
        total, count, wrong = self._fetch_states(executor, eval_program)
        with np.errstate(all="ignore"):  # as in Fluid, nan before the first batch
            shares = np.array([[total], [wrong]], np.float32) / np.float32(count)
        return shares[0], shares[1]


@describe_like(metrics.DetectionMAP)
class DetectionMAP(metrics.DetectionMAP, Evaluator):
    """The mean average precision of detections; the arguments are as for :class:`metrics.DetectionMAP`.

    See Also
    --------
    fluid.evaluator.Evaluator, fluid.evaluator.ChunkEvaluator, fluid.evaluator.EditDistance
    fluid.metrics.MetricBase

    >>> import warnings
    >>> import paddlelike as fluid
    >>> found = fluid.data("found", [None, 6], lod_level=1)
    >>> label, box = (fluid.data(name, [None, n], lod_level=1) for name, n in (("label", 1), ("box", 4)))
    >>> with warnings.catch_warnings(action="ignore"):
    ...     precision = DetectionMAP(found, label, box, class_num=3)
    """

    _create_state = Evaluator._create_state

    def _create_helper(self) -> LayerHelper:
        Evaluator.__init__(self, "map_eval")
        return self.helper

    def _create_flag(self) -> Variable:
        return self.helper.create_variable(
            name=unique_name.generate("_generated_var"), persistable=True, dtype="int32", shape=[1]
        )
