"""What an imported program was in CNTK: exported again it is that function, with the values of the scope.

So networks travel back whose loops through time no operators of CNTK could be found for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paddlelike.core.scope import Scope
from paddlelike.core.tensor import LoDTensor
from paddlelike.errors import NotInitializedError
from paddlelike.framework.graph.program import Program

__all__ = ["find_origin", "remember_origin", "renew_leaf"]


def remember_origin(
    program: Program, tree: Mapping[str, Any], ports: tuple[list[str], list[str]], held: Mapping[str, Any]
) -> None:
    """Keep the function that a program was read from, without the values that are ``held`` in the scope."""
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
    }


def find_origin(
    program: Program, inputs: Sequence[str], outputs: Sequence[str], scope: Scope
) -> dict[str, Any] | None:
    """Return the function of CNTK that a program was read from, with the values of the scope.

    None where the program was not read from one, has been changed, or other inputs or outputs are meant.
    Raises NotInitializedError when a parameter holds no value.
    """
    origin: dict[str, Any] = program.__dict__.get("_cntk_origin", {})
    if not origin or origin["version"] != program._version:
        return None
    if (sorted(inputs), list(outputs)) != (sorted(origin["ports"][0]), origin["ports"][1]):
        return None
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
    return {**origin["tree"], "inputs": leaves}


def renew_leaf(leaf: dict[str, Any], scope: Scope, samples: int) -> dict[str, Any]:
    """Return a leaf with the value of the scope; a count of samples, with more of them."""
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
