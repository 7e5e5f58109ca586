"""Programs and exported models are Fluid 1.8.5's byte for byte, but for the lines of the script.

The bytes compared have no ``op_callstack``, which names local paths.
"""

from __future__ import annotations

import pytest

from paddlelike.framework.codec.schema import messages
from paddlelike.framework.graph.attributes import COMMON_ATTRS
from paddlelike.framework.opdef import registry
from tests.helpers.fresh import fresh_programs
from tests.helpers.golden_data import table
from tests.zoo.encoded import VARYING, digest, encode_layer, encode_optimizer
from tests.zoo.layers import LAYERS
from tests.zoo.optimizers import OPTIMIZERS, net

GOLDEN = table("encoded")
PROGRAMS = GOLDEN["programs"]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in VARYING])
@pytest.mark.filterwarnings("ignore")
def test_encoded_programs_have_the_bytes_of_fluid(name: str) -> None:
    kind, _, short = name.rpartition(" ")
    with fresh_programs(seed=13 if kind else 0):
        found = encode_optimizer(OPTIMIZERS[short], net) if kind else encode_layer(LAYERS[name])
    message = messages().ProgramDesc
    golden = {key: want for key, want in PROGRAMS[name].items() if want is not None}
    different = {key for key, want in golden.items() if digest(found[key], message) != want}
    assert golden
    assert different == set()


def test_attributes_are_declared_in_the_order_of_fluid() -> None:
    known = {name: registry.find_or_none(name) for name in GOLDEN["attributes"]}
    ours = {name: [*op.attr_order] for name, op in known.items() if op is not None}
    assert len(ours) > 400
    for name, order in ours.items():
        assert order == [attr for attr in GOLDEN["attributes"][name] if attr not in COMMON_ATTRS], name
