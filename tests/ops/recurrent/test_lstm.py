"""Recurrent operators, besides their cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import LoDTensor, VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Array, Spec
from paddlelike.ops.kernels.recurrent.lstm import LstmAttrs
from paddlelike.ops.kernels.recurrent.steps import Steps
from paddlelike.ops.recurrent.beam_search import BeamSearchDecode
from paddlelike.ops.recurrent.gru import GruUnit
from paddlelike.ops.recurrent.lstm import Lstm

FLAG = "FLAGS_fluid_quirks"


@pytest.fixture
def flag() -> Iterator[None]:
    """The flag as it was, afterwards."""
    before = fluid.get_flags(FLAG)
    yield
    fluid.set_flags(before)


def gradient_of_the_weight(width: int, dtype: str) -> Array:
    rng = np.random.RandomState(3)
    rows = rng.uniform(-1, 1, (5, 4 * width)).astype(dtype)
    weight = fluid.initializer.NumpyArrayInitializer(rng.uniform(-1, 1, (width, 4 * width)).astype("float32"))
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, 4 * width], dtype, lod_level=1)
        attr = fluid.ParamAttr(name="w", initializer=weight)
        hidden, _ = fluid.layers.dynamic_lstm(x, 4 * width, param_attr=attr, dtype=dtype)
        fluid.backward.append_backward(fluid.layers.mean(hidden))
        exe = fluid.Executor()
        exe.run(startup)
        feed = {"x": fluid.create_lod_tensor(rows, [[2, 3]], fluid.CPUPlace())}
        return exe.run(main, feed=feed, fetch_list=["w@GRAD"])[0]


def test_by_default_cell_gradients_stop_as_in_fluid() -> None:
    """tests/golden/sentiment_lstm holds such gradients of the real system."""
    gates = np.split(gradient_of_the_weight(8, "float32"), 4, axis=1)
    assert [bool(gate.any()) for gate in gates] == [False, False, False, True]  # the output gate alone
    assert all(gate.any() for gate in np.split(gradient_of_the_weight(6, "float32"), 4, axis=1))


@pytest.mark.usefixtures("flag")
def test_a_flag_enables_gradients_through_the_cell() -> None:
    fluid.set_flags({FLAG: False})
    passed = gradient_of_the_weight(8, "float32")
    assert all(gate.any() for gate in np.split(passed, 4, axis=1))


def test_dropout_between_layers_is_the_same_in_the_backward_pass() -> None:
    """The gradient along one direction agrees with differences, the seed being given."""
    rng = np.random.RandomState(5)
    values = {"x": rng.uniform(-1, 1, (4, 2, 3)), "h": np.zeros((2, 2, 3)), "c": np.zeros((2, 2, 3))}
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x, h, c = (fluid.data(name, list(value.shape), "float64") for name, value in values.items())
        x.stop_gradient = False
        out, _, _ = fluid.layers.lstm(x, h, c, 4, 3, 2, dropout_prob=0.5, seed=3)
        loss = fluid.layers.reduce_sum(out)
        (gradient,) = fluid.gradients([loss], [x])
        exe = fluid.Executor()
        exe.run(startup)
        direction = rng.standard_normal(values["x"].shape) * 1e-6

        def at(step: float) -> float:
            return float(exe.run(main, {**values, "x": values["x"] + step * direction}, [loss])[0][0])

        (got,) = exe.run(main, values, [gradient])
        assert got.any()
        np.testing.assert_allclose((got * direction).sum(), (at(1) - at(-1)) / 2, rtol=1e-5)
        assert at(0) != float(exe.run(main.clone(for_test=True), values, [loss])[0][0])


def test_lstm_steps_shrink_as_sequences_end() -> None:
    steps = Steps.of(np.array([0, 2, 2, 5]))
    assert steps.rows.tolist() == [2, 0, 3, 1, 4]
    assert (steps.bounds, steps.first) == ([0, 2, 4, 5], 2)
    assert steps.owner().tolist() == [2, 0, 2, 0, 2]
    assert steps.spans == [(0, 2, -1), (2, 4, 0), (4, 5, 2)]
    before = steps.before(np.array([[0], [1], [2], [3], [4]]), np.array([[8], [9]]))
    assert before.ravel().tolist() == [8, 9, 0, 1, 2]
    assert Steps.of(np.array([0, 2, 2, 5]), reverse=True).rows.tolist() == [4, 1, 3, 0, 2]


def test_gate_blocks_are_contiguous_over_the_rows_of_a_step() -> None:
    steps = Steps.of(np.array([0, 2, 2, 5]))
    parts = np.array([[10 * row + part for part in range(3)] for row in range(5)]).ravel()
    blocks = parts[steps.find_blocks(3).source]
    assert blocks.tolist() == [20, 0, 21, 1, 22, 2, 30, 10, 31, 11, 32, 12, 40, 41, 42]
    assert blocks[steps.find_blocks(3).in_rows].tolist() == parts.tolist()
    in_batch = parts.reshape(5, 3)[steps.rows].ravel()
    assert blocks[steps.find_blocks(3).in_batch].tolist() == in_batch.tolist()


def test_a_batch_without_sequences_has_no_steps() -> None:
    steps = Steps.of(np.array([0, 0]))
    assert (steps.rows.size, steps.bounds, steps.owner().size) == (0, [0], 0)
    assert [each.size for each in steps.find_blocks(3)] == [0, 0, 0]


def spec(*shape: int) -> Spec:
    return Spec(shape, VarType.FP32, 1)


@pytest.mark.parametrize(
    ("x", "weight", "bias"),
    [
        pytest.param((-1, 12), (3, 12), (1, 12), id="bias-without-peepholes"),
        pytest.param((-1, 12), (4, 16), (1, 28), id="width"),
        pytest.param((-1, 12), (2, 12), (1, 21), id="rows-of-the-weight"),
    ],
)
def test_an_error_shows_shapes_that_do_not_fit(
    x: tuple[int, ...], weight: tuple[int, ...], bias: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=r"lstm: Input is .* expected \(T, 4 H\), \(H, 4 H\), \(1, 7 H\)"):
        Lstm.infer(spec(*x), None, None, spec(*weight), spec(*bias), attrs=LstmAttrs())


def test_an_unknown_activation_is_refused() -> None:
    shapes = (spec(-1, 12), None, None, spec(3, 12), spec(1, 21))
    with pytest.raises(EnforceNotMet, match="cell_activation is 'gelu', expected one of identity, sigmoid"):
        Lstm.infer(*shapes, attrs=LstmAttrs(cell_activation="gelu"))
    ones = np.ones((1, 3), np.float32)
    with pytest.raises(ShapeError, match=r"gate_activation is 4, expected 0 \(identity\) to 3 \(relu\)"):
        GruUnit.forward(ones, ones[:, :1], ones, None, activation=2, gate_activation=4, origin_mode=False)


def test_rows_without_lod_are_refused_with_a_hint() -> None:
    with fluid.program_guard(fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", [None, 2], lod_level=1)
        out = fluid.layers.sequence_pool(x, "sum")
        exe, feed = fluid.Executor(), {"x": np.ones((3, 2), np.float32)}
        with pytest.raises(EnforceNotMet, match=r"sequence_pool: X \('x'\) has no LoD") as caught:
            exe.run(feed=feed, fetch_list=[out])
        assert "create_lod_tensor" in str(caught.value)


def test_states_of_another_batch_size_are_refused_when_run() -> None:
    """The example of Fluid's text declares states for 20 sequences beside an input (N, 100, D)."""
    x = fluid.data("x", [None, 7, 6])
    states = [fluid.layers.fill_constant([1, 2, 4], "float32", 0.0) for _ in range(2)]
    out, last, _ = fluid.layers.lstm(x, *states, max_len=7, hidden_size=4, num_layers=1)
    assert (out.shape, last.shape) == ((-1, 7, 4), (1, 2, 4))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    with pytest.raises(
        EnforceNotMet, match=r"Input \[3, 7, 6\] holds 7 sequences, InitH \[1, 2, 4\] states of 2"
    ):
        exe.run(feed={"x": np.ones((3, 7, 6), "float32")}, fetch_list=[out])


END = 0
#: Words, scores and LoD of every step of two sources; source 0 ends with step 1.
STEPS = [
    ([3, 4], [0.0, 0.0], [[0, 1, 2], [0, 1, 2]]),
    ([0, 5, 6, 7], [-1.0, -2.0, -1.5, -0.5], [[0, 1, 2], [0, 2, 4]]),
    ([0, 0, 8, 9], [-1.0, -2.5, -1.75, -1.25], [[0, 2, 4], [0, 1, 2, 3, 4]]),
    ([0, 2], [-3.0, -2.75], [[0, 2, 4], [0, 0, 0, 1, 2]]),
]
# What real Fluid 1.8.5 makes of them, by array_write and beam_search_decode.
WORDS = [3, 0, 3, 5, 0, 4, 7, 9, 2, 4, 6, 8, 0]
SCORES = [0.0, -1.0, 0.0, -2.0, -2.5, 0.0, -0.5, -1.25, -2.75, 0.0, -1.5, -1.75, -3.0]
LOD = [[0, 2, 4], [0, 2, 5, 9, 13]]


def column(numbers: list[Any], dtype: str) -> np.ndarray[Any, Any]:
    return np.array(numbers, dtype).reshape(-1, 1)


def test_beam_search_matches_its_formula() -> None:
    layers = fluid.layers
    with fluid.program_guard(fluid.Program()), fluid.unique_name.guard():
        ids, scores, feed = layers.create_array("int64"), layers.create_array("float32"), {}
        for step, (words, values, lod) in enumerate(STEPS):
            place = layers.fill_constant([1], "int64", step)
            for array, name, numbers, dtype in (
                (ids, f"i{step}", words, "int64"),
                (scores, f"s{step}", values, "float32"),
            ):
                layers.array_write(fluid.data(name, [None, 1], dtype, lod_level=2), place, array)
                feed[name] = LoDTensor(column(numbers, dtype), lod)
        fetches = list(layers.beam_search_decode(ids, scores, beam_size=2, end_id=END))
        exe = fluid.Executor()
        found, chances = exe.run(feed=feed, fetch_list=fetches, return_numpy=False)
    assert np.array(found).ravel().tolist() == WORDS
    assert np.array(chances).ravel().tolist() == SCORES
    assert found.lod() == chances.lod() == LOD


class Recorder:
    """As much of a run as the operator asks for."""

    def set_lod(self, slot: str, lod: list[list[int]], index: int = 0) -> None:
        raise AssertionError("nothing was found")


def test_beam_search_steps_without_two_lod_levels_are_refused() -> None:
    step = [LoDTensor(column([1, 2], "int64"), [[0, 2]])]
    with pytest.raises(EnforceNotMet, match="a step of Ids has 1 levels of LoD, expected 2"):
        BeamSearchDecode.forward(Recorder(), step, step, beam_size=2, end_id=END)  # type: ignore[arg-type]
    with pytest.raises(EnforceNotMet, match="Ids is an empty array"):
        BeamSearchDecode.forward(Recorder(), [], [], beam_size=2, end_id=END)  # type: ignore[arg-type]
