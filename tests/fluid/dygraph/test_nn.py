"""Layers of ``fluid.dygraph`` build in static programs what Fluid 1.8.5 built (golden/dygraph185.json.xz)."""

from __future__ import annotations

import base64
import json
import lzma
from pathlib import Path

import pytest

from paddlelike.framework.codec.schema import messages
from tests.fluid.dygraph.cases import CASES, build, encode

GOLDEN = json.loads(lzma.decompress((Path(__file__).parents[2] / "golden/dygraph185.json.xz").read_bytes()))


@pytest.mark.filterwarnings("ignore:SGDOptimizer")  # some cases train nothing, which ours says
@pytest.mark.parametrize("case", CASES)
def test_a_layer_builds_the_bytes_that_fluid_built(case: str) -> None:
    for ours, theirs in zip(map(encode, build(case)), GOLDEN[case], strict=True):
        if ours != theirs:
            decode = messages().ProgramDesc.FromString
            assert str(decode(base64.b64decode(ours))) == str(decode(base64.b64decode(theirs)))
        assert ours == theirs


def test_the_test_builds_every_recorded_program() -> None:
    assert set(GOLDEN) == set(CASES)
