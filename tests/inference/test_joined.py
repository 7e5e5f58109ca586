"""Predictors that join operators give what those give one by one, up to rounding."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import inference
from paddlelike.errors import FeedError, OperatorError
from paddlelike.executor.plans import unrolled
from paddlelike.inference import plan as plans

L = fluid.layers
#: Of the largest number: sums in another order, several layers deep.
CLOSE = 2e-6
Build = Callable[[], tuple[list[str], list[Any]]]


def save(folder: Path, build: Build, seed: int = 3) -> None:
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = seed
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(scope):
        inputs, outputs = build()
        exe = fluid.Executor()
        exe.run(startup)
        rng = np.random.default_rng(seed)
        for variable in main.list_vars():  # statistics and biases that count
            if variable.persistable and variable.name not in ("feed", "fetch") and len(variable.shape) == 1:
                tensor = scope.find_var(variable.name).get_tensor()
                tensor.set(rng.uniform(0.5, 1.5, variable.shape).astype("float32"), fluid.CPUPlace())
        fluid.io.save_inference_model(str(folder), inputs, outputs, exe, main, "model", "params")


def open_model(folder: Path, *, joined: bool) -> tuple[Any, Any]:
    config = inference.Config(str(folder / "model"), str(folder / "params"))
    config.switch_ir_optim(joined)
    return inference.create_predictor(config), config


@pytest.fixture
def _no_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an error of a joined step be one, instead of a run of the operators one by one."""
    make_runner = plans.PlanEngine.make_runner

    def make(engine: Any, run_plain: Any) -> Any:
        def refuse(feed: Any) -> Any:
            raise AssertionError("the joined plan did not run")

        return make_runner(engine, refuse if engine._plan is not None else run_plain)

    monkeypatch.setattr(plans.PlanEngine, "make_runner", make)


@pytest.fixture(autouse=True)
def _repeat_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unroll the steps after the first run, so that later ones repeat them in one frame."""
    monkeypatch.setattr(unrolled, "_RUNS", 1)


def compare(folder: Path, *given: Any) -> int:
    """Compare both ways on some inputs, four times; return how many operators were joined."""
    joined, config = open_model(folder, joined=True)
    plain, _ = open_model(folder, joined=False)
    for _ in range(4):
        for a, b in zip(joined.run(list(given)), plain.run(list(given)), strict=True):
            assert (a.shape, a.dtype, a.flags.c_contiguous) == (b.shape, b.dtype, True)
            np.testing.assert_allclose(a, b, rtol=0, atol=CLOSE * np.abs(b).max())
    line = [line for line in config.summary().splitlines() if line.startswith("joined")]
    return int(line[0].split()[1]) if line else 0


class _Images:
    """Random networks of images: whatever chains begin with a convolution, and what ends them."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._fetched: list[Any] = []

    def build(self) -> tuple[list[str], list[Any]]:
        x = fluid.data("x", [None, 3, 13, 11])
        earlier: list[Any] = []
        for _ in range(self._rng.integers(3, 8)):
            x = self._append(x, earlier)
            earlier.append(x)
            if self._rng.random() < 0.15:
                self._fetched.append(x)  # what is fetched ends a chain
        return ["x"], [*self._fetched, L.fc(x, 5, act="softmax")]

    def _append(self, x: Any, earlier: list[Any]) -> Any:
        channels = x.shape[1]
        kind = self._rng.choice(["conv", "conv", "conv", "depthwise", "add", "pool", "act", "twice"])
        if kind == "add":
            same = [one for one in earlier if one.shape == x.shape and one is not x]
            return L.elementwise_add(same[0], x, act=self._choose_act()) if same else L.scale(x, 0.5, 0.25)
        if kind == "pool":
            return L.pool2d(x, 2, "max", 1)
        if kind == "act":
            return getattr(L, self._rng.choice(["relu", "relu6", "tanh", "sigmoid", "leaky_relu"]))(x)
        if kind == "twice":
            return L.elementwise_add(
                self._convolve(x, 8, 1, stride=1), self._convolve(x, 8, 1, stride=1), act="relu"
            )
        if kind == "depthwise":
            return self._convolve(x, channels, 3, groups=channels)
        size = int(self._rng.choice([1, 3, 3, 5]))
        return self._convolve(x, int(self._rng.choice([4, 16, 64])), size)

    def _convolve(self, x: Any, count: int, size: int, groups: int = 1, stride: int = 0) -> Any:
        stride = stride or (1 if min(x.shape[2:]) < 5 else int(self._rng.choice([1, 1, 2])))
        has_bias = self._rng.random() < 0.5
        y = L.conv2d(
            x, count, size, stride, (size - 1) // 2, groups=groups, bias_attr=None if has_bias else False
        )
        if self._rng.random() < 0.6:
            y = L.batch_norm(y, is_test=True)
        if self._rng.random() < 0.2:
            y = L.scale(y, 0.5, 0.125, bias_after_scale=bool(self._rng.random() < 0.5))
        if self._rng.random() < 0.3 and y.shape == x.shape:
            y = L.elementwise_add(x, y) if self._rng.random() < 0.5 else L.elementwise_add(y, x)
        act = self._choose_act()
        return y if act is None else getattr(L, act)(y)

    def _choose_act(self) -> str | None:
        act = self._rng.choice(["relu", "relu6", "tanh", "leaky_relu", "none"])
        return None if act == "none" else str(act)


@pytest.mark.usefixtures("_no_way_back")
@pytest.mark.parametrize("seed", range(24))
def test_joined_operators_compute_random_networks_of_images(seed: int, tmp_path: Path) -> None:
    save(tmp_path, _Images(seed).build, seed)
    for batch in (1, 3):
        x = np.random.default_rng(seed).uniform(-1, 1, (batch, 3, 13, 11)).astype("float32")
        assert compare(tmp_path, x) >= 2


def build_residual() -> tuple[list[str], list[Any]]:
    """Two convolutions whose sum is activated: one of them takes the sum."""
    x = fluid.data("x", [None, 8, 40, 40])
    first = L.batch_norm(L.conv2d(x, 64, 3, padding=1, bias_attr=False), is_test=True)
    second = L.batch_norm(L.conv2d(x, 64, 1, bias_attr=False), is_test=True)
    y = L.elementwise_add(first, second, act="relu")
    y = L.conv2d(y, 64, 3, padding=1)  # by Winograd's tiles, of which there are enough
    return ["x"], [L.reduce_mean(L.elementwise_add(y, y), dim=[2, 3])]


def build_products() -> tuple[list[str], list[Any]]:
    x = fluid.data("x", [None, 5, 6])
    y = L.fc(x, 7, num_flatten_dims=2, act="relu")
    z = L.scale(L.fc(y, 4, num_flatten_dims=1, bias_attr=False), -2.0, 0.5)
    w = L.create_parameter([3, 4], "float32")
    return ["x"], [L.tanh(L.fc(z, 2)), L.elementwise_add(L.matmul(z, w, transpose_y=True), L.fc(z, 3))]


@pytest.mark.usefixtures("_no_way_back")
@pytest.mark.parametrize(
    ("build", "shape", "joined"),
    [(build_residual, (2, 8, 40, 40), 8), (build_products, (4, 5, 6), 10)],
    ids=["residual", "products"],
)
def test_operators_after_a_matrix_product_are_joined_with_it(
    build: Build, shape: tuple[int, ...], joined: int, tmp_path: Path
) -> None:
    save(tmp_path, build)
    x = np.random.default_rng(1).uniform(-1, 1, shape).astype("float32")
    assert compare(tmp_path, x) == joined


def build_loop(cell: str, **settings: Any) -> Build:
    """Return what builds two layers over a sequence, the second one from its end on."""

    def build() -> tuple[list[str], list[Any]]:
        x = fluid.data("x", [None, 9, 6])
        y, _ = L.rnn(getattr(L, cell)(8, **settings), x)
        z, last = L.rnn(getattr(L, cell)(5, **settings), y, is_reverse=True, time_major=False)
        return ["x"], [z, *(last if isinstance(last, list) else [last])]

    return build


@pytest.mark.usefixtures("_no_way_back")
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    ("cell", "settings", "is_known"),
    [
        ("LSTMCell", {}, True),
        ("LSTMCell", {"forget_bias": 0.25}, True),
        ("GRUCell", {}, True),
        ("LSTMCell", {"activation": L.relu}, False),
        ("GRUCell", {"gate_activation": L.tanh}, False),
    ],
    ids=["LSTM", "LSTM that forgets more", "GRU", "LSTM with relu", "GRU with other gates"],
)
def test_loops_over_cells_are_joined_into_one_step(
    cell: str, settings: dict[str, Any], is_known: bool, batch: int, tmp_path: Path
) -> None:
    save(tmp_path, build_loop(cell, **settings))
    x = np.random.default_rng(batch).uniform(-2, 2, (batch, 9, 6)).astype("float32")
    assert compare(tmp_path, x) > 30 if is_known else compare(tmp_path, x) < 10


def build_sequences() -> tuple[list[str], list[Any]]:
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    return ["words"], [L.fc(L.embedding(words, [30, 4]), 3, act="tanh")]


@pytest.mark.usefixtures("_no_way_back")
def test_sequences_keep_their_lod(tmp_path: Path) -> None:
    save(tmp_path, build_sequences)
    given = inference.PaddleTensor(np.array([[3], [1], [2]], "int64"), "words", [[0, 1, 3]])
    a, b = (open_model(tmp_path, joined=one)[0].run([given])[0] for one in (True, False))
    assert a.lod == b.lod == [[0, 1, 3]]
    np.testing.assert_allclose(a.as_ndarray(), b.as_ndarray(), rtol=1e-6)


def test_parameters_of_the_scope_stay_as_they_are(tmp_path: Path) -> None:
    save(tmp_path, build_residual)
    joined, _ = open_model(tmp_path, joined=True)
    plain, _ = open_model(tmp_path, joined=False)
    joined.run([np.ones((1, 8, 40, 40), "float32")])
    for variable in plain.program().list_vars():
        if variable.persistable and variable.name not in ("feed", "fetch"):
            a, b = (one._parameters.find_var(variable.name).get_tensor() for one in (joined, plain))
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.usefixtures("_no_way_back")
def test_a_run_holds_only_the_values_that_are_still_read(tmp_path: Path) -> None:
    def build() -> tuple[list[str], list[Any]]:
        y = fluid.data("x", [None, 8, 64, 64])
        for _ in range(16):
            y = L.conv2d(y, 8, 1, act="relu")
        return ["x"], [L.reduce_mean(y, dim=[2, 3])]

    save(tmp_path, build)
    joined, _ = open_model(tmp_path, joined=True)
    x = np.ones((4, 8, 64, 64), "float32")
    joined.run([x])
    tracemalloc.start()
    try:
        joined.run([x])
        assert tracemalloc.get_traced_memory()[1] < 5 * x.nbytes
    finally:
        tracemalloc.stop()


def test_bad_input_raises_the_errors_of_the_executor(tmp_path: Path) -> None:
    save(tmp_path, build_sequences)
    joined, _ = open_model(tmp_path, joined=True)
    with pytest.raises(OperatorError, match="lookup_table"):
        joined.run([inference.PaddleTensor(np.array([[30]], "int64"), "words", [[0, 1]])])
    with pytest.raises(FeedError, match="dtype int64"):
        joined.run([np.array([[1.5]], "float32")])


def build_click_model() -> tuple[list[str], list[Any]]:
    ids, dense = fluid.data("ids", [None, 4, 1], "int64"), fluid.data("dense", [None, 3])
    x = L.concat([L.reshape(L.embedding(ids, [50, 2]), [-1, 8]), dense], 1)
    x = L.fc(L.fc(x, 6, act="relu"), 1)
    return ["ids", "dense"], [L.sigmoid(x + L.fc(dense, 1))]


def make_clicks(rows: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(rows)
    return rng.integers(0, 50, (rows, 4, 1)), rng.random((rows, 3), "float32")


def test_repeated_runs_take_other_rows_layouts_and_dtypes(tmp_path: Path) -> None:
    save(tmp_path, build_click_model)
    joined, plain = (open_model(tmp_path, joined=joined)[0] for joined in (True, False))
    ids, dense = make_clicks(4)
    feeds = [make_clicks(rows) for rows in (2, 2, 2, 2, 3, 3, 3, 1, 1, 1, 2, 2)]
    feeds += [
        (np.asfortranarray(ids), dense[:, ::-1]),
        (ids.astype(">i8"), dense.astype(">f4")),
        (ids, dense),
    ]
    for feed in feeds:
        (a,), (b,) = joined.run(list(feed)), plain.run(list(feed))
        np.testing.assert_allclose(a, b, rtol=0, atol=CLOSE)


def test_repeated_runs_of_handles_follow_their_arrays(tmp_path: Path) -> None:
    save(tmp_path, build_click_model)
    joined, plain = (open_model(tmp_path, joined=joined)[0] for joined in (True, False))
    seen = []
    for rows in (2, 2, 2, 2, 5, 5, 2):
        feed = [np.roll(array, len(seen), 0) for array in make_clicks(rows)]
        for name, array in zip(joined.get_input_names(), feed, strict=True):
            joined.get_input_handle(name).copy_from_cpu(array)
        joined.run()
        seen.append(joined.get_output_handle(joined.get_output_names()[0]).copy_to_cpu())
        np.testing.assert_allclose(seen[-1], plain.run(feed)[0], rtol=0, atol=CLOSE)
    np.testing.assert_array_equal(seen[1], seen[3])  # what was given away stays


def test_clones_with_other_numbers_of_rows_do_not_disturb_each_other(tmp_path: Path) -> None:
    save(tmp_path, lambda: (["x"], [L.fc(fluid.data("x", [None, 13]), 1)]))
    first, _ = open_model(tmp_path, joined=True)
    given = [np.random.default_rng(rows).random((rows, 13), "float32") for rows in (1, 3)]
    expected = [first.run([x])[0] for x in given]

    def work(which: int) -> bool:
        predictor = first.clone()
        found = [predictor.run([given[which]])[0] for _ in range(2000)]
        return all(one.shape == expected[which].shape for one in found) and all(
            np.allclose(one, expected[which], rtol=0, atol=CLOSE) for one in found[::50]
        )

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as pool:
            assert all(pool.map(work, (0, 1)))
    finally:
        sys.setswitchinterval(interval)


def test_bad_ids_of_a_repeated_run_raise_the_error_of_the_executor(tmp_path: Path) -> None:
    save(tmp_path, build_click_model)
    predictor, _ = open_model(tmp_path, joined=True)
    ids, dense = make_clicks(2)
    good = [predictor.run([ids, dense])[0] for _ in range(4)]
    with pytest.raises(OperatorError, match="Ids hold 50 "):
        predictor.run([np.where(ids == ids.max(), 50, ids), dense])
    with pytest.raises(FeedError):
        predictor.run([ids, dense[:, :2]])
    np.testing.assert_array_equal(predictor.run([ids, dense])[0], good[0])


@pytest.mark.usefixtures("_no_way_back")
def test_a_scale_by_one_copies_what_is_still_read_elsewhere(tmp_path: Path) -> None:
    def build() -> tuple[list[str], list[Any]]:
        x = fluid.data("x", [None, 6])
        y = L.sigmoid(L.fc(x, 6))
        return ["x"], [L.scale(x), L.scale(y), L.scale(y), L.scale(L.reshape(x, [-1, 3])), y]

    save(tmp_path, build)
    given = np.random.default_rng(1).random((2, 6), "float32")
    assert compare(tmp_path, given)
    predictor, _ = open_model(tmp_path, joined=True)
    for _ in range(4):
        found = predictor.run([given])
    assert not any(np.may_share_memory(a, b) for a in found for b in (given, *found) if a is not b)


def test_debugging_flags_make_operators_run_one_by_one(tmp_path: Path) -> None:
    save(tmp_path, build_products)
    joined, _ = open_model(tmp_path, joined=True)
    x = np.full((1, 5, 6), np.inf, "float32")
    joined.run([x])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLAGS_check_nan_inf", "1")
        with pytest.raises(OperatorError, match="FLAGS_check_nan_inf"):
            joined.run([x])


def test_a_program_that_writes_into_the_scope_is_not_joined(tmp_path: Path) -> None:
    def build() -> tuple[list[str], list[Any]]:
        x = fluid.data("x", [None, 4])
        count = L.create_global_var([1], 0.0, "float32", persistable=True)
        L.increment(count)
        return ["x"], [L.elementwise_add(L.fc(x, 3), count)]

    save(tmp_path, build)
    joined, config = open_model(tmp_path, joined=True)
    x = np.ones((1, 4), "float32")
    first, second = (joined.run([x])[0] for _ in range(2))
    np.testing.assert_allclose(second, first + 1, rtol=1e-6)
    assert "joined" not in config.summary()
