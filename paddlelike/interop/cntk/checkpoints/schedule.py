"""The schedule of a learning rate of CNTK, as operators that count samples and choose the rate.

CNTK chooses the rate of a minibatch by the number of samples before it. CNTK's velocity contains the rates of
earlier minibatches, Paddle's does not. So when the rate changes, the velocity is multiplied by the old rate
and divided by the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from paddlelike.core import Array, numpy_dtype
from paddlelike.framework import Variable
from paddlelike.interop.cntk.checkpoints.learner import CntkLearner
from paddlelike.interop.cntk.checkpoints.updates import Update

_Row = tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]  # type, inputs, outputs, attributes

_PREFIX: Final = "cntk_schedule_"  # of the variables


def follow_schedule(
    loss: Variable,
    rates: Mapping[str, Sequence[Update]],
    learner: CntkLearner,
    convert: Callable[[Update, float], float],
) -> dict[str, Array]:
    """Make a program follow the schedule of a learner whose rate still changes; return new values.

    Parameters
    ----------
    loss
        A mean over the minibatch; the operators are put after the one that computes it.
    rates
        The variables of learning rates, and the updates that read each.
    convert
        Returns the rate of an update from a rate of the schedule.
    """
    ends = sorted(learner.schedule)
    if all(end <= learner.sample_count for end in ends[:-1]):
        return {}
    values = {"count": np.array([learner.sample_count], "int64"), "ends": np.array(ends[:-1], "int64")}
    for index, (rate, updates) in enumerate(rates.items()):
        table = [convert(updates[0], learner.schedule[end]) for end in ends]
        values[f"rates_{index}"] = np.array(table, numpy_dtype(loss.block.var(rate).dtype))
    block = loss.block
    if not block.has_var(f"{_PREFIX}count"):  # otherwise the schedule is followed already
        for name, array in values.items():
            block.create_var(
                name=_PREFIX + name, shape=array.shape, dtype=array.dtype.name, persistable=True
            ).stop_gradient = True
        at = next(index for index, op in enumerate(block.ops) if loss.name in op.output_arg_names) + 1
        with block.program._lr_schedule_guard():
            for index, row in enumerate(_list_operators(loss, rates)):
                for names in row[2].values():
                    for name in (one for one in names if not block.has_var(one)):
                        block.create_var(name=name).stop_gradient = True
                block._insert_op(at + index, *row)
    return {_PREFIX + name: array for name, array in values.items()}


def _list_operators(loss: Variable, rates: Mapping[str, Sequence[Update]]) -> Iterator[_Row]:
    """Yield the operators for the number of intervals passed, the rates, the velocities, and the new
    count.
    """
    count, ends, passed, index = (_PREFIX + name for name in ("count", "ends", "passed", "index"))
    yield "less_equal", {"X": [ends], "Y": [count]}, {"Out": [passed]}, {}
    yield "cast", {"X": [passed]}, {"Out": [f"{index}es"]}, {"in_dtype": 0, "out_dtype": 3}
    yield "reduce_sum", {"X": [f"{index}es"]}, {"Out": [index]}, {"dim": [0], "keep_dim": True}
    for number, (rate, updates) in enumerate(rates.items()):
        new, ratio = f"{_PREFIX}rate_{number}", f"{_PREFIX}ratio_{number}"
        yield "gather", {"X": [f"{_PREFIX}rates_{number}"], "Index": [index]}, {"Out": [new]}, {}
        velocities = [op.input("Velocity")[0] for op in updates if op.type == "momentum"]
        if velocities:
            yield "elementwise_div", {"X": [rate], "Y": [new]}, {"Out": [ratio]}, {}
        for name in velocities:
            yield "elementwise_mul", {"X": [name], "Y": [ratio]}, {"Out": [name]}, {}
        yield "assign", {"X": [new]}, {"Out": [rate]}, {}
    per_sample = next(op.input("X")[0] for op in loss.block.ops if loss.name in op.output_arg_names)
    shape, size = f"{_PREFIX}shape", f"{_PREFIX}size"
    yield "shape", {"Input": [per_sample]}, {"Out": [shape]}, {}
    yield "slice", {"Input": [shape]}, {"Out": [f"{size}32"]}, {"axes": [0], "starts": [0], "ends": [1]}
    yield "cast", {"X": [f"{size}32"]}, {"Out": [size]}, {"in_dtype": 2, "out_dtype": 3}
    yield "elementwise_add", {"X": [count], "Y": [size]}, {"Out": [count]}, {}
