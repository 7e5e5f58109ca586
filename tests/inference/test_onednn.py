"""Convolutions and products of predictions by oneDNN, beside formulas and the operators of numpy."""

from __future__ import annotations

import itertools
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import inference
from paddlelike.inference import onednn, onednn_library
from paddlelike.ops.kernels.nn.image.windows import make_windows
from tests.inference.test_joined import build_residual, compare, open_model, save

#: Of the largest number: sums of float32 in another order.
CLOSE = 2e-6
WAITING = os.environ.get("OMP_WAIT_POLICY")
found = onednn_library.load()
needs_library = pytest.mark.skipif(isinstance(found, str), reason=str(found))


def refuse(*arrays: Any) -> Any:
    raise AssertionError("the library refused this shape")


def make_library() -> onednn_library.Library:
    library = onednn_library.load()
    assert isinstance(library, onednn_library.Library)
    library.set_threads(1)
    assert os.environ.get("OMP_WAIT_POLICY") == WAITING  # as it was before
    return library


def convolve(x: Any, w: Any, strides: Any, pads: Any, dilations: Any, groups: int) -> Any:
    """A convolution in float64, place by place of the window."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), *pads))
    extents = [d * (k - 1) + 1 for d, k in zip(dilations, w.shape[2:], strict=True)]
    height, width = (
        (n - extent) // s + 1 for n, extent, s in zip(x.shape[2:], extents, strides, strict=True)
    )
    out = np.zeros((len(x), len(w), height, width))
    share = len(w) // groups
    for i, j in itertools.product(*map(range, w.shape[2:])):
        top, left = i * dilations[0], j * dilations[1]
        seen = x[
            :, :, top : top + height * strides[0] : strides[0], left : left + width * strides[1] : strides[1]
        ]
        seen = seen[:, :, :height, :width]
        for g in range(groups):
            part, size = slice(g * share, (g + 1) * share), w.shape[1]
            out[:, part] += np.einsum(
                "nchw,oc->nohw", seen[:, g * size : (g + 1) * size], w[part, :, i, j].astype(np.float64)
            )
    return out


SHAPES: dict[str, Any] = {
    # x, filter, strides, pads, dilations, groups
    "square": ((1, 8, 14, 14), (16, 8, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    "one pixel": ((2, 16, 5, 7), (24, 16, 1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    "a picture": ((1, 3, 31, 29), (32, 3, 7, 7), (2, 2), ((3, 3), (3, 3)), (1, 1), 1),
    "batch of eight": ((8, 5, 9, 6), (7, 5, 3, 3), (2, 1), ((1, 1), (1, 1)), (1, 1), 1),
    "one wide": ((3, 6, 12, 1), (10, 6, 3, 1), (1, 1), ((1, 1), (0, 0)), (1, 1), 1),
    "one image of one pixel": ((1, 9, 1, 1), (4, 9, 1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    "uneven padding": ((2, 4, 8, 8), (8, 4, 3, 2), (2, 2), ((0, 1), (1, 0)), (1, 1), 1),
    "dilation": ((1, 6, 15, 17), (8, 6, 3, 3), (1, 2), ((2, 2), (3, 3)), (2, 3), 1),
    "padding as wide as the window": ((1, 4, 5, 5), (6, 4, 2, 2), (1, 1), ((2, 1), (1, 2)), (1, 1), 1),
    "groups": ((2, 12, 10, 10), (18, 4, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 3),
    "depthwise": ((2, 7, 11, 9), (7, 1, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 7),
    "depthwise, strides": ((1, 32, 12, 13), (32, 1, 5, 5), (2, 2), ((2, 2), (2, 2)), (1, 1), 32),
    "depthwise, two filters each": ((1, 6, 9, 9), (12, 1, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 6),
}


@pytest.mark.slow
@needs_library
@pytest.mark.parametrize("adds", [False, True], ids=["alone", "with a residual"])
@pytest.mark.parametrize("name", SHAPES)
def test_convolutions_of_odd_shapes_equal_a_direct_formula(name: str, adds: bool) -> None:
    shape, filters, strides, pads, dilations, groups = SHAPES[name]
    rng = np.random.default_rng(len(name))
    x, w, bias = (rng.uniform(-1, 1, one).astype("float32") for one in (shape, filters, filters[:1]))
    flat = [one for pair in pads for one in pair]

    def find_windows(spatial: Any) -> Any:
        return make_windows("conv2d", spatial, filters[2:], strides, flat, dilations)

    library = make_library()
    operation = onednn.Convolution(library, w, bias, find_windows, groups, None)
    kernel = onednn.Images(library, [onednn.Link(operation, 0, 2, 1 if adds else None)], {2})
    expected = convolve(x, w, strides, pads, dilations, groups) + bias[:, None, None]
    given = [x]
    if adds:
        given.append(rng.uniform(-1, 1, expected.shape).astype("float32"))
        expected = expected + given[1]
    for _ in range(2):
        outs = kernel(*given)
        assert outs is not None
        np.testing.assert_allclose(outs[0], expected, rtol=0, atol=CLOSE * np.abs(expected).max())


ACTIVATIONS: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "relu": ({}, lambda x: np.maximum(x, 0)),
    "relu6": ({"threshold": 6.0}, lambda x: np.clip(x, 0, 6)),
    "leaky_relu": ({"alpha": 0.125}, lambda x: np.where(x > 0, x, x / 8)),
    "sigmoid": ({}, lambda x: 1 / (1 + np.exp(-x))),
    "tanh": ({}, np.tanh),
    "swish": ({"beta": 1.5}, lambda x: x / (1 + np.exp(-1.5 * x))),
    "hard_swish": (
        {"threshold": 6.0, "scale": 6.0, "offset": 3.0},
        lambda x: x * np.clip(x + 3, 0, 6) / 6,
    ),
    "gelu": (
        {"approximate": True},
        lambda x: x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2,
    ),
}


@pytest.mark.slow
@needs_library
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("rows", [2, 5, 64])
def test_products_with_activations_equal_their_formulas(
    name: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onednn, "_SMALL", 0)  # numpy computes small ones
    keywords, formula = ACTIVATIONS[name]
    rng = np.random.default_rng(rows)
    x, w, bias = (rng.uniform(-2, 2, one).astype("float32") for one in ((rows, 3, 6), (18, 11), (11,)))
    activation = onednn_library.find_activation(name, keywords)
    assert activation is not None
    kernel = onednn.Product(make_library(), w, bias, 1, activation, refuse)
    expected = formula(x.reshape(rows, 18).astype(np.float64) @ w + bias)
    np.testing.assert_allclose(kernel(x), expected, rtol=0, atol=CLOSE * np.abs(expected).max())


POOLS: dict[str, dict[str, Any]] = {
    "maxima": {"pool_size": 3, "pool_stride": 2, "pool_padding": 1},
    "maxima, the last window cut": {"pool_size": [3, 2], "pool_stride": 2, "ceil_mode": True},
    "means": {"pool_type": "avg", "pool_size": 2, "pool_stride": [2, 1]},
    "means without the padding": {"pool_type": "avg", "pool_size": 3, "pool_padding": 1},
    "means with the padding": {"pool_type": "avg", "pool_size": 3, "pool_padding": 1, "exclusive": False},
    "means, the last window cut": {"pool_type": "avg", "pool_size": 4, "pool_stride": 3, "ceil_mode": True},
    "means, padded to the same size": {"pool_type": "avg", "pool_size": 2, "pool_padding": "SAME"},
    "one mean": {"pool_type": "avg", "global_pooling": True},
}


@pytest.mark.slow
@needs_library
@pytest.mark.parametrize("name", POOLS)
def test_pools_match_the_executor(name: str, tmp_path: Path) -> None:
    def build() -> tuple[list[str], list[Any]]:
        x = fluid.layers.conv2d(fluid.data("x", [None, 3, 11, 9]), 6, 3)
        return ["x"], [fluid.layers.pool2d(x, **POOLS[name])]

    save(tmp_path, build)
    x = np.random.default_rng(5).uniform(-1, 1, (2, 3, 11, 9)).astype("float32")
    assert compare(tmp_path, x) == 2


@pytest.mark.slow
@needs_library
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", ["input", "weights"])
def test_a_number_that_is_not_finite_is_not_turned_into_zero(
    place: str, value: float, tmp_path: Path
) -> None:
    def build() -> tuple[list[str], list[Any]]:
        x = fluid.data("x", [None, 3, 6, 6])
        attr = fluid.ParamAttr(initializer=fluid.initializer.Constant(value if place == "weights" else 0.1))
        image = fluid.layers.conv2d(x, 4, 3, act="relu")
        rows = fluid.layers.fc(image, 5, param_attr=attr, act="relu")
        image = fluid.layers.conv2d(x, 4, 3, param_attr=attr, act="relu")
        return ["x"], [rows, fluid.layers.pool2d(image, 2, "max", 2)]

    save(tmp_path, build)
    x = np.random.default_rng(5).uniform(0.5, 1, (2, 3, 6, 6)).astype("float32")
    x[0, 0, 0, 0] = value if place == "input" else 1
    (joined, _), (plain, _) = (open_model(tmp_path, joined=way) for way in (True, False))
    for got, want in zip(joined.run([x]), plain.run([x]), strict=True):
        assert not np.isfinite(want).all()
        np.testing.assert_allclose(got, want, 1e-5)


@pytest.mark.slow
@needs_library
def test_operators_that_the_library_cannot_run_are_left_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_windows(spatial: Any) -> Any:
        return make_windows("conv2d", spatial, (3, 3), (1, 1), (1, 1))

    monkeypatch.setattr(onednn, "_SMALL", 0)  # numpy computes small ones
    answers: list[tuple[Any, ...]] = []

    def plain(x: Any) -> Any:
        answers.append(x.shape)
        return x

    library, w = make_library(), np.ones((4, 2, 3, 3), "float32")
    operation = onednn.Convolution(library, w, None, find_windows, 1, None)
    kernel = onednn.Images(library, [onednn.Link(operation, 0, 1)], {1})
    for shape in ((0, 2, 5, 5), (1, 3, 5, 5), (2, 5, 5)):
        assert kernel(np.ones(shape, "float32")) is None
    assert kernel(np.ones((1, 2, 5, 5), "float64")) is None
    assert kernel(np.ones((1, 2, 5, 5), "float32")) is not None
    product = onednn.Product(make_library(), np.ones((3, 2), "float32"), None, 1, None, plain)
    for shape in ((1, 3), (4, 5), (0, 3)):
        product(np.ones(shape, "float32"))
    assert answers == [(1, 3), (4, 5), (0, 3)]


@pytest.mark.slow
@needs_library
@pytest.mark.parametrize(("width", "sets"), [(1, False), (64, True)])
def test_threads_are_set_only_where_the_library_may_compute(
    width: int, sets: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, lambda: (["x"], [fluid.layers.fc(fluid.data("x", [None, 13]), width)]))
    predictor, _ = open_model(tmp_path, joined=True)
    seen = []

    def set_threads(library: Any, count: int) -> int:
        seen.append(count)
        return count

    monkeypatch.setattr(onednn_library.Library, "set_threads", set_threads)
    predictor.run([np.ones((2, 13), "float32")])
    assert seen == ([1] if sets else [])


@pytest.mark.slow
@needs_library
def test_clones_that_run_at_the_same_time_give_the_same_bits(tmp_path: Path) -> None:
    save(tmp_path, build_residual)
    first, config = open_model(tmp_path, joined=True)
    assert "oneDNN 3." in config.summary()
    rng = np.random.default_rng(2)
    given = [rng.uniform(-1, 1, (batch, 8, 40, 40)).astype("float32") for batch in (1, 2, 3, 1)]
    expected = [first.run([x])[0] for x in given]
    results: list[list[Any]] = [[] for _ in given]

    def work(predictor: Any, x: Any, out: list[Any]) -> None:
        out += [predictor.run([x])[0] for _ in range(20)]

    threads = [
        threading.Thread(target=work, args=(first.clone(), x, out))
        for x, out in zip(given, results, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for want, got in zip(expected, results, strict=True):
        assert len(got) == 20
        for one in got:
            np.testing.assert_array_equal(one, want)


@pytest.mark.slow
@needs_library
def test_a_run_uses_the_configured_number_of_threads_and_restores_the_old_one(tmp_path: Path) -> None:
    save(tmp_path, build_residual)
    config = inference.Config(str(tmp_path / "model"), str(tmp_path / "params"))
    config.set_cpu_math_library_num_threads(2)
    predictor = inference.create_predictor(config)
    library, seen = make_library(), []
    run_plan = inference.plan.run_plan

    def look(*args: Any) -> Any:
        seen.append(library.set_threads(2))
        return run_plan(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inference.plan, "run_plan", look)
        predictor.run([np.ones((1, 8, 40, 40), "float32")])
    assert (seen, library.set_threads(1)) == ([2], 1)


@needs_library
@pytest.mark.parametrize(
    ("size", "row"),
    [
        (2, r"numpy \(oneDNN 3\.\S+ has none of these operators, or is slower\)"),
        (600, "oneDNN 3.* large products"),
    ],
)
def test_the_summary_tells_what_numpy_computes_beside_the_library(
    size: int, row: str, tmp_path: Path
) -> None:
    def build() -> tuple[list[str], list[Any]]:
        return ["x"], [fluid.layers.fc(fluid.data("x", [None, size]), size)]

    save(tmp_path, build)
    _, config = open_model(tmp_path, joined=True)
    assert re.search(rf"^kernels +{row}", config.summary(), re.MULTILINE)


def test_without_the_library_numpy_computes_and_the_summary_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, build_residual)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    onednn_library.load.cache_clear()
    try:
        _, config = open_model(tmp_path, joined=True)
        assert "kernels          numpy (onednn-cpu-gomp is not installed)" in config.summary()
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib" / "libdnnl.so.3").write_bytes(b"not a library")
        onednn_library.load.cache_clear()
        predictor, config = open_model(tmp_path, joined=True)
        assert "kernels          numpy (onednn-cpu-gomp does not load: " in config.summary()
        plain, _ = open_model(tmp_path, joined=False)
        x = np.ones((1, 8, 40, 40), "float32")
        np.testing.assert_allclose(predictor.run([x])[0], plain.run([x])[0], rtol=1e-5)
    finally:
        onednn_library.load.cache_clear()


@pytest.mark.slow
@needs_library
def test_the_flag_leaves_everything_to_numpy(tmp_path: Path) -> None:
    save(tmp_path, build_residual)
    fluid.set_flags({"FLAGS_use_fast_kernels": False})
    _, config = open_model(tmp_path, joined=True)
    assert "kernels          numpy (FLAGS_use_fast_kernels is False)" in config.summary()
