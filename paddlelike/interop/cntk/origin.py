"""The CNTK function that an imported program came from, so that an export writes it with the scope's values.

So networks can go back to CNTK even if their loops through time cannot be translated. The unchanged part of a
program is exported as its original functions; other operators are translated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import LoDTensor, Scope
from paddlelike.errors import NotInitializedError
from paddlelike.framework import Operator, Program
from paddlelike.interop.cntk.writing.graph import Ref

_NOT_COMPARED: Final = {"is_test", "op_callstack", "op_role", "op_role_var", "op_namescope", "op_device"}


class Part(NamedTuple):
    """The original function of a program, and the variables that are still unchanged."""

    leaves: list[dict[str, Any]]
    functions: list[dict[str, Any]]
    known: dict[str, Ref]


def remember_origin(
    program: Program,
    tree: Mapping[str, Any],
    ports: tuple[list[str], list[str]],
    held: Mapping[str, Any],
    refs: Mapping[str, Ref],
) -> None:
    """Store the original function of a program, without the values that are ``held`` in the scope.

    ``refs`` are CNTK's values by variable.
    """
    leaves = [
        {**one, "value": np.empty((0,), one["value"].dtype)} if one["uid"] in held else one
        for one in tree["inputs"]
    ]
    shapes = {one["uid"]: one["value"].shape for one in tree["inputs"] if one["uid"] in held}
    program.__dict__["_cntk_origin"] = {
        "tree": {**tree, "inputs": leaves},
        "shapes": shapes,
        "ports": ports,
        "version": program._version,
        "refs": dict(refs),
        "operators": {_describe(op) for op in program.global_block().ops},
    }


def find_origin(
    program: Program, inputs: Sequence[str], outputs: Sequence[str], scope: Scope
) -> dict[str, Any] | None:
    """Return the original CNTK function of a program, with the values of the scope.

    Return None if the program does not come from CNTK, has changed, or is exported with other inputs or
    outputs. Raises NotInitializedError when a parameter does not have a value.
    """
    origin: dict[str, Any] = program.__dict__.get("_cntk_origin", {})
    if not origin or origin["version"] != program._version:
        return None
    if (sorted(inputs), list(outputs)) != (sorted(origin["ports"][0]), origin["ports"][1]):
        return None
    return {**origin["tree"], "inputs": _renew_leaves(origin, scope)}


def find_part(program: Program, source: Program, scope: Scope) -> Part | None:
    """Return the unchanged part of ``program``, which is the part of ``source`` that is exported.

    Return None if ``source`` does not come from CNTK. Raises NotInitializedError when a parameter does not
    have a value.
    """
    origin: dict[str, Any] = source.__dict__.get("_cntk_origin", {})
    if not origin:
        return None
    changed: set[str] = set()
    for op in program.global_block().ops:
        if _describe(op) not in origin["operators"] or not changed.isdisjoint(op.input_arg_names):
            changed.update(op.output_arg_names)
    known = {name: ref for name, ref in origin["refs"].items() if name not in changed}
    return Part(_renew_leaves(origin, scope), list(origin["tree"]["primitive_functions"]), known)


def _describe(op: Operator) -> str:
    """Return an operator and its blocks as text, without the source lines that created it."""
    blocks = [[_describe(one) for one in op.block.program.blocks[index].ops] for index in op.sub_blocks()]
    attrs = sorted(
        (name, value) for name, value in op.attrs.items() if name not in (*_NOT_COMPARED, "sub_block")
    )
    return repr((op.type, sorted(op.inputs.items()), sorted(op.outputs.items()), attrs, blocks))


def _renew_leaves(origin: Mapping[str, Any], scope: Scope) -> list[dict[str, Any]]:
    """Return the leaves of a function with the values of the scope."""
    leaves = []
    for one in origin["tree"]["inputs"]:
        shape = origin["shapes"].get(one["uid"])
        if shape is None:
            leaves.append(one)
            continue
        leaf = {**one, "value": np.empty(shape, one["value"].dtype)}
        if scope.find_var(one["uid"]) is None:
            raise NotInitializedError(
                f"export_cntk: parameter {one['uid']!r} holds no tensor",
                hint="load its value, or pass scope=",
            )
        leaves.append(renew_leaf(leaf, scope, 0))
    return leaves


def renew_leaf(leaf: dict[str, Any], scope: Scope, samples: int) -> dict[str, Any]:
    """Return a leaf with the scope's value; a count of samples is increased by the new samples."""
    if samples:
        return {**leaf, "value": leaf["value"] + np.asarray(samples, leaf["value"].dtype)}
    holder = scope.find_var(leaf["uid"])
    if "value" not in leaf or holder is None:
        return leaf
    held = holder.value
    if not isinstance(held, LoDTensor) or held.held_array is None:
        raise NotInitializedError(f"{leaf['uid']!r} holds no tensor", hint="run the startup program first")
    array = np.ascontiguousarray(held.held_array, leaf["value"].dtype)
    return {**leaf, "value": array.reshape(leaf["value"].shape)}
