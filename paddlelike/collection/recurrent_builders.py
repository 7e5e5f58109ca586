"""The base of recurrent builders: layers over the parameters of a collection, and states after inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from paddlelike.collection.collection import ParameterCollection
from paddlelike.collection.expressions import Expression, inputTensor, parameter, to_expression
from paddlelike.collection.parameters import Parameters
from paddlelike.errors import GraphError, UnsupportedError

if TYPE_CHECKING:
    from paddlelike.collection.expressions import Operand

__all__ = ["Builder", "Memory", "RNNState", "Shape"]

Shape = int | tuple[int, int]
Memory = tuple[Expression, ...]  # of one layer: (h,) or (h, c)


class Builder(ABC):
    """Layers of one kind of cell, over the parameters of a collection of their own."""

    collection_name: ClassVar[str]
    has_cell: ClassVar[bool] = False  # the memory of a layer is (h, c)

    def __init__(self, layers: int, input_dim: int, hidden_dim: int, model: ParameterCollection) -> None:
        if layers < 1:
            raise GraphError(f"{type(self).__name__} needs at least one layer, not {layers}")
        self.layers, self.input_dim, self.hidden_dim = layers, input_dim, hidden_dim
        self._collection = model.add_subcollection(self.collection_name)
        dims = [input_dim, *[hidden_dim] * (layers - 1)]
        self._layers = [self._add_layer(dim, hidden_dim) for dim in dims]

    @property
    def spec(self) -> tuple[Any, ...]:
        """The arguments that create the builder again, without the collection."""
        return (self.layers, self.input_dim, self.hidden_dim)

    @classmethod
    def from_spec(cls, spec: tuple[Any, ...], model: ParameterCollection) -> Self:
        """Return a builder made from ``spec``, with its parameters in ``model``."""
        layers, input_dim, hidden_dim, *more = spec
        return cls(layers, input_dim, hidden_dim, model, *more)

    def param_collection(self) -> ParameterCollection:
        """Return the collection of the parameters."""
        return self._collection

    def set_dropout(self, d: float, d_h: float | None = None) -> None:
        """Accept a dropout of 0. Raises UnsupportedError for another one."""
        if d or d_h:
            raise UnsupportedError(
                f"{type(self).__name__} has no dropout inside",
                hint="use dy.dropout on the inputs and outputs of a step",
            )

    def disable_dropout(self) -> None:
        """Do nothing: the dropout is always 0."""
        self.set_dropout(0.0)

    def initial_state(self, vectors: Sequence[Operand] | None = None) -> RNNState:
        """Return the state before the first step.

        ``vectors`` are the memories of all layers: first the cells c, if the builder has any, then h; None
        for zeros. Raises GraphError when their count differs.
        """
        count = self.layers * (2 if self.has_cell else 1)
        if vectors is None:
            zeros = np.zeros(self.hidden_dim)
            given = [inputTensor(zeros) for _ in range(count)]
        else:
            given = [to_expression(vector) for vector in vectors]
        if len(given) != count:
            raise GraphError(
                f"{type(self).__name__} of {self.layers} layers has {count} memories, got {len(given)}"
            )
        if self.has_cell:
            cells, hiddens = given[: self.layers], given[self.layers :]
            return RNNState(self, tuple(zip(hiddens, cells, strict=True)), None, vectors is None)
        return RNNState(self, tuple((hidden,) for hidden in given), None, vectors is None)

    def step(self, memories: Sequence[Memory], x: Operand, *, first: bool = False) -> tuple[Memory, ...]:
        """Return the memories of all layers after one more input; with ``first`` they are zeros before it."""
        value = to_expression(x)
        after = []
        for weights, memory in zip(self._layers, memories, strict=True):
            after.append(self._step([parameter(weight) for weight in weights], memory, value, first))
            value = after[-1][0]
        return tuple(after)

    @abstractmethod
    def _add_layer(self, input_dim: int, hidden_dim: int) -> list[Parameters]:
        """Add the parameters of one layer."""

    @abstractmethod
    def _step(self, weights: list[Expression], memory: Memory, x: Expression, first: bool) -> Memory:
        """Return the memory of one layer after one more input. If ``first``, the memory is still zeros."""

    def _add(self, *shapes: Shape) -> list[Parameters]:
        """Add a layer's parameters: the matrices, and vectors of zeros."""
        return [self._collection.add_parameters(s, init=0.0 if isinstance(s, int) else None) for s in shapes]


class RNNState(NamedTuple):
    """The memories of a builder after some inputs (DyNet's ``RNNState``).

    Parameters
    ----------
    builder
        The builder that makes the next states.
    memories
        One value per layer.
    before
        The state that it was made from; None for the first.
    is_start
        Whether it is the first state.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> builder = dy.GRUBuilder(1, 3, 4, dy.ParameterCollection())
    >>> state = builder.initial_state()
    >>> state.add_input(dy.inputVector([1.0, 2.0, 3.0])).prev() is state
    True
    """

    builder: Builder
    memories: tuple[Memory, ...]
    before: RNNState | None = None
    is_start: bool = False  # without input and given memories

    def add_input(self, x: Operand) -> RNNState:
        """Return the state after one more input of shape ``(input_dim,)``."""
        memories = self.builder.step(self.memories, x, first=self.is_start)
        return RNNState(self.builder, memories, self)

    def add_inputs(self, xs: Sequence[Operand]) -> list[RNNState]:
        """Return the state after each input."""
        states = []
        state = self
        for x in xs:
            state = state.add_input(x)
            states.append(state)
        return states

    def transduce(self, xs: Sequence[Operand]) -> list[Expression]:
        """Return the output after each input."""
        return [state.output() for state in self.add_inputs(xs)]

    def output(self) -> Expression:
        """Return the hidden vector of the last layer."""
        return self.memories[-1][0]

    def h(self) -> tuple[Expression, ...]:
        """Return the hidden vectors of all layers."""
        return tuple(memory[0] for memory in self.memories)

    def s(self) -> tuple[Expression, ...]:
        """Return all memories: the cells of all layers, if there are any, then the hidden vectors."""
        cells = tuple(memory[1] for memory in self.memories if len(memory) > 1)
        return cells + self.h()

    def prev(self) -> RNNState | None:
        """Return the state before the last input."""
        return self.before
