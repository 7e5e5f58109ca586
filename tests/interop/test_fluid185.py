"""Real Fluid 1.8.5 and this package, side by side: each continues what the other saved.

PADDLELIKE_FLUID185_PYTHON names an interpreter that has paddlepaddle 1.8.5. The networks are the
golden ones and random ones; PADDLELIKE_RANDOM_NETWORKS=100:200 takes others than the first twelve. Three of
them run compiled here as well; with FLAGS_backend=jax in the environment all of them do.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import paddlelike as fluid
from tests.compiled.harness.nets import use
from tests.helpers.canonical import assert_same_program, canonical
from tests.helpers.fresh import fresh_programs
from tests.helpers.golden_data import Arrays
from tests.helpers.networks import NETWORKS
from tests.interop.drivers.driver import run
from tests.interop.real import FLUID185

pytestmark = FLUID185.needed

COMPILED = [*list(NETWORKS)[:2], "random-3"]
FIRST, LAST = map(int, os.environ.get("PADDLELIKE_RANDOM_NETWORKS", "0:12").split(":"))
NAMES = [*NETWORKS, *(f"random-{number}" for number in range(FIRST, LAST))]

# A step differs by rounding only; a few steps of a small network carry it on. Trained values are compared
# by distance, as Adam and its like blow up the rounding of single elements; a wrong formula is 1e-3 away.
LOSS = {"rtol": 2e-5, "atol": 2e-6}
DISTANCE = {"relative": 1e-4, "absolute": 1e-5}
BEFORE, AFTER = 3, 4  # training steps before and after saving


class Result(NamedTuple):
    """What one side did."""

    saved: Path
    arrays: Arrays
    main: bytes
    startup: bytes

    def part(self, prefix: str) -> Arrays:
        return {
            key.removeprefix(prefix): value for key, value in self.arrays.items() if key.startswith(prefix)
        }


class Exchange(NamedTuple):
    """Both sides from the start, then each from what the other saved."""

    ours: Result
    theirs: Result
    ours_from_theirs: Result
    theirs_from_ours: Result


def ourselves(job: dict[str, Any], workplace: Path) -> None:
    with fresh_programs():
        run(fluid, job)


def themselves(job: dict[str, Any], workplace: Path) -> None:
    FLUID185.run("driver.py", job, workplace)


def ourselves_compiled(job: dict[str, Any], workplace: Path) -> None:
    with use("jax"):
        ourselves(job, workplace)


@pytest.fixture(scope="module", params=[*NAMES, *(f"compiled {name}" for name in COMPILED)])
def exchange(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exchange:
    *compiled, network = request.param.split()
    if compiled:
        pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)
    here = ourselves_compiled if compiled else ourselves
    place = tmp_path_factory.mktemp(network)

    def result(side: Callable[..., None], name: str, **changes: Any) -> Result:
        workplace = place / name
        workplace.mkdir()
        job = {
            "network": network, "seed": 7, "startup_seed": 7, "load": None, "skip": 0,
            "steps": BEFORE, "save": str(workplace), "more": AFTER, "infer": None,
            "out": str(workplace / "out"),
        } | changes  # fmt: skip
        side(job, workplace)
        with np.load(workplace / "out.npz") as file:
            arrays = {key: file[key] for key in file}
        programs = [(workplace / f"out.{name}.pb").read_bytes() for name in ("main", "startup")]
        return Result(workplace, arrays, *programs)

    def continued(side: Callable[..., None], name: str, saved: Path) -> Result:
        return result(
            side, name, startup_seed=8, load=str(saved / "persistables"), skip=BEFORE, steps=0,
            save=None, infer=str(saved / "inference"),
        )  # fmt: skip

    ours, theirs = result(here, "ours"), result(themselves, "theirs")
    return Exchange(
        ours,
        theirs,
        continued(here, "ours_from_theirs", theirs.saved),
        continued(themselves, "theirs_from_ours", ours.saved),
    )


def assert_close(got: Arrays, want: Arrays) -> None:
    assert sorted(got) == sorted(want)
    for key in want:
        assert got[key].dtype == want[key].dtype
        distance = np.linalg.norm((got[key] - want[key]).ravel().astype("float64"))
        length = np.linalg.norm(want[key].ravel().astype("float64"))
        assert distance <= DISTANCE["relative"] * length + DISTANCE["absolute"], key


def test_both_systems_build_the_same_programs(exchange: Exchange) -> None:
    assert_same_program(canonical(exchange.ours.main), canonical(exchange.theirs.main))
    assert_same_program(canonical(exchange.ours.startup), canonical(exchange.theirs.startup))


def test_both_systems_draw_the_same_initial_values(exchange: Exchange) -> None:
    ours, theirs = exchange.ours.part("initial/"), exchange.theirs.part("initial/")
    assert {k: v.tobytes() for k, v in ours.items()} == {k: v.tobytes() for k, v in theirs.items()}


def test_both_systems_have_the_same_losses_in_training(exchange: Exchange) -> None:
    assert_close(exchange.ours.part("losses"), exchange.theirs.part("losses"))
    assert_close(exchange.ours.part("final/"), exchange.theirs.part("final/"))


def test_both_systems_write_the_same_files_and_we_add_a_manifest(exchange: Exchange) -> None:
    kinds = ("persistables", "combined", "inference")

    def sizes(root: Path) -> dict[str, int]:
        paths = (path for kind in kinds for path in (root / kind).rglob("*"))
        found = {path.relative_to(root).as_posix(): path.stat().st_size for path in paths}
        return {name: 0 if name == "inference/__model__" else size for name, size in found.items()}

    ours, theirs = sizes(exchange.ours.saved), sizes(exchange.theirs.saved)
    manifests = {name: ours.pop(name) for name in [f"{kind}/__manifest__" for kind in kinds]}
    assert min(manifests.values()) > 0
    assert ours == theirs


@pytest.mark.parametrize("direction", ["ours read there", "theirs read here"])
def test_each_system_continues_training_from_files_of_the_other(exchange: Exchange, direction: str) -> None:
    before, after = {
        "ours read there": (exchange.ours, exchange.theirs_from_ours),
        "theirs read here": (exchange.theirs, exchange.ours_from_theirs),
    }[direction]
    np.testing.assert_allclose(after.arrays["losses"], before.arrays["losses"][BEFORE:], **LOSS)
    assert_close(after.part("final/"), before.part("final/"))


def test_each_system_runs_inference_models_of_the_other(exchange: Exchange) -> None:
    """Both models hold nearly the same values; that each was read is checked by the files above."""
    here, there = exchange.ours_from_theirs.part("infer/"), exchange.theirs_from_ours.part("infer/")
    assert here
    assert_close(here, there)
