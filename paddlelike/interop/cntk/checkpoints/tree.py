"""The dictionaries of a checkpoint's two files: their parameters in CNTK's order, and new values in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from paddlelike.errors import FormatError
from paddlelike.interop.cntk.function import Function
from paddlelike.interop.cntk.operations import NUMBERS, name_operation

#: The names that CNTK's trainer gives to sums over a minibatch.
LOSS: Final = "aggregateLoss"
METRIC: Final = "aggregateEvalMetric"


def find_sum(function: Function, name: str) -> int | None:
    """Return the position of the output with a name."""
    for index, uid in enumerate(function.outputs):
        if function.output_names.get(uid) == name:
            return index
    return None


def order_parameters(tree: Mapping[str, Any], function: Function) -> list[str]:
    """Return the parameters in CNTK's order: from the last function to the inputs, depth first."""
    inputs = {one["uid"]: one["inputs"] for one in tree["primitive_functions"]}
    parameters = {uid for uid, leaf in function.leaves.items() if leaf.kind == 2}
    found: dict[str, None] = {}
    seen: set[str] = set()
    pending = [tree["root"]]
    while pending:
        name = pending.pop()
        if name in parameters:
            found[name] = None
            continue
        owner = name if name in inputs else name.rpartition("_Output_")[0]
        if owner in inputs and owner not in seen:
            seen.add(owner)
            pending.extend(reversed(inputs[owner]))
    return list(found)


def find_differences(function: Function) -> list[str]:
    """Return the ways in which training here differs from CNTK's."""
    found = {
        "Dropout": "dropout: the random numbers differ; CNTK does not save its own either",
        "BatchNormalization": "batch normalization: running variances collect the mean of n squares, in CNTK "
        "the sum divided by n - 1; losses and gradients are the same",
    }
    kinds = {name_operation(node.op) for node in function.nodes.values()}
    return [text for kind, text in found.items() if kind in kinds]


def find_counts(tree: Mapping[str, Any]) -> set[str]:
    """Return the constants in which batch normalization counts samples."""
    ops = [one["inputs"] for one in tree["primitive_functions"] if one["op"] == NUMBERS["BatchNormalization"]]
    return {inputs[5] for inputs in ops if len(inputs) > 5}


def as_external(state: object) -> dict[str, Any]:
    """Return an external state in CNTK's form. Raises FormatError unless it is a dictionary."""
    if not isinstance(state, Mapping):
        raise FormatError(
            f"external_state is a {type(state).__name__}; a checkpoint of CNTK keeps a dictionary",
            hint='put it into one: {"state": ...}',
        )
    return dict(state)
