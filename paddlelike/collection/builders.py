"""DyNet's recurrent builders: their parameters, in DyNet's order, and their formulas.

========================== ============================================ ==================================
builder                    parameters of a layer                        a step
========================== ============================================ ==================================
SimpleRNNBuilder           W, U, b                                      h = tanh(W x + U h + b)
GRUBuilder                 W, U, b of z, of r, of the candidate g       h = (1 - z) h + z g
VanillaLSTMBuilder         W, U, b with the rows of i, f, o, g          c = f c + i g, h = o tanh(c)
CompactVanillaLSTMBuilder  the same                                     the same
CoupledLSTMBuilder         W, U, peephole and b of i, of o; W, U, b     f = 1 - i; o sees the new c
BiRNNBuilder               a builder forward and one backward           both outputs, concatenated
========================== ============================================ ==================================

A gate is logistic. ``LSTMBuilder`` is the vanilla one, as in DyNet 2.1 and 2.2. A builder's ``spec`` and the
parameters of its ``param_collection()`` make it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from paddlelike.collection.collection import ParameterCollection
from paddlelike.collection.expressions import (
    Expression,
    cmult,
    concatenate,
    inputTensor,
    layer_norm,
    logistic,
    parameter,
    tanh,
    to_expression,
)
from paddlelike.collection.parameters import Parameters
from paddlelike.errors import GraphError

__all__ = [
    "BiRNNBuilder",
    "CompactVanillaLSTMBuilder",
    "CoupledLSTMBuilder",
    "GRUBuilder",
    "LSTMBuilder",
    "RNNState",
    "SimpleRNNBuilder",
    "VanillaLSTMBuilder",
]

Shape = int | tuple[int, int]
Memory = tuple[Expression, ...]  # of one layer: (h,) or (h, c)


class _Builder:
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
        """The arguments that make the builder anew, without the collection."""
        return (self.layers, self.input_dim, self.hidden_dim)

    @classmethod
    def from_spec(cls, spec: tuple[Any, ...], model: ParameterCollection) -> Self:
        """Make a builder from a ``spec``, its parameters in ``model``."""
        layers, input_dim, hidden_dim, *more = spec
        return cls(layers, input_dim, hidden_dim, model, *more)

    def param_collection(self) -> ParameterCollection:
        """Return the collection of the parameters."""
        return self._collection

    def initial_state(self, vectors: Sequence[Any] | None = None) -> RNNState:
        """Return the state before the first step.

        ``vectors`` are the memories of all layers, the cells c first where there are some, then h; None:
        zeros. Raises GraphError when their count differs.
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

    def step(self, memories: Sequence[Memory], x: Any, *, first: bool = False) -> tuple[Memory, ...]:
        """Return the memories of all layers after one more input; ``first``: they are still zeros."""
        value = to_expression(x)
        after = []
        for weights, memory in zip(self._layers, memories, strict=True):
            after.append(self._step([parameter(weight) for weight in weights], memory, value, first))
            value = after[-1][0]
        return tuple(after)

    def _add_layer(self, input_dim: int, hidden_dim: int) -> list[Parameters]:
        raise NotImplementedError

    def _step(self, weights: list[Expression], memory: Memory, x: Expression, first: bool) -> Memory:
        raise NotImplementedError

    def _add(self, *shapes: Shape) -> list[Parameters]:
        """Add matrices, and vectors of zeros."""
        return [self._collection.add_parameters(s, init=0.0 if isinstance(s, int) else None) for s in shapes]


class RNNState(NamedTuple):
    """A builder's memories after some inputs."""

    builder: _Builder
    memories: tuple[Memory, ...]
    before: RNNState | None = None
    is_start: bool = False  # no input yet, and no memories given

    def add_input(self, x: Any) -> RNNState:
        """Return the state after one more input of shape ``(input_dim,)``."""
        memories = self.builder.step(self.memories, x, first=self.is_start)
        return RNNState(self.builder, memories, self)

    def add_inputs(self, xs: Sequence[Any]) -> list[RNNState]:
        """Return the state after each input."""
        states = []
        state = self
        for x in xs:
            state = state.add_input(x)
            states.append(state)
        return states

    def transduce(self, xs: Sequence[Any]) -> list[Expression]:
        """Return the output after each input."""
        return [state.output() for state in self.add_inputs(xs)]

    def output(self) -> Expression:
        """Return the hidden vector of the last layer."""
        return self.memories[-1][0]

    def h(self) -> tuple[Expression, ...]:
        """Return the hidden vectors of all layers."""
        return tuple(memory[0] for memory in self.memories)

    def s(self) -> tuple[Expression, ...]:
        """Return all memories: the cells of all layers, where there are some, then the hidden vectors."""
        cells = tuple(memory[1] for memory in self.memories if len(memory) > 1)
        return cells + self.h()

    def prev(self) -> RNNState | None:
        """Return the state before the last input."""
        return self.before


class SimpleRNNBuilder(_Builder):
    """Elman's network: ``h = tanh(W x + U h + b)``."""

    collection_name = "simple-rnn-builder"

    def _add_layer(self, input_dim: int, hidden_dim: int) -> list[Parameters]:
        return self._add((hidden_dim, input_dim), (hidden_dim, hidden_dim), hidden_dim)

    def _step(self, weights: list[Expression], memory: Memory, x: Expression, first: bool) -> Memory:
        return (tanh(_affine(weights, x, memory[0])),)


class GRUBuilder(_Builder):
    """Gated recurrent units (Cho et al., 2014)."""

    collection_name = "gru-builder"

    def _add_layer(self, input_dim: int, hidden_dim: int) -> list[Parameters]:
        gate: list[Shape] = [(hidden_dim, input_dim), (hidden_dim, hidden_dim), hidden_dim]
        return self._add(*gate * 3)

    def _step(self, weights: list[Expression], memory: Memory, x: Expression, first: bool) -> Memory:
        (h,) = memory
        z = logistic(_affine(weights[:3], x, h))
        r = logistic(_affine(weights[3:6], x, h))
        candidate = tanh(_affine(weights[6:], x, cmult(r, h)))
        return (cmult(1 - z, h) + cmult(z, candidate),)


class VanillaLSTMBuilder(_Builder):
    """Long short-term memory without peepholes.

    ``forget_bias`` is added to the gate f at every step. With ``ln_lstm`` (layer normalization) the gains and
    biases belong to this builder's collection; DyNet adds them to the collection around it, and its ``save``
    loses them.
    """

    collection_name = "vanilla-lstm-builder"
    has_cell = True

    def __init__(
        self,
        layers: int,
        input_dim: int,
        hidden_dim: int,
        model: ParameterCollection,
        ln_lstm: bool = False,
        forget_bias: float = 1.0,
    ) -> None:
        self.ln_lstm, self.forget_bias = ln_lstm, forget_bias
        super().__init__(layers, input_dim, hidden_dim, model)

    @property
    def spec(self) -> tuple[Any, ...]:
        """The arguments that make the builder anew, without the collection."""
        return (self.layers, self.input_dim, self.hidden_dim, self.ln_lstm, self.forget_bias)

    def _add_layer(self, input_dim: int, hidden_dim: int) -> list[Parameters]:
        weights = self._add((4 * hidden_dim, input_dim), (4 * hidden_dim, hidden_dim), 4 * hidden_dim)
        if self.ln_lstm:
            for dim in (4 * hidden_dim, 4 * hidden_dim, hidden_dim):  # of U h, of W x, of c
                weights += [self._collection.add_parameters(dim, init=first) for first in (1.0, 0.0)]
        return weights

    def _step(self, weights: list[Expression], memory: Memory, x: Expression, first: bool) -> Memory:
        h, c = memory
        n = self.hidden_dim
        gates = self._gates(weights, x, h, first)
        i, o = logistic(gates[:n]), logistic(gates[2 * n : 3 * n])
        f = logistic(gates[n : 2 * n] + self.forget_bias)
        after = cmult(f, c) + cmult(i, tanh(gates[3 * n :]))
        shown = layer_norm(after, *weights[7:]) if self.ln_lstm else after
        return cmult(o, tanh(shown)), after

    def _gates(self, weights: list[Expression], x: Expression, h: Expression, first: bool) -> Expression:
        if not self.ln_lstm:
            return _affine(weights, x, h)
        w, u, b = weights[:3]
        gates = b + layer_norm(w * x, *weights[5:7])
        return (
            gates if first else gates + layer_norm(u * h, *weights[3:5])
        )  # zeros have no standard deviation


LSTMBuilder = VanillaLSTMBuilder  # as in DyNet 2.1 and 2.2


class CompactVanillaLSTMBuilder(VanillaLSTMBuilder):
    """The vanilla LSTM under the name of DyNet's fused one; the bias of f is 1."""

    collection_name = "compact-vanilla-lstm-builder"

    def __init__(self, layers: int, input_dim: int, hidden_dim: int, model: ParameterCollection) -> None:
        super().__init__(layers, input_dim, hidden_dim, model)

    @property
    def spec(self) -> tuple[Any, ...]:
        """The arguments that make the builder anew, without the collection."""
        return (self.layers, self.input_dim, self.hidden_dim)


class CoupledLSTMBuilder(_Builder):
    """LSTM with peepholes whose forget gate is ``1 - i``: DyNet's older ``LSTMBuilder``."""

    collection_name = "lstm-builder"
    has_cell = True

    def _add_layer(self, input_dim: int, hidden_dim: int) -> list[Parameters]:
        gate: list[Shape] = [
            (hidden_dim, input_dim),
            (hidden_dim, hidden_dim),
            (hidden_dim, hidden_dim),
            hidden_dim,
        ]
        return self._add(*gate, *gate, (hidden_dim, input_dim), (hidden_dim, hidden_dim), hidden_dim)

    def _step(self, weights: list[Expression], memory: Memory, x: Expression, first: bool) -> Memory:
        h, c = memory
        x2i, h2i, c2i, bi, x2o, h2o, c2o, bo, *candidate = weights
        i = logistic(_affine([x2i, h2i, bi], x, h) + c2i * c)
        after = cmult(1 - i, c) + cmult(i, tanh(_affine(candidate, x, h)))
        o = logistic(_affine([x2o, h2o, bo], x, h) + c2o * after)
        return cmult(o, tanh(after)), after


class BiRNNBuilder:
    """Layers of two builders, one in each direction, whose outputs are concatenated.

    Parameters
    ----------
    hidden_dim
        Of both directions together, so an even number.
    rnn_builder_factory
        The class of the builders; called as ``factory(1, input_dim, hidden_dim / 2, collection)``.
    builder_layers
        Pairs of builders that exist already, in place of new ones.
    """

    def __init__(
        self,
        num_layers: int,
        input_dim: int,
        hidden_dim: int,
        model: ParameterCollection,
        rnn_builder_factory: Callable[..., Any],
        builder_layers: list[tuple[Any, Any]] | None = None,
    ) -> None:
        if num_layers < 1 or hidden_dim % 2:
            raise GraphError(
                f"BiRNNBuilder: {num_layers} layers of width {hidden_dim}; the width must be even"
            )
        self.spec = (num_layers, input_dim, hidden_dim, rnn_builder_factory, builder_layers)
        self._collection = model.add_subcollection("birnn")
        dims = [input_dim, *[hidden_dim] * (num_layers - 1)]
        self.builder_layers = builder_layers or [
            (
                rnn_builder_factory(1, dim, hidden_dim // 2, self._collection),
                rnn_builder_factory(1, dim, hidden_dim // 2, self._collection),
            )
            for dim in dims
        ]

    @classmethod
    def from_spec(cls, spec: tuple[Any, ...], model: ParameterCollection) -> Self:
        """Make a builder from a ``spec``, its parameters in ``model``."""
        num_layers, input_dim, hidden_dim, factory, builder_layers = spec
        return cls(num_layers, input_dim, hidden_dim, model, factory, builder_layers)

    def param_collection(self) -> ParameterCollection:
        """Return the collection of the parameters."""
        return self._collection

    def transduce(self, xs: Sequence[Any]) -> list[Expression]:
        """Return the output ``(hidden_dim,)`` at each input."""
        values = [to_expression(x) for x in xs]
        for forward, backward in self.builder_layers:
            ahead = forward.initial_state().transduce(values)
            behind = backward.initial_state().transduce(values[::-1])[::-1]
            values = [concatenate(pair) for pair in zip(ahead, behind, strict=True)]
        return values


def _affine(weights: Sequence[Expression], x: Expression, h: Expression) -> Expression:
    """Return ``W x + U h + b``."""
    w, u, b = weights
    return w * x + u * h + b
