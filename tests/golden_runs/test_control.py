"""Loops, branches and repeated networks: programs, losses and results of real Fluid 1.8.5."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.canonical import assert_same_program, canonical
from tests.helpers.control_networks import DECODED, RATE, SEED, STEPS, TRAINED
from tests.helpers.fresh import fresh_programs
from tests.helpers.golden_data import table

GOLDEN = table("control")

#: Fluid's program loses the gradient of a value that is used before the loop too. Its way is not copied:
#: after the first loss, training goes another way here.
OTHER_PROGRAM = "while_loop_with_array"

pytestmark = pytest.mark.filterwarnings("ignore:layers.While, while_loop that overwrite")


def real_program(name: str, which: str) -> Any:
    return canonical(zlib.decompress(base64.b64decode(GOLDEN[name][which])))


def losses(main: Any, startup: Any, loss: Any, feed: Any) -> list[float]:
    exe = fluid.Executor()
    exe.run(startup)
    return [float(exe.run(main, feed=feed, fetch_list=[loss])[0]) for _ in range(STEPS)]


def test_every_recorded_network_is_tested() -> None:
    assert sorted({**TRAINED, **DECODED}) == sorted(GOLDEN)


@pytest.mark.parametrize("name", TRAINED)
def test_a_network_trains_as_in_fluid(name: str) -> None:
    with fresh_programs(SEED) as (main, startup):
        loss, feed = TRAINED[name](fluid)
        fluid.optimizer.SGD(RATE).minimize(loss)
        assert_same_program(canonical(startup), real_program(name, "startup"))
        if name != OTHER_PROGRAM:
            assert_same_program(canonical(main), real_program(name, "main"))
        got, wanted = losses(main, startup, loss, feed), GOLDEN[name]["losses"]
    compared = slice(1) if name == OTHER_PROGRAM else slice(None)  # the first loss comes before any gradient
    # float32 with another order of sums, through five steps
    np.testing.assert_allclose(got[compared], wanted[compared], rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("textbook")
def test_textbook_gradients_pass_through_a_loop_that_writes_over_its_state() -> None:
    with fresh_programs(SEED) as (main, startup):
        loss, feed = TRAINED["while_overwriting"](fluid)
        fluid.optimizer.SGD(RATE).minimize(loss)
        got = losses(main, startup, loss, feed)
    # the real system's losses of the same network with an array; tolerance as above
    np.testing.assert_allclose(got, GOLDEN["while_with_array"]["losses"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", DECODED)
def test_a_decoder_gives_the_results_of_fluid(name: str) -> None:
    with fresh_programs(SEED) as (main, startup):
        fetches, feed = DECODED[name](fluid)
        assert_same_program(canonical(startup), real_program(name, "startup"))
        assert_same_program(canonical(main), real_program(name, "main"))
        exe = fluid.Executor()
        exe.run(startup)
        found = exe.run(main, feed=feed, fetch_list=fetches)
    for got, wanted in zip(found, GOLDEN[name]["results"], strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)  # float32, other order of sums


@pytest.mark.usefixtures("textbook")
@pytest.mark.parametrize("name", TRAINED)
def test_gradients_agree_with_finite_differences(name: str) -> None:
    with fresh_programs(SEED) as (main, startup):
        loss, feed = TRAINED[name](fluid)
        pairs = fluid.backward.append_backward(loss)
        exe = fluid.Executor()
        exe.run(startup)
        gradients = exe.run(main, feed=feed, fetch_list=[gradient for _, gradient in pairs])
        rng = np.random.RandomState(1)
        for (parameter, _), gradient in zip(pairs, gradients, strict=True):
            tensor = fluid.global_scope().find_var(parameter.name).get_tensor()
            start = np.array(tensor)
            direction = rng.randn(*start.shape).astype("float32")
            found = []
            for step in (5e-3, -5e-3):
                tensor.set(start + np.float32(step) * direction, fluid.CPUPlace())
                found.append(float(exe.run(main, feed=feed, fetch_list=[loss])[0]))
            tensor.set(start, fluid.CPUPlace())
            # float32: the loss has an error of 1e-7, the difference one of 1e-5 and what is of third order
            np.testing.assert_allclose(
                (gradient * direction).sum(), (found[0] - found[1]) / 1e-2, rtol=1e-2, atol=1e-4
            )
