"""Quantization gives what real Fluid 1.8.5 gives: values, LoD, declared shapes."""

from __future__ import annotations

import pytest

from tests.helpers.golden_data import table
from tests.ops.harness.compare import check_declared, check_values
from tests.ops.quantization.quantization_cases import CASES

GOLDEN = table("quantization")


@pytest.mark.parametrize("name", CASES)
def test_values_and_lod(name: str) -> None:
    check_values(name, CASES[name], GOLDEN[name])


@pytest.mark.parametrize("name", CASES)
def test_shapes_declared_when_the_program_is_built(name: str) -> None:
    check_declared(name, CASES[name], GOLDEN[name])
