"""Functions of fluid.layers and fluid.nets have the signatures of Fluid 1.8.5 (signatures185.txt)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import paddlelike as fluid

SIGNATURES = [
    tuple(line.split("(", 1))
    for line in (Path(__file__).parent / "signatures185.txt").read_text().splitlines()
]


@pytest.mark.parametrize(("name", "arguments"), SIGNATURES, ids=[name for name, _ in SIGNATURES])
def test_signature(name: str, arguments: str) -> None:
    assert written(attrgetter(name)(fluid)) == f"({arguments}"


def test_every_layer_is_documented() -> None:
    for name in fluid.layers.__all__:
        assert (inspect.getdoc(getattr(fluid.layers, name)) or "").strip(), name


def test_layers_are_listed_in_order() -> None:
    assert fluid.layers.__all__ == sorted(fluid.layers.__all__)


def written(function: Callable[..., Any]) -> str:
    """The signature as Python 2 would write it: no annotations."""
    return f"({', '.join(map(parameter, inspect.signature(function).parameters.values()))})"


def parameter(one: inspect.Parameter) -> str:
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    if one.default is one.empty:
        return stars + one.name
    is_kind = isinstance(one.default, fluid.core.VarDesc.VarType)
    return f"{one.name}={one.default if is_kind else repr(one.default)}"
