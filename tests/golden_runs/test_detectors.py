"""Detectors train and find as in real Fluid 1.8.5: programs, losses of five steps, detections."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers import anchor_networks, detector_networks
from tests.helpers.canonical import assert_same_program, canonical
from tests.helpers.fresh import fresh_programs
from tests.helpers.golden_data import table

#: By golden table: networks that propose regions, and networks that classify anchors at once.
NETWORKS: dict[str, Any] = {"detectors": detector_networks, "anchors": anchor_networks}
TRAINED = [(part, name) for part, networks in NETWORKS.items() for name in networks.TRAINED]
DECODED = [(part, name) for part, networks in NETWORKS.items() for name in networks.DECODED]


def assert_built_alike(main: Any, startup: Any, golden: dict[str, Any]) -> None:
    for program, which in ((startup, "startup"), (main, "main")):
        real = canonical(zlib.decompress(base64.b64decode(golden[which])))
        assert_same_program(canonical(program), real)


@pytest.mark.parametrize(("part", "name"), TRAINED)
def test_a_detector_trains_as_in_fluid(part: str, name: str) -> None:
    networks, golden = NETWORKS[part], table(part)[name]
    with fresh_programs(networks.SEED) as (main, startup):
        loss, feed = networks.TRAINED[name](fluid)
        fluid.optimizer.SGD(networks.RATE).minimize(loss)
        assert_built_alike(main, startup, golden)
        exe = fluid.Executor()
        exe.run(startup)
        losses = [float(exe.run(main, feed=feed, fetch_list=[loss])[0]) for _ in range(networks.STEPS)]
    # float32 with another order of sums, through five steps
    np.testing.assert_allclose(losses, golden["losses"], rtol=2e-5)


@pytest.mark.parametrize(("part", "name"), DECODED)
def test_a_detector_finds_the_same_objects_as_in_fluid(part: str, name: str) -> None:
    networks, golden = NETWORKS[part], table(part)[name]
    with fresh_programs(networks.SEED) as (main, startup):
        fetches, feed = networks.DECODED[name](fluid)
        assert_built_alike(main, startup, golden)
        exe = fluid.Executor()
        exe.run(startup)
        found = exe.run(main, feed=feed, fetch_list=fetches, return_numpy=False)
    for got, want in zip(found, golden["results"], strict=True):
        array = np.array(got)
        assert array.shape == np.shape(want)
        # convolutions of float32 in another order; coordinates are up to 64
        np.testing.assert_allclose(array, want, rtol=2e-5, atol=2e-5)
