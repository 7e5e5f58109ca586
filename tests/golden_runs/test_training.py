"""The four networks start with the real values and train as in real Fluid 1.8.5."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.golden_data import GOLDEN, Arrays, arrays, manifest, with_lod
from tests.helpers.networks import NETWORKS, SEED, WARM_STEPS, as_feed, network
from tests.helpers.runs import Run, batch, building

pytestmark = pytest.mark.parametrize("name", NETWORKS)

# One step differs by rounding (other BLAS, other order of sums); thirteen steps carry it on. An element
# that is small because large terms cancel carries the rounding of those, hence the largest one as measure.
LOSS = {"rtol": 1e-5}
VALUE = 1e-5


def assert_all_close(got: Arrays, want: Arrays) -> None:
    assert set(got) == set(want)
    for key in want:
        assert got[key].dtype == want[key].dtype
        largest = np.abs(want[key]).max(initial=0)
        np.testing.assert_allclose(got[key], want[key], rtol=VALUE, atol=VALUE * largest, err_msg=key)


def recorded_feed(name: str, step: int) -> dict[str, object]:
    return with_lod(fluid, arrays(name, "io", f"train{step}/"))


def warm(run: Run) -> np.random.RandomState:
    """Startup and the steps before the files were saved; returns the generator of batches."""
    run.exe.run(run.startup)
    rng = np.random.RandomState(SEED)
    for _ in range(WARM_STEPS):
        run.train(batch(run.name, rng))
    return rng


def test_initial_values_are_equal_bit_for_bit(name: str) -> None:
    with building(name) as run:
        run.exe.run(run.startup)
        got, want = run.values(), arrays(name, "values_after_startup")
        assert {key: value.tobytes() for key, value in got.items()} == {
            key: value.tobytes() for key, value in want.items()
        }


def test_training_from_the_start_gives_the_recorded_losses(name: str) -> None:
    with building(name) as run:
        rng = warm(run)
        saved = {
            path.name: fluid.io.load_program_state(str(path.parent))[path.name]
            for path in (GOLDEN / name / "persistables").iterdir()
        }
        assert_all_close(run.values(), saved)
        network(name).feeds(rng)  # the batch that the real run inferred with
        losses = [run.train(batch(name, rng))[0] for _ in range(10)]
        np.testing.assert_allclose(losses, manifest(name)["losses"], **LOSS)
        assert_all_close(run.values(), arrays(name, "values_after_10_more_steps"))


def test_training_continues_from_the_real_checkpoint(name: str) -> None:
    with building(name) as run:
        run.exe.run(run.startup)
        fluid.io.load_persistables(run.exe, str(GOLDEN / name / "persistables"), run.main)
        losses = [run.train(recorded_feed(name, step))[0] for step in range(10)]
        np.testing.assert_allclose(losses, manifest(name)["losses"], **LOSS)
        assert_all_close(run.values(), arrays(name, "values_after_10_more_steps"))


def test_the_gradients_of_one_step_match_fluid(name: str) -> None:
    want = arrays(name, "io", "grad0/")
    with building(name) as run:
        run.exe.run(run.startup)
        fluid.io.load_persistables(run.exe, str(GOLDEN / name / "persistables"), run.main)
        _, *got = run.train(recorded_feed(name, 0), list(want))
        assert_all_close(dict(zip(want, got, strict=True)), want)


def test_the_test_program_gives_the_recorded_results(name: str) -> None:
    want = arrays(name, "io", "infer_out/")
    with building(name) as run:
        run.exe.run(run.startup)
        fluid.io.load_persistables(run.exe, str(GOLDEN / name / "persistables"), run.main)
        feed = with_lod(fluid, arrays(name, "io", "infer_full_feed/"))
        got = run.exe.run(run.for_test, feed=feed, fetch_list=list(want))
        for key, value in zip(want, got, strict=True):
            np.testing.assert_allclose(value, want[key], rtol=1e-6, atol=1e-7, err_msg=key)


def test_the_recorded_batches_match_the_networks(name: str) -> None:
    rng = np.random.RandomState(SEED)
    for _ in range(WARM_STEPS + 1):
        network(name).feeds(rng)
    for step in range(10):
        mine, real = as_feed(fluid, network(name).feeds(rng)), recorded_feed(name, step)
        assert {k: np.array(v).tobytes() for k, v in mine.items()} == {
            k: np.array(v).tobytes() for k, v in real.items()
        }
