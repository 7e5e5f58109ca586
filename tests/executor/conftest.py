"""What tests of the executor share."""

from __future__ import annotations

import pytest

import paddlelike as fluid


@pytest.fixture
def exe() -> fluid.Executor:
    return fluid.Executor()
