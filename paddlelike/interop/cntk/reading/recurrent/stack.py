"""OptimizedRNNStack: the recurrent layers of cuDNN, whose weights are one vector.

The vector holds, layer by layer and direction by direction, the matrices for the input and for the state,
then in the same order two biases each. The gates of an LSTM are input, forget, candidate, output; those of a
GRU reset, update, candidate. Source: cuDNN's cudnnRNNMode_t.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final, NamedTuple

from paddlelike.framework.graph.variable import Variable
from paddlelike.interop.cntk.reading.readers import reads
from paddlelike.interop.cntk.reading.step import Step, Value
from paddlelike.layers.recurrent.dynamic_rnn import DynamicRNN

_GATES: Final = {"lstm": 4, "gru": 3, "rnnReLU": 1, "rnnTanh": 1}


class Cell(NamedTuple):
    """One layer in one direction: matrices ``(in or hidden, gates * hidden)``, and biases."""

    of_input: Variable
    of_state: Variable
    biases: tuple[Variable, Variable]


@reads("OptimizedRNNStack")
def _read_stack(step: Step) -> Value:
    value, kind = step.value(), step.attr("recurrentOp", str)
    if not value.sequence or value.rank != 1 or kind not in _GATES:
        step.refuse(f"its input is not a sequence of rows, or it is a {kind}")
    hidden, layers = int(step.attr("hiddenSize", int)), int(step.attr("numLayers", int))
    directions = 2 if step.attr("bidirectional", bool) else 1
    cells = _cut_weights(step, _GATES[kind] * hidden, hidden, layers, directions)
    x = value.variable
    for _ in range(layers):
        outs = [_run(step, kind, x, next(cells), hidden, backwards=bool(one)) for one in range(directions)]
        x = step.emit("concat", {"X": outs}, {"axis": 1}) if directions == 2 else outs[0]
    return step.give(x)


def _cut_weights(step: Step, rows: int, hidden: int, layers: int, directions: int) -> Iterator[Cell]:
    flat = step.reshape_all(step.value(1).variable, [-1])
    widths = [step.value().shape[0]] + [hidden * directions] * (layers - 1)
    matrices = [width for width, _ in product(widths, range(directions)) for width in (width, hidden)]
    total = rows * (sum(matrices) + len(matrices))
    if flat.shape[0] != total:
        step.refuse(f"its weights are {flat.shape[0]} numbers; its layers have {total}")
    start, parts = 0, []
    for width in [*matrices, *[1] * len(matrices)]:
        attrs = {"axes": [0], "starts": [start], "ends": [start + rows * width], "decrease_axis": []}
        part = step.emit("slice", {"Input": flat}, attrs)
        parts.append(step.transpose(step.reshape_all(part, [rows, width]), [1, 0]))
        start += rows * width
    half = len(matrices)
    for index in range(0, half, 2):
        biases = parts[half + index], parts[half + index + 1]
        yield Cell(parts[index], parts[index + 1], biases)


def _multiply(step: Step, x: Variable, matrix: Variable, bias: Variable) -> Variable:
    product = step.emit("mul", {"X": x, "Y": matrix}, {"x_num_col_dims": 1, "y_num_col_dims": 1})
    return step.binary("elementwise_add", product, bias)


def _run(step: Step, kind: str, x: Variable, cell: Cell, hidden: int, *, backwards: bool) -> Variable:
    """Return the states of all steps."""
    if backwards:
        x = step.emit("sequence_reverse", {"X": x}, slot="Y")
    projected = _multiply(step, x, cell.of_input, cell.biases[0])
    rnn = DynamicRNN()
    with rnn.block():
        given = rnn.step_input(projected)
        state = rnn.memory(shape=[hidden], dtype=x.dtype)
        moved = _multiply(step, state, cell.of_state, cell.biases[1])
        if kind == "lstm":
            memory = rnn.memory(shape=[hidden], dtype=x.dtype)
            new, kept = _step_lstm(step, step.binary("elementwise_add", given, moved), memory, hidden)
            rnn.update_memory(memory, kept)
        elif kind == "gru":
            new = _step_gru(step, given, moved, state, hidden)
        else:
            total = step.binary("elementwise_add", given, moved)
            new = step.unary("relu" if kind == "rnnReLU" else "tanh", total)
        rnn.update_memory(state, new)
        rnn.output(new)
    out: Variable = rnn()
    return step.emit("sequence_reverse", {"X": out}, slot="Y") if backwards else out


def _split(step: Step, x: Variable, hidden: int, count: int) -> list[Variable]:
    starts = range(0, hidden * count, hidden)
    attrs = ({"axes": [1], "starts": [one], "ends": [one + hidden], "decrease_axis": []} for one in starts)
    return [step.emit("slice", {"Input": x}, each) for each in attrs]


def _step_lstm(step: Step, total: Variable, memory: Variable, hidden: int) -> tuple[Variable, Variable]:
    entry, forget, candidate, exit_ = _split(step, total, hidden, 4)
    old = step.binary("elementwise_mul", step.unary("sigmoid", forget), memory)
    new = step.binary("elementwise_mul", step.unary("sigmoid", entry), step.unary("tanh", candidate))
    kept = step.binary("elementwise_add", old, new)
    return step.binary("elementwise_mul", step.unary("sigmoid", exit_), step.unary("tanh", kept)), kept


def _step_gru(step: Step, given: Variable, moved: Variable, state: Variable, hidden: int) -> Variable:
    """The reset gate applies after the product with the state, unlike in ``dynamic_gru``."""
    ours, theirs = _split(step, given, hidden, 3), _split(step, moved, hidden, 3)
    reset, update = (
        step.unary("sigmoid", step.binary("elementwise_add", *pair))
        for pair in zip(ours[:2], theirs[:2], strict=True)
    )
    candidate = step.binary("elementwise_mul", reset, theirs[2])
    candidate = step.unary("tanh", step.binary("elementwise_add", ours[2], candidate))
    change = step.binary("elementwise_mul", update, step.binary("elementwise_sub", state, candidate))
    return step.binary("elementwise_add", candidate, change)
