"""DyNet's recurrent builders: their parameters, in DyNet's order, and their formulas.

========================== ============================================ ==================================
builder                    parameters of a layer                        a step
========================== ============================================ ==================================
SimpleRNNBuilder           W, U, b                                      h = tanh(W x + U h + b)
GRUBuilder                 W, U, b of z, of r, of the candidate g       h = (1 - z) h + z g
VanillaLSTMBuilder         W, U, b with the rows of i, f, o, g          c = f c + i g, h = o tanh(c)
CompactVanillaLSTMBuilder  the same                                     the same
SparseLSTMBuilder          W, U, their masks, b                         the same, of the masked W and U
CoupledLSTMBuilder         W, U, peephole and b of i, of o; W, U, b     f = 1 - i; o sees the new c
BiRNNBuilder               a builder forward and one backward           both outputs, concatenated
========================== ============================================ ==================================

A gate is logistic. ``LSTMBuilder`` is ``VanillaLSTMBuilder``, as in DyNet 2.1 and 2.2. A builder's ``spec``
and the parameters of its ``param_collection()`` create it again.

Parameters
----------
layers, num_layers
    The number of layers.
input_dim
    The width of the inputs.
hidden_dim
    The width of the outputs.
model
    The collection that the parameters are added to.
ln_lstm
    Whether the gates are normalized (layer normalization).
forget_bias
    Added to the gate f at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from paddlelike.collection.collection import ParameterCollection
from paddlelike.collection.expressions import (
    Expression,
    cmult,
    concatenate,
    layer_norm,
    logistic,
    tanh,
    to_expression,
)
from paddlelike.collection.parameters import Parameters
from paddlelike.collection.recurrent_builders import Builder, Memory, Shape
from paddlelike.errors import GraphError

if TYPE_CHECKING:
    from paddlelike.collection.expressions import Operand

__all__ = [
    "BiRNNBuilder",
    "CompactVanillaLSTMBuilder",
    "CoupledLSTMBuilder",
    "GRUBuilder",
    "LSTMBuilder",
    "SimpleRNNBuilder",
    "SparseLSTMBuilder",
    "VanillaLSTMBuilder",
]


class SimpleRNNBuilder(Builder):
    """Elman's network: ``h = tanh(W x + U h + b)`` (DyNet's ``SimpleRNNBuilder``).

    >>> import paddlelike.collection as dy
    >>> builder = dy.SimpleRNNBuilder(1, 3, 4, dy.ParameterCollection())
    >>> _ = dy.renew_cg()
    >>> builder.initial_state().add_input(dy.inputVector([1.0, 2.0, 3.0])).output().npvalue().shape
    (4,)
    """

    collection_name = "simple-rnn-builder"

    def _add_layer(self, input_dim: int, hidden_dim: int) -> list[Parameters]:
        return self._add((hidden_dim, input_dim), (hidden_dim, hidden_dim), hidden_dim)

    def _step(self, weights: list[Expression], memory: Memory, x: Expression, first: bool) -> Memory:
        return (tanh(_affine(weights, x, memory[0])),)


class GRUBuilder(Builder):
    """Gated recurrent units (Cho et al., 2014).

    >>> import paddlelike.collection as dy
    >>> builder = dy.GRUBuilder(1, 3, 4, dy.ParameterCollection())
    >>> _ = dy.renew_cg()
    >>> builder.initial_state().add_input(dy.inputVector([1.0, 2.0, 3.0])).output().npvalue().shape
    (4,)
    """

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


class VanillaLSTMBuilder(Builder):
    """Long short-term memory without peepholes.

    ``forget_bias`` is added to the gate f at every step. With ``ln_lstm`` (layer normalization) the gains and
    biases belong to this builder's collection. DyNet adds them to the collection around it, so its ``save``
    loses them. Here ``save`` writes them beside the builder's blocks, under ``normalization``. DyNet opens
    such files, but its ``load`` skips these values and uses gains of 1.

    >>> import paddlelike.collection as dy
    >>> builder = dy.VanillaLSTMBuilder(1, 3, 4, dy.ParameterCollection())
    >>> _ = dy.renew_cg()
    >>> builder.initial_state().add_input(dy.inputVector([1.0, 2.0, 3.0])).output().npvalue().shape
    (4,)
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
        self.normalization: list[Parameters] = []  # gains and biases
        super().__init__(layers, input_dim, hidden_dim, model)

    @property
    def spec(self) -> tuple[Any, ...]:
        """The arguments that create the builder again, without the collection."""
        return (self.layers, self.input_dim, self.hidden_dim, self.ln_lstm, self.forget_bias)

    def _add_layer(self, input_dim: int, hidden_dim: int) -> list[Parameters]:
        weights = self._add((4 * hidden_dim, input_dim), (4 * hidden_dim, hidden_dim), 4 * hidden_dim)
        if self.ln_lstm:
            for dim in (4 * hidden_dim, 4 * hidden_dim, hidden_dim):  # of U h, of W x, of c
                pair = [self._collection.add_parameters(dim, init=first) for first in (1.0, 0.0)]
                self.normalization += pair
                weights += pair
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
    """The vanilla LSTM under the name of DyNet's fused LSTM; the bias of f is 1.

    >>> import paddlelike.collection as dy
    >>> builder = dy.CompactVanillaLSTMBuilder(1, 3, 4, dy.ParameterCollection())
    >>> _ = dy.renew_cg()
    >>> builder.initial_state().add_input(dy.inputVector([1.0, 2.0, 3.0])).output().npvalue().shape
    (4,)
    """

    collection_name = "compact-vanilla-lstm-builder"

    def __init__(self, layers: int, input_dim: int, hidden_dim: int, model: ParameterCollection) -> None:
        super().__init__(layers, input_dim, hidden_dim, model)

    @property
    def spec(self) -> tuple[Any, ...]:
        """The arguments that create the builder again, without the collection."""
        return (self.layers, self.input_dim, self.hidden_dim)


class SparseLSTMBuilder(VanillaLSTMBuilder):
    """The vanilla LSTM with a mask for each matrix: a parameter of ones and zeros (DyNet's
    ``SparseLSTMBuilder``).

    Raises
    ------
    GraphError
        ``ln_lstm`` is not False.

    >>> import paddlelike.collection as dy
    >>> builder = dy.SparseLSTMBuilder(1, 3, 4, dy.ParameterCollection())
    >>> len(builder.param_collection().parameters_list())
    5
    """

    def _add_layer(self, input_dim: int, hidden_dim: int) -> list[Parameters]:
        if self.ln_lstm:
            raise GraphError("a SparseLSTMBuilder has no layer normalization here")
        shapes = (4 * hidden_dim, input_dim), (4 * hidden_dim, hidden_dim)
        weights = self._add(*shapes)
        masks = [self._collection.add_parameters(shape, init=1.0) for shape in shapes]
        return [*weights, *masks, *self._add(4 * hidden_dim)]

    def _gates(self, weights: list[Expression], x: Expression, h: Expression, first: bool) -> Expression:
        w, u, mask_of_w, mask_of_u, b = weights
        return _affine([cmult(w, mask_of_w), cmult(u, mask_of_u), b], x, h)


class CoupledLSTMBuilder(Builder):
    """LSTM with peepholes whose forget gate is ``1 - i``: DyNet's older ``LSTMBuilder``.

    >>> import paddlelike.collection as dy
    >>> builder = dy.CoupledLSTMBuilder(1, 3, 4, dy.ParameterCollection())
    >>> _ = dy.renew_cg()
    >>> builder.initial_state().add_input(dy.inputVector([1.0, 2.0, 3.0])).output().npvalue().shape
    (4,)
    """

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
    """Layers of two builders, one in each direction, whose outputs are concatenated (DyNet's
    ``BiRNNBuilder``).

    Parameters
    ----------
    hidden_dim
        The width of the outputs of both directions together, an even number.
    rnn_builder_factory
        The class of the builders; called as ``factory(1, input_dim, hidden_dim / 2, collection)``.
    builder_layers
        Pairs of builders that exist already, in place of new ones.

    Raises
    ------
    ValueError
        ``hidden_dim`` is odd.

    >>> import numpy as np
    >>> import paddlelike.collection as dy
    >>> m = dy.ParameterCollection()
    >>> builder = dy.BiRNNBuilder(1, 3, 8, m, dy.VanillaLSTMBuilder)
    >>> _ = dy.renew_cg()
    >>> inputs = [dy.inputVector([1.0, 2.0, 3.0]) for _ in range(4)]
    >>> [one.npvalue().shape for one in builder.transduce(inputs)]
    [(8,), (8,), (8,), (8,)]
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
        """Return a builder made from ``spec``, with its parameters in ``model``."""
        num_layers, input_dim, hidden_dim, factory, builder_layers = spec
        return cls(num_layers, input_dim, hidden_dim, model, factory, builder_layers)

    def param_collection(self) -> ParameterCollection:
        """Return the collection of the parameters."""
        return self._collection

    def transduce(self, xs: Sequence[Operand]) -> list[Expression]:
        """Return the outputs: one of shape ``(hidden_dim,)`` for each input."""
        values = [to_expression(x) for x in xs]
        for forward, backward in self.builder_layers:
            ahead = forward.initial_state().transduce(values)
            behind = backward.initial_state().transduce(values[::-1])[::-1]
            values = [concatenate(pair) for pair in zip(ahead, behind, strict=True)]
        return values


def _affine(weights: Sequence[Expression], x: Expression, h: Expression) -> Expression:
    """Return ``W x + U h + b``, the input of a gate."""
    w, u, b = weights
    return w * x + u * h + b
