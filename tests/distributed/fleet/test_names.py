"""Fluid's names for fleet, in the forms of import that scripts use."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import paddlelike as fluid
from paddlelike.errors import UnsupportedError


def test_scripts_find_fleet_under_fluids_names() -> None:
    script = """
import paddlelike as fluid
import paddlelike.incubate.fleet.base.role_maker as role_maker
from paddlelike.incubate.fleet.base import role_maker as again
from paddlelike.incubate.fleet.base.fleet_base import DistributedOptimizer, Fleet, Mode
from paddlelike.incubate.fleet.base.mode import Mode
from paddlelike.incubate.fleet.base.role_maker import (
    GeneralRoleMaker, PaddleCloudRoleMaker, Role, RoleMakerBase, UserDefinedRoleMaker)
from paddlelike.incubate.fleet.parameter_server.distribute_transpiler import (
    DistributeTranspilerConfig, StrategyFactory, TrainerRuntimeConfig, fleet)
import paddlelike.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy as strategies
assert again is role_maker and fluid.incubate.fleet.base.role_maker is role_maker
assert fluid.incubate.fleet.parameter_server.distribute_transpiler.fleet is fleet
assert strategies.StrategyFactory is StrategyFactory
assert isinstance(fleet, Fleet) and fleet._mode == Mode.TRANSPILER
assert DistributeTranspilerConfig is fluid.DistributeTranspilerConfig
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("incubate.fleet.collective", "training by collectives"),
        ("incubate.fleet.parameter_server.pslib", "pslib, the parameter server inside Baidu's"),
    ],
)
def test_other_kinds_of_fleet_say_why_they_are_not_here(module: str, why: str) -> None:
    found = importlib.import_module(f"paddlelike.{module}")
    with pytest.raises(UnsupportedError, match=why) as caught:
        found.fleet.init()
    assert "parameter_server.distribute_transpiler" in str(caught.value)


def test_the_modules_between_hold_names_only() -> None:
    assert set(dir(fluid.incubate)) >= {"fleet"}
    wanted = r"'paddlelike\.fluid\.incubate\.fleet' has no attribute 'nothing'"
    with pytest.raises(AttributeError, match=wanted):
        fluid.incubate.fleet.nothing  # noqa: B018
