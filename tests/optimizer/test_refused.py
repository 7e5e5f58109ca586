"""Optimizers that need several devices are refused."""

from __future__ import annotations

import pytest

from paddlelike import optimizer
from paddlelike.errors import UnsupportedError


@pytest.mark.parametrize("name", ["DGCMomentumOptimizer", "PipelineOptimizer"])
def test_what_needs_other_machines_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match=name):
        getattr(optimizer, name)(0.1, 0.9, rampup_begin_step=0)
