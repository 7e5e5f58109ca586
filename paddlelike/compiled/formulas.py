"""Evaluate the numpy formula of a kernel with JAX.

Many kernels are one expression of numpy functions, and ``jax.numpy`` has the same functions. The functions of
such a kernel are copied with another module in place of ``numpy``: calls with an array of JAX go to
``jax.numpy``, other calls (with shapes or lists of axes) to numpy itself. So one formula serves both engines.
:func:`stands_for` replaces a function that kernels call by another one for JAX.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

#: Functions that jax.numpy lacks, or has only for arrays of its own.
_OWN: Final[dict[str, Any]] = {
    "ndarray": np.ndarray | jax.Array,
    "errstate": lambda **_: contextlib.nullcontext(),
    "ascontiguousarray": lambda x, dtype=None: jnp.asarray(x, dtype),
}


class _Numpy:
    """Replaces the module ``numpy`` in the functions of a kernel."""

    def __getattr__(self, name: str) -> Any:
        found = _OWN.get(name)
        if found is None:
            found = getattr(np, name)
            if callable(found) and not isinstance(found, type):
                found = _Function(found, getattr(jnp, name, None))
        setattr(self, name, found)
        return found


class _Function:
    """A function of numpy that calls jax.numpy's when it gets an array of JAX."""

    def __init__(self, real: Any, traced: Any) -> None:
        self._real, self._traced = real, traced
        self.__name__ = getattr(real, "__name__", "")

    def __call__(self, *args: Any, **keywords: Any) -> object:
        if not _has_traced((args, keywords)):
            return self._real(*args, **keywords)
        if self._traced is None:
            raise TypeError(f"jax.numpy has no {self.__name__}")
        return self._traced(*args, **keywords)

    def __getattr__(self, name: str) -> Any:  # add.reduce
        return _Function(getattr(self._real, name), getattr(self._traced, name, None))


def _has_traced(args: Any) -> bool:
    return any(isinstance(leaf, jax.Array) for leaf in jax.tree_util.tree_leaves(args))


#: The replacements of modules, functions and classes in the functions of a kernel.
_STAND_INS: Final[dict[Any, Any]] = {np: _Numpy()}


def stands_for(original: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that registers a function of JAX as the replacement of a function in kernels."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _STAND_INS[original] = function
        return function

    return register


@functools.cache
def translate(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel's function with JAX in place of numpy, also in all functions that it calls."""
    return _Translation().translate(function)


class _Translation:
    """One run of :func:`translate`: the copies made so far."""

    def __init__(self) -> None:
        self._copies: dict[Any, Any] = {}

    def translate(self, value: Any) -> Any:
        if isinstance(value, types.ModuleType | types.FunctionType | type) and value in _STAND_INS:
            return _STAND_INS[value]
        if isinstance(value, types.MethodType):
            return types.MethodType(self.translate(value.__func__), _Owner(value.__self__, self))
        if isinstance(value, np.ufunc):
            return _Function(value, getattr(jnp, value.__name__, None))
        if isinstance(value, functools.partial):
            return functools.partial(self.translate(value.func), *value.args, **value.keywords)
        if isinstance(value, tuple) and hasattr(value, "_fields"):  # the row of a table
            return type(value)(*(self.translate(item) if callable(item) else item for item in value))
        if isinstance(value, dict) and all(callable(one) or isinstance(one, tuple) for one in value.values()):
            return {key: self.translate(one) for key, one in value.items()}  # a table
        if isinstance(value, types.FunctionType) and value.__module__.startswith("paddlelike.ops"):
            return self._copy(value)
        return value

    def _copy(self, function: types.FunctionType) -> Any:
        if function in self._copies:
            return self._copies[function]
        cells = tuple(types.CellType() for _ in function.__closure__ or ())
        names = dict(function.__globals__)
        copy = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells)
        copy.__kwdefaults__ = function.__kwdefaults__
        self._copies[function] = copy
        for name in _list_names(function.__code__) & names.keys():
            names[name] = self.translate(names[name])
        for cell, original in zip(cells, function.__closure__ or (), strict=True):
            cell.cell_contents = self.translate(original.cell_contents)
        return copy


class _Owner:
    """Replaces the class of a method; functions found in that class are translated as well."""

    def __init__(self, owner: Any, translation: _Translation) -> None:
        self._owner, self._translation = owner, translation

    def __getattr__(self, name: str) -> Any:
        return self._translation.translate(getattr(self._owner, name))


def _list_names(code: types.CodeType) -> set[str]:
    """Return the global names that a function uses, and the functions inside it."""
    inner = (one for one in code.co_consts if isinstance(one, types.CodeType))
    return set(code.co_names).union(*map(_list_names, inner))
