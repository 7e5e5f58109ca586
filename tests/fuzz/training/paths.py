"""Ways to run one program: plans without any optimisation, as they are, and with all optimisations."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np

import paddlelike as fluid
from paddlelike.executor import profile
from paddlelike.executor.plans import run_plan as plan, touched, unrolled
from paddlelike.executor.plans.rewrites import groups, overwriting, scalars

__all__ = ["PATHS", "TOLERANCES", "use_path"]

#: By path: how far results may be from those of the plan; 0.0: not at all. Plain kernels and XLA add up in
#: another order; some optimizers divide by small numbers.
TOLERANCES = {
    "plan": 0.0, "eager": 0.0, "single": 0.0, "unrolled": 0.0, "profiled": 0.0, "plain": 2e-4, "fast": 2e-4, "jax": 2e-3,
}  # fmt: skip
PATHS = tuple(TOLERANCES)


def _make_plain_kernel(self, cls: Any, op: Any, block: Any, keywords: Any) -> tuple[Callable[..., Any], str]:
    return functools.partial(cls.forward, **keywords), "general"


def _take_in_c_order(kernel: Any, cls: Any, op: Any, reordered: Any) -> Callable[..., Any]:
    return lambda *values: kernel(*map(_order, values))


def _order(value: Any) -> Any:
    if type(value) is list:
        return [_order(one) for one in value]
    if isinstance(value, np.ndarray) and not value.flags.c_contiguous:
        return np.ascontiguousarray(value)
    return value


def _keep_all(uses: list[Any], keep: Any) -> list[list[str]]:
    return [[] for _ in uses]


@contextlib.contextmanager
def use_path(path: str) -> Iterator[None]:
    """Run programs in one way inside the block; their plans must be new.

    - plain: every operator by its general kernel on arrays in C order, nothing released or shared
    - plan: as ever, without numba
    - eager: the optimisations that need large arrays also on small ones
    - unrolled: all steps as one function from the first run on
    - single: no groups of steps
    - profiled: operators one by one
    - fast: kernels compiled by numba
    - jax: compiled programs
    """
    with contextlib.ExitStack() as stack:

        def set_to(owner: Any, name: str, value: Any) -> None:
            stack.enter_context(patch.object(owner, name, value))

        before = fluid.get_flags(["FLAGS_use_fast_kernels", "FLAGS_backend"])
        stack.callback(fluid.set_flags, before)
        fluid.set_flags({"FLAGS_use_fast_kernels": path == "fast"})
        if path == "plain":
            set_to(plan.Plan, "groups_steps", False)
            set_to(plan, "hollow_after", lambda step, positions: step)
            set_to(plan.Plan, "_make_kernel", _make_plain_kernel)
            set_to(plan, "take_in_order", _take_in_c_order)
            set_to(plan, "find_last_uses", _keep_all)
            set_to(plan.Aliases, "must_copy", lambda self, index: True)
        elif path == "eager":
            set_to(overwriting, "LEAST", 0)
            set_to(scalars, "SMALL", 0)
            set_to(touched, "_LEAST", 1)
            set_to(groups, "_FLAT", 2)
            set_to(groups, "_count_needed", lambda steps: 2)
            set_to(unrolled, "_RUNS", 0)
        elif path == "unrolled":
            set_to(unrolled, "_RUNS", 0)
        elif path == "single":
            set_to(plan.Plan, "groups_steps", False)
        elif path == "profiled":
            profile.start()
            stack.callback(profile.stop)
        elif path == "jax":
            fluid.set_flags({"FLAGS_backend": "jax"})
        yield
