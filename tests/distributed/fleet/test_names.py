"""Fluid's names for fleet, in the forms of import that scripts use."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import paddlelike as fluid
from paddlelike.incubate.fleet.utils.fleet_util import FleetUtil


def test_fleet_is_importable_under_the_names_of_fluid() -> None:
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


def test_intermediate_modules_only_re_export_names() -> None:
    assert set(dir(fluid.incubate)) >= {"data_generator", "fleet"}
    wanted = r"'paddlelike\.fluid\.incubate\.fleet' has no attribute 'nothing'"
    with pytest.raises(AttributeError, match=wanted):
        fluid.incubate.fleet.nothing  # noqa: B018


@pytest.mark.parametrize("shape", [[-1, 1], [-1, 3, 1], [-1, 3]])
def test_shapes_of_looked_up_rows_match_paddle(shape: list[int]) -> None:
    """Of Paddle 1.8.5's two functions the first drops a last dim of 1, and of 2.6.2 ``sparse_embedding``."""
    ids = fluid.data("ids", shape, "int64", lod_level=1)
    nn = importlib.import_module("paddlelike.layers.nn")
    found = nn._pull_sparse(ids, 11, 0, "DownpourCtrAccessor", name="a")
    whole = nn._pull_sparse_v2(ids, 11, 0, "DownpourCtrAccessor", name="b")
    again = fluid.contrib.layers.sparse_embedding(ids, [1, 11], param_attr="c")
    assert whole.shape == (*shape, 11)
    assert found.shape == again.shape == (*(shape[:-1] if shape[-1] == 1 else shape), 11)
    assert found.lod_level == whole.lod_level == 1


@pytest.mark.parametrize(
    ("hours", "first", "last"), [("{0..1}", 0, 1), ("{5,6,7}", 5, 7), ("23", 23, 23), ("0 1 2", 0, 2)]
)
def test_hour_ranges_are_expanded_without_a_shell(hours: str, first: int, last: int) -> None:
    found = FleetUtil().get_online_pass_interval("{20190720..20190729}", hours, 30, 2, False)
    assert found == [[f"{hour:02}00", f"{hour:02}30"] for hour in range(first, last + 1)]


def test_hour_ranges_with_shell_commands_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected numbers, \{0\.\.23\}"):
        FleetUtil().get_online_pass_interval("0", f"0; touch {tmp_path}/run", 30, 2, False)
    assert not list(tmp_path.iterdir())
