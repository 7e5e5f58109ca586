"""The page of arithmetic for large jobs holds for the state machines themselves."""

from __future__ import annotations

import pytest

from tests.benchmarks.distributed.bench_scale import check


@pytest.mark.parametrize(
    ("trainers", "servers"), [(12, 4), pytest.param(100, 20, marks=pytest.mark.slow)], ids=str
)
def test_the_protocol_sends_as_many_bytes_as_documented(trainers, servers):
    for name, what, want, have, apart in check(trainers, servers):
        assert have == pytest.approx(want, rel=apart), f"{name}: {what}"
