"""Compiled kernels for tests: chosen for arrays of any size, run by numba or as plain Python."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from paddlelike.ops.kernels.fast.late import FastKernel
from paddlelike.ops.update import rules

__all__ = ["force_kernels", "needs_numba"]

needs_numba = pytest.mark.skipif(
    importlib.util.find_spec("numba") is None, reason='numba is not installed: pip install "paddlelike[fast]"'
)


@contextmanager
def force_kernels(*, compiled: bool) -> Iterator[set[str]]:
    """Let every kernel be chosen whatever the size; yield the names of those that were called.

    Without ``compiled`` the functions run in Python, on scalars of numpy: no numba is needed, and nothing is
    spent on compiling.
    """
    called: set[str] = set()
    compile_kernel = FastKernel.get_compiled

    def choose(self: FastKernel, size: int, *arrays: Any) -> Callable[..., Any] | None:
        dtype = arrays[0].dtype
        fits = all(array.dtype == dtype and array.flags.carray for array in arrays)
        return self.get_compiled(dtype) if fits and dtype in self.dtypes else None

    def find(self: FastKernel, dtype: Any) -> Callable[..., Any]:
        called.add(self.name)
        return compile_kernel(self, dtype) if compiled else _run_like_numba(self.function)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "LEAST", 0)
        patch.setattr(FastKernel, "choose", choose)
        patch.setattr(FastKernel, "get_compiled", find)
        yield called


def _run_like_numba(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that divides by zero without a word, as compiled code does."""

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args)

    return run
