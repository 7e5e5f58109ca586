"""Real Paddle Fluid 1.8.5 reads what killed savers leave, as they leave it."""

from __future__ import annotations

import pytest

from tests.crash import tracer
from tests.crash.networks import NETWORKS
from tests.interop.crashes import read_after_kills
from tests.interop.real import FLUID185

pytestmark = FLUID185.needed

STEPS = {"fluid-pickles": 2, "fluid-journal": 9}  # files of the models whose commits have several steps


@pytest.mark.parametrize(
    "name", [name for name in NETWORKS if name not in STEPS and NETWORKS[name].keywords["form"] != "chains"]
)
def test_after_a_crash_paddle_loads_the_old_or_the_new_save(name: str) -> None:
    reason = tracer.usable()
    if reason:
        pytest.skip(reason)
    assert FLUID185.python is not None
    found = read_after_kills(FLUID185.python, NETWORKS[name](3), every=3, times=5, seed=3)
    assert found.faults == []
    assert sum(found.counts.values()) > 10


@pytest.mark.parametrize(("name", "files"), STEPS.items())
def test_a_crash_during_a_commit_in_several_steps_rarely_leaves_a_mix(name: str, files: int) -> None:
    """Files that cannot be exchanged as one are renamed one after the other, with nothing in between."""
    reason = tracer.usable()
    if reason:
        pytest.skip(reason)
    assert FLUID185.python is not None
    found = read_after_kills(FLUID185.python, NETWORKS[name](3), every=1, times=0, seed=3)
    assert len(found.faults) <= files  # a kill before every call: one mix for each rename but the last
    assert found.counts["error"] == 0
    assert min(found.counts["old"], found.counts["new"]) > 5
