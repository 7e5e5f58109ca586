"""Executors: what they run on, and what a run refuses."""

from __future__ import annotations

import pytest

import paddlelike as fluid
from paddlelike.errors import (
    UnsupportedError,
)


def test_an_executor_refuses_a_gpu_that_is_not_there() -> None:
    with pytest.raises(
        UnsupportedError, match=r"CUDAPlace\(99\): JAX(, .* is not installed| sees (no|\d+) GPUs? here)"
    ):
        fluid.Executor(fluid.CUDAPlace(99))
