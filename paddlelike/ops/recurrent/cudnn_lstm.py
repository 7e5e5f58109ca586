"""cudnn_lstm: layers of long short-term memory, in one or both directions, over a batch of equal lengths.

One vector W holds all parameters, in the order of cuDNN. For every layer and direction it has four matrices
of the input and four of the hidden state, for the input, forget, candidate and output gate; then come the
biases in the same order.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    Array,
    Attrs,
    Bool,
    Context,
    Float,
    Gradient,
    Int,
    OpDef,
    Spec,
    register,
)
from paddlelike.ops.kernels.recurrent import lstm as lstm_steps
from paddlelike.ops.kernels.recurrent.lstm import Cell, Initial, StepResults
from paddlelike.ops.kernels.recurrent.steps import ACTIVATIONS, Steps

_TO_STEPS: Final = [2, 0, 1, 3]  # gates as cuDNN orders them, in the order of lstm_steps
_TO_CUDNN: Final = [1, 2, 0, 3]


def count_parameters(input_size: int, hidden_size: int, num_layers: int, *, is_bidirec: bool) -> int:
    """Return the number of parameters in W."""
    return sum(
        4 * hidden_size * (size + hidden_size + 2)
        for size in list_input_widths(input_size, hidden_size, num_layers, is_bidirec)
    )


def list_input_widths(input_size: int, hidden_size: int, num_layers: int, is_bidirec: bool) -> list[int]:
    """Return the width of the input of every layer and direction."""
    directions = 2 if is_bidirec else 1
    widths = [input_size, *[hidden_size * directions] * (num_layers - 1)]
    return [width for width in widths for _ in range(directions)]


class LayerWeights(NamedTuple):
    """The parameters of one layer and direction."""

    x: Array  # (4, H, width of the input)
    h: Array  # (4, H, H)
    bias_x: Array  # (4, H)
    bias_h: Array


def split_weights(w: Array, widths: list[int], hidden: int) -> list[LayerWeights]:
    """Return the parts of W as views."""
    at = 0

    def take(*shape: int) -> Array:
        nonlocal at
        begin, at = at, at + int(np.prod(shape))
        return w[begin:at].reshape(shape)

    matrices = [(take(4, hidden, width), take(4, hidden, hidden)) for width in widths]
    return [LayerWeights(*pair, take(4, hidden), take(4, hidden)) for pair in matrices]


class _Pass(NamedTuple):
    """The results of one layer in one direction."""

    x: Array  # (T, N, width), reversed when it was run from its end
    weight: Array  # of x, (4H, width), gates in the order of the steps
    ran: StepResults
    cell: Cell
    initial: Initial
    turn: slice  # the order of the steps, forwards or backwards

    def out(self) -> Array:
        """Return the hidden states (T, N, H), in the order of the input."""
        return self.ran.hidden.reshape(*self.x.shape[:2], -1)[self.turn]


class _Layer(NamedTuple):
    """The results of one layer."""

    mask: Array | None  # what dropout multiplied its input by
    passes: list[_Pass]

    def out(self) -> Array:
        """Return the hidden states of all directions side by side."""
        return np.concatenate([one.out() for one in self.passes], axis=2)


def _run(
    x: Array,
    initial: tuple[Array, Array],
    weights: list[LayerWeights],
    directions: int,
    random: Any = None,
    dropout_prob: float = 0.0,
) -> list[_Layer]:
    """Run all layers; with ``random``, a generator, dropout is applied between them."""
    layers: list[_Layer] = []
    for first in range(0, len(weights), directions):
        mask = None
        if random is not None and first:
            kept = random.draw(x.size) >= dropout_prob
            mask = kept.reshape(x.shape).astype(x.dtype) / x.dtype.type(1 - dropout_prob)
            x = x * mask
        layer = _Layer(mask, [])
        for k in range(first, first + directions):
            turn = slice(None, None, -1 if k > first else 1)
            layer.passes.append(_run_pass(weights[k], x[turn], Initial(initial[0][k], initial[1][k]), turn))
        layers.append(layer)
        x = layer.out()
    return layers


def _run_pass(weights: LayerWeights, x: Array, initial: Initial, turn: slice) -> _Pass:
    hidden = weights.h.shape[1]
    flat = weights.x[_TO_STEPS].reshape(4 * hidden, -1)
    recurrent = weights.h[_TO_STEPS].reshape(4 * hidden, hidden).T
    bias = (weights.bias_x + weights.bias_h)[_TO_STEPS].reshape(-1)
    sigmoid, tanh = ACTIVATIONS["sigmoid"], ACTIVATIONS["tanh"]
    cell = Cell(hidden, np.ascontiguousarray(recurrent), bias, None, gate=sigmoid, cell=tanh, candidate=tanh)
    gates = x.reshape(-1, x.shape[2]) @ flat.T + bias
    return _Pass(
        x,
        flat,
        lstm_steps.run_steps(cell, Steps.side_by_side(*x.shape[:2]), gates, initial),
        cell,
        initial,
        turn,
    )


class CudnnLstmAttrs(Attrs):
    """Attributes of cudnn_lstm."""

    dropout_prob: float = Float(0.0)
    is_bidirec: bool = Bool(False)
    input_size: int = Int(10)
    hidden_size: int = Int(100)
    num_layers: int = Int(1)
    is_test: bool = Bool(False)
    seed: int = Int(-1)


@register
class CudnnLstm(OpDef):
    """``Out`` (T, N, H): the hidden states of the last layer; (T, N, 2H) when ``is_bidirec``.

    Input is (T, N, input_size); InitH, InitC, last_h and last_c are (layers x directions, N, H). Between
    layers, unless ``is_test``, numbers are set to 0 with probability ``dropout_prob``, and the others divided
    by ``1 - dropout_prob``. Cache holds intermediate values for the gradient.
    """

    type = "cudnn_lstm"
    inputs = ("Input", "InitH", "InitC", "W", "Cache?")
    outputs = ("Out", "last_h", "last_c")
    fluid_order = "max_len dropout_prob is_bidirec input_size hidden_size num_layers is_test seed"
    attrs = CudnnLstmAttrs.table(max_len=Int(20))
    gradient = Gradient(
        "Out@GRAD", "last_c@GRAD", "last_h@GRAD", "Input", "InitH", "InitC", "W", "Cache", "Out",
        outputs=("Input@GRAD", "InitH@GRAD", "InitC@GRAD", "W@GRAD"),
    )  # fmt: skip

    @staticmethod
    def infer(
        x: Spec, h: Spec, c: Spec, w: Spec, cache: Spec | None, *, attrs: CudnnLstmAttrs
    ) -> tuple[Spec, Spec, Spec]:
        if len(x.shape) != 3 or x.shape[2] not in (-1, attrs.input_size):
            raise ShapeError(f"cudnn_lstm: Input is {list(x.shape)}, expected (T, N, {attrs.input_size})")
        count = count_parameters(
            attrs.input_size, attrs.hidden_size, attrs.num_layers, is_bidirec=attrs.is_bidirec
        )
        if tuple(w.shape) != (count,):
            raise ShapeError(f"cudnn_lstm: W is {list(w.shape)}, expected ({count},)")
        directions = 2 if attrs.is_bidirec else 1
        for slot, initial in (("InitH", h), ("InitC", c)):
            # As in Fluid N is compared when the program runs: its documentation declares states of another N.
            wanted = (attrs.num_layers * directions, -1, attrs.hidden_size)
            fits = len(initial.shape) == 3
            if not fits or any(
                a != b for a, b in zip(initial.shape, wanted, strict=True) if -1 not in (a, b)
            ):
                raise ShapeError(f"cudnn_lstm: {slot} is {list(initial.shape)}, expected {wanted}")
        last = Spec(h.shape, x.dtype)
        return Spec((*x.shape[:2], attrs.hidden_size * directions), x.dtype), last, last

    @staticmethod
    def forward(
        ctx: Context, x: Array, h: Array, c: Array, w: Array, cache: Any, *, attrs: CudnnLstmAttrs
    ) -> tuple[Array, Array, Array]:
        if not h.shape[1] == c.shape[1] == x.shape[1]:
            raise ShapeError(
                f"cudnn_lstm: Input {list(x.shape)} holds {x.shape[1]} sequences, InitH {list(h.shape)} "
                f"states of {h.shape[1]}, InitC {list(c.shape)} of {c.shape[1]}",
                hint="transpose an input of shape (N, T, D), or declare the states with its N",
            )
        widths = list_input_widths(attrs.input_size, attrs.hidden_size, attrs.num_layers, attrs.is_bidirec)
        random = ctx.random(max(attrs.seed, 0)) if attrs.dropout_prob and not attrs.is_test else None
        layers = _run(
            x,
            (h, c),
            split_weights(w, widths, attrs.hidden_size),
            1 + attrs.is_bidirec,
            random,
            attrs.dropout_prob,
        )
        if ctx.op.input("Cache"):
            ctx.write(ctx.op.input("Cache")[0], layers)
        done = [one for layer in layers for one in layer.passes]
        last_h = np.stack([one.ran.hidden[-x.shape[1] :] for one in done])
        last_c = np.stack([one.ran.cell[-x.shape[1] :] for one in done])
        return layers[-1].out(), last_h, last_c

    @staticmethod
    def backward(
        ctx: Context,
        d_out: Array,
        d_last_c: Array | None,
        d_last_h: Array | None,
        x: Array,
        h: Array,
        c: Array,
        w: Array,
        cache: Any,
        out: Array,
        *,
        attrs: CudnnLstmAttrs,
    ) -> tuple[Array, Array, Array, Array]:
        widths = list_input_widths(attrs.input_size, attrs.hidden_size, attrs.num_layers, attrs.is_bidirec)
        layers = cache
        if not isinstance(layers, list):
            if attrs.dropout_prob and not attrs.is_test and attrs.num_layers > 1:
                raise EnforceNotMet(
                    "cudnn_lstm_grad: the input Cache, which holds the dropout masks, is missing"
                )
            layers = _run(x, (h, c), split_weights(w, widths, attrs.hidden_size), 1 + attrs.is_bidirec)
        d_w, d_h, d_c = np.empty_like(w), np.empty_like(h), np.empty_like(c)
        d_weights = split_weights(d_w, widths, attrs.hidden_size)
        d_x, k = d_out, len(widths)
        for layer in reversed(layers):
            d_parts = np.split(d_x, len(layer.passes), axis=2)
            d_x = np.zeros_like(layer.passes[0].x)
            for d_part, done in zip(reversed(d_parts), reversed(layer.passes), strict=True):
                k -= 1
                d_hidden = d_part[done.turn].copy()
                if d_last_h is not None:
                    d_hidden[-1] += d_last_h[k]
                d_last = None if d_last_c is None else d_last_c[k]
                d_x[done.turn] += _run_pass_back(done, d_hidden, d_last, d_weights[k], (d_h[k], d_c[k]))
            if layer.mask is not None:
                d_x *= layer.mask
        return d_x, d_h, d_c, d_w


def _run_pass_back(
    done: _Pass,
    d_hidden: Array,
    d_last: Array | None,
    d_weights: LayerWeights,
    d_initial: tuple[Array, Array],
) -> Array:
    """Return the gradient of a pass's input, in the input's order. Write the other gradients."""
    hidden, width = done.cell.width, done.x.shape[2]
    steps = Steps.side_by_side(*done.x.shape[:2])
    d_rows = d_hidden.reshape(-1, hidden)
    back = lstm_steps.run_steps_back(done.cell, steps, done.ran, d_rows, done.initial, d_last)
    rows = done.x.reshape(-1, width)
    before = steps.before(done.ran.hidden, done.initial.fed_back)
    d_weights.x[...] = (back.gates.T @ rows).reshape(4, hidden, width)[_TO_CUDNN]
    d_weights.h[...] = (back.gates.T @ before).reshape(4, hidden, hidden)[_TO_CUDNN]
    d_weights.bias_x[...] = d_weights.bias_h[...] = back.gates.sum(0).reshape(4, hidden)[_TO_CUDNN]
    d_initial[0][...], d_initial[1][...] = back.initial
    return (back.gates @ done.weight).reshape(done.x.shape)
