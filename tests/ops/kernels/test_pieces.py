"""Formulas in pieces: the bits and the order in memory of the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlelike.framework.opdef import registry
from paddlelike.ops.kernels.pieces import in_pieces
from tests.ops.harness.contract import full_attrs

RNG = np.random.default_rng(11)
LARGE = RNG.standard_normal((3, 700, 7, 300)).astype("float32")  # 17 MB, and no whole number of pieces


def _last(array: Any) -> Any:
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


@pytest.mark.parametrize(
    "order", [np.ascontiguousarray, _last, np.asfortranarray], ids=["C", "channels last", "Fortran"]
)
@pytest.mark.parametrize("name", ["gelu", "swish", "leaky_relu_grad"])
def test_pieces_give_the_same_bits_and_order_as_the_whole(name: str, order: Any) -> None:
    operator = registry.find(name)
    keywords = operator.make_forward_keywords(full_attrs(operator, {}))
    arrays = [order(LARGE)] * len(operator.input_slots)
    whole = operator.forward.__wrapped__(*arrays, **keywords)
    found = operator.forward(*arrays, **keywords)
    assert found.strides == whole.strides
    assert np.array_equal(found.view(np.int32), whole.view(np.int32))  # also of nan and -0


def test_a_large_array_needs_extra_memory_for_pieces_only() -> None:
    sizes = []

    def count(x: Any) -> Any:
        sizes.append(x.nbytes)
        return x * x > 1

    found = in_pieces(count)(LARGE)
    assert found.dtype == bool
    assert max(sizes) == 512 << 10
    assert sum(sizes) == LARGE.nbytes
    in_pieces(count)(LARGE[:, :, :, ::2])  # has gaps
    assert sizes[-1] == LARGE.nbytes // 2
