"""What the tests of optimizers share."""

from __future__ import annotations

import pytest

import paddlelike as fluid


@pytest.fixture
def exe() -> fluid.Executor:
    return fluid.Executor()
