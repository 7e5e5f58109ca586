"""``fluid.contrib.model_stat``: a table of the layers of an image network, their parameters and costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paddlelike.framework import Operator, Program, Variable

__all__ = ["summary"]

_ACTIVATIONS = ("sigmoid", "tanh", "relu", "leaky_relu", "prelu")
_TITLES = ("No.", "TYPE", "INPUT", "OUTPUT", "PARAMs", "FLOPs")


class _Row(NamedTuple):
    """An operator: shapes of input and output without the batch, parameters, operations per sample."""

    type: str
    input: tuple[int, ...]
    output: tuple[int, ...]
    params: int
    flops: int


def summary(main_prog: Program) -> None:
    """Print the convolutions, fully connected layers, pools, normalizations and activations of a program.

    Each row has the shapes of input and output without the batch, the parameters and the operations per
    sample; the sums follow. The counts are as odd as Fluid's: a fully connected layer counts one bias, and an
    activation with a batch of -1 has a negative count.

    Parameters
    ----------
    main_prog
        Any program.

    See Also
    --------
    fluid.contrib.memory_usage, fluid.contrib.op_freq_statistic

    >>> import paddlelike as fluid
    >>> summary(fluid.Program())  # doctest: +ELLIPSIS
    +...
    Total FLOPs: 0(0.00G)
    """
    rows = [row for block in main_prog.blocks for op in block.ops if (row := _count(block.vars, op))]
    cells = [_TITLES]
    cells += [
        (str(index), row.type, str(row.input), str(row.output), str(row.params), str(row.flops))
        for index, row in enumerate(rows)
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_TITLES))]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = ["| " + " | ".join(map(str.rjust, line, widths)) + " |" for line in cells]
    params, flops = sum(row.params for row in rows), sum(row.flops for row in rows)
    text = [rule, lines[0], rule, *lines[1:], rule]
    text += [f"Total PARAMs: {params}({params / 10**6:.4f}M)", f"Total FLOPs: {flops}({flops / 10**9:.2f}G)"]
    print("\n".join(text))  # noqa: T201


def _count(variables: Mapping[str, Variable], op: Operator) -> _Row | None:
    """Return the row of an operator; None for one that is not counted."""

    def shape(names: Sequence[str]) -> tuple[int, ...]:
        return variables[names[0]].shape

    if op.type in ("conv2d", "depthwise_conv2d"):
        x, out, weight = shape(op.input("Input")), shape(op.output("Output")), shape(op.input("Filter"))
        each = weight[2] * weight[3] * weight[1] // op.attr("groups") + bool(op.input("Bias"))
        return _Row(op.type, x[1:], out[1:], weight[0] * each, 2 * math.prod(out[1:]) * each)
    if op.type == "pool2d":
        x, out = shape(op.input("X")), shape(op.output("Out"))
        return _Row(op.type, x[1:], out[1:], 0, math.prod(out[1:]) * math.prod(op.attr("ksize")))
    if op.type == "mul" and "fc" in op.output("Out")[0]:
        x, out, weight = shape(op.input("X")), shape(op.output("Out")), shape(op.input("Y"))
        return _Row(op.type, x[1:], out[1:], math.prod(weight) + 1, math.prod(weight))
    if op.type in _ACTIVATIONS:
        x, out = shape(op.input("X")), shape(op.output("Out"))
        # As in Fluid all dims count, so that a batch of -1 makes it negative.
        return _Row(op.type, x[1:], out[1:], int(op.type == "prelu"), math.prod(x))
    if op.type == "batch_norm":
        x, out = shape(op.input("X")), shape(op.output("Y"))
        return _Row(op.type, x[1:], out[1:], 2 * x[1], 2 * math.prod(out[1:]))
    return None
