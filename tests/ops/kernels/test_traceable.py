"""Kernels that say they are expressions run on arrays that are not numpy's, as those of JAX; without JAX."""

from __future__ import annotations

import ast
import linecache
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike
from paddlelike.framework.opdef import OpDef, registry
from tests.ops.harness import contract
from tests.ops.harness.collect import CASES

LOWERING = Path(paddlelike.__file__).parent / "compiled" / "lowering"
#: What arrays of JAX do not have, or not in place.
MISSING = {"fill", "flags", "flat", "itemset", "partition", "put", "resize", "setflags", "sort"}

WRITERS = {"at", "copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"}


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """An array whose elements nobody may see or change, as while a program is traced."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __array_ufunc__(self, function: Any, method: str, *args: Any, **keywords: Any) -> Any:
        return self._call(getattr(function, method), args, keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: dict[str, Any]) -> Any:
        return self._call(function, args, keywords)

    def _call(self, function: Any, args: Any, keywords: dict[str, Any]) -> Any:
        out = keywords.pop("out", None)
        line = read_line(3)
        renames = out and out[0].base is None and any(sign in line for sign in ("+=", "-=", "*=", "/="))
        if (out and not renames) or function.__name__ in WRITERS:
            raise TypeError(f"{function.__name__} writes into an array")
        return wrap(function(*unwrap(args), **unwrap(keywords)))

    def __getattr__(self, name: str) -> Any:
        if name in MISSING or name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._value, name)
        if callable(found):
            return lambda *args, **keywords: self._call(found, args, keywords)
        return wrap(found)

    def __getitem__(self, index: Any) -> Any:
        return wrap(self._value[unwrap(index)])

    def __len__(self) -> int:
        return len(self._value)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("arrays of JAX are immutable")

    def _refuse(self, *args: Any, **keywords: Any) -> Any:
        raise TypeError("elements are not known while a program is traced")

    __bool__ = __int__ = __float__ = __index__ = _refuse

    def __array__(self, *args: Any, **keywords: Any) -> Any:
        """Only ``np.array`` and its like may ask: JAX has these, too."""
        if "array(" not in read_line(2):
            self._refuse()
        return np.asarray(self._value)

    # ``x += y`` gives the name another array.
    __iadd__ = np.lib.mixins.NDArrayOperatorsMixin.__add__
    __isub__ = np.lib.mixins.NDArrayOperatorsMixin.__sub__
    __imul__ = np.lib.mixins.NDArrayOperatorsMixin.__mul__
    __itruediv__ = np.lib.mixins.NDArrayOperatorsMixin.__truediv__


def read_line(depth: int) -> str:
    """Return the line of a caller: where ``x += y`` is on an array of numpy, x is an array of JAX then."""
    caller = sys._getframe(depth)
    return linecache.getline(caller.f_code.co_filename, caller.f_lineno)


def wrap(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(wrap(one) for one in value)
    return Traced(value) if isinstance(value, np.ndarray | np.generic) else value


def unwrap(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: unwrap(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(unwrap(one) for one in value)
    return value._value if isinstance(value, Traced) else value


def read_lowering() -> tuple[set[str], set[str]]:
    """Return the names of types in the folder of lowerings, and the functions that have a stand-in there."""
    names: set[str] = set()
    stood_for: set[str] = set()
    for path in LOWERING.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                names.update(node.value.split())
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "stands_for":
                stood_for.add(ast.unparse(node.args[0]).rpartition(".")[2])
    return names, stood_for


NAMED, STOOD_FOR = read_lowering()


def is_by_formula(op: type[OpDef]) -> bool:
    sees_the_run = op.external or (op.context and not op.lods_only)
    return op.traceable and not sees_the_run and op.type not in NAMED


#: The first case of each type: others may take sizes from variables, which JAX refuses.
TRACED = {case.type: case for case in reversed(CASES) if is_by_formula(registry.find(case.type))}


@pytest.mark.parametrize("type", sorted(TRACED))
def test_kernels_that_are_not_expressions_are_marked(type: str) -> None:
    case, op = TRACED[type], registry.find(type)
    view, values, lods = contract._named(case)
    args = contract.make_arguments(op.input_slots, view.inputs, values.get)
    keywords = op.make_forward_keywords(view.attrs, view.outputs)
    context = [contract.FakeContext(view, values, lods)] * op.context
    try:
        found = op.forward(*context, *(wrap(arg) for arg in args), **keywords)
    except Exception as error:
        if {frame.name for frame in traceback.extract_tb(error.__traceback__)} & STOOD_FOR:
            return  # JAX has a function of its own there
        pytest.fail(
            f"let the operator say `traceable = False`, or its kernel write no array in place: {error}"
        )
    for got, want in zip(unpack(found), unpack(op.forward(*context, *args, **keywords)), strict=True):
        np.testing.assert_array_equal(unwrap(got), want)


def unpack(value: Any) -> list[Any]:
    return [one for each in value for one in unpack(each)] if isinstance(value, list | tuple) else [value]
