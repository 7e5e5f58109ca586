"""Fluid's names for fleet, in the forms of import that scripts use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import paddlelike as fluid


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
from paddlelike.incubate.fleet.parameter_server.pslib import fleet as pslib, fleet_embedding
assert isinstance(pslib, Fleet) and pslib._mode == Mode.PSLIB
assert DistributeTranspilerConfig is fluid.DistributeTranspilerConfig
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_modules_between_hold_names_only() -> None:
    assert set(dir(fluid.incubate)) >= {"data_generator", "fleet"}
    wanted = r"'paddlelike\.fluid\.incubate\.fleet' has no attribute 'nothing'"
    with pytest.raises(AttributeError, match=wanted):
        fluid.incubate.fleet.nothing  # noqa: B018
