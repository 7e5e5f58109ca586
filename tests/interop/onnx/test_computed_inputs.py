"""Sizes, axes, pads and weights that a model of ONNX is fed: computed at run time, or given beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra onnx is not installed")

from onnx import helper

import paddlelike as fluid
from paddlelike.errors import UnsupportedError

Arrays = dict[str, np.ndarray[Any, Any]]
X = np.random.default_rng(0).standard_normal((2, 3, 5, 4)).astype("float32")


def run(kind: str, names: str, feed: Arrays, given: Arrays | None = None, *, ranks: Any = (4,), **attrs: Any):
    """Import a node, with the values ``given`` beforehand, and feed the others; "-" is left out."""
    ports = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in feed.items()
    ]
    outs = [f"y{i}" for i in range(len(ranks))]
    node = helper.make_node(kind, [name.strip("-") for name in names.split()], outs, **attrs)
    outputs = [helper.make_tensor_value_info(out, 1, [None] * n) for out, n in zip(outs, ranks, strict=True)]
    graph = helper.make_graph([node], "one", ports, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.import_onnx(model.SerializeToString(), values=given)
        assert set(feeds) == feed.keys() - set(given or {})
        return fluid.Executor().run(program, feed={k: feed[k] for k in feeds}, fetch_list=fetches)


def whole(*numbers: int) -> np.ndarray[Any, Any]:
    return np.array(numbers, np.int64)


@pytest.mark.parametrize("seed", range(8))
def test_a_slice_of_any_axes_and_steps_matches_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    axes = rng.permutation(4)[: seed % 4 + 1]
    steps = rng.choice([-2, -1, 1, 2], len(axes))
    starts, ends = rng.integers(-7, 8, (2, len(axes)))
    cuts = [slice(None)] * 4
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        cuts[axis] = slice(start, end, step)
    signed = np.where(rng.random(len(axes)) < 0.5, axes, axes - 4)
    feed = {"x": X, "starts": starts, "ends": ends, "axes": signed, "steps": steps}
    (found,) = run("Slice", "x starts ends axes steps", feed)
    wanted = X[tuple(cuts)]
    assert found is None if not wanted.size else (found == wanted).all()  # None: Fluid's for no elements


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_computed_pads_match_numpy(mode: str) -> None:
    pads = [(0, 1), (2, 0), (3, 4), (1, 2)]
    flat = whole(*(low for low, _ in pads), *(high for _, high in pads))
    feed, names, options = {"x": X, "pads": flat}, "x pads", {}
    if mode == "constant":
        feed, names, options = {**feed, "v": np.float32(np.inf)}, "x pads v", {"constant_values": np.inf}
    (found,) = run("Pad", names, feed, mode=mode)
    np.testing.assert_array_equal(found, np.pad(X, pads, mode, **options))


def test_negative_computed_pads_of_some_axes_crop_the_tensor() -> None:
    pads, axes = whole(1, -2, 2, -1), whole(-1, 2)
    (found,) = run("Pad", "x pads - axes", {"x": X, "pads": pads, "axes": axes})
    np.testing.assert_array_equal(found, np.pad(X[:, :, 2:-1], [(0, 0)] * 3 + [(1, 2)]))


RULES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric")


#: Every rule in every mode, and each of both with sizes and with scales that are fed.
RESIZES = [
    (rule, mode, ("sizes", "scales")[(i + j) % 2])
    for i, rule in enumerate([*RULES, "tf_crop_and_resize"])
    for j, mode in enumerate(["nearest", "linear", "cubic"])
]


@pytest.mark.parametrize(("rule", "mode", "fed"), RESIZES)
def test_a_resize_by_computed_numbers_equals_one_by_known_numbers(rule: str, mode: str, fed: str) -> None:
    """Known ones are a product with a matrix, computed ones a sum of the elements near each place."""
    options: dict[str, Any] = {"coordinate_transformation_mode": rule, "mode": mode}
    if mode == "cubic":
        options["exclude_outside"] = int(rule == "asymmetric")
    sizes = {"scales": np.float32([1, 1, 1.7, 0.6]), "sizes": whole(2, 3, 8, 3)}
    given, names = {fed: sizes[fed]}, f"x - {'- ' * (fed == 'sizes')}{fed}"
    if rule == "tf_crop_and_resize":
        given["roi"] = np.float32([0, 0, 0.2, 0.1, 1, 1, 0.9, 1.2])
        names = names.replace("-", "roi", 1)
    feed = {"x": X, **given}
    (found,), (wanted,) = (run("Resize", names, feed, one, **options) for one in (None, given))
    assert found.shape == wanted.shape
    assert found.shape[2:] in ((8, 3), (8, 2), (6, 2), (5, 2))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("options", [{}, {"clip": 0.5}, {"linear_before_reset": 1}], ids=str)
def test_fed_weights_of_a_recurrent_layer_compute_what_parameters_do(
    kind: str, gates: int, options: dict[str, Any]
) -> None:
    if "linear_before_reset" in options and kind != "GRU":
        options = {}
    rng = np.random.default_rng(gates)
    shapes = {"x": (5, 2, 3), "w": (2, gates * 4, 3), "r": (2, gates * 4, 4), "b": (2, gates * 8)}
    feed = {name: rng.standard_normal(shape).astype("float32") for name, shape in shapes.items()}
    weights = {name: feed[name] for name in ("w", "r", "b")}
    attrs = {"hidden_size": 4, "direction": "bidirectional", **options}
    ranks = (4, 3, 3) if kind == "LSTM" else (4, 3)
    outs = (run(kind, "x w r b", feed, given, ranks=ranks, **attrs) for given in (None, weights))
    for found, wanted in zip(*outs, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_size_needed_before_the_run_is_named_with_a_workaround() -> None:
    names, feed = "x - - sizes", {"x": X, "sizes": whole(2, 3, 2, 2)}
    with pytest.raises(UnsupportedError, match=r"has antialias.*\n.*values=\{'sizes': \.\.\.\}"):
        run("Resize", names, feed, mode="linear", antialias=1)
    (found,) = run("Resize", names, feed, {"sizes": feed["sizes"]}, mode="linear", antialias=1)
    assert found.shape == (2, 3, 2, 2)


def test_a_value_for_a_name_that_is_not_an_input_lists_the_inputs() -> None:
    with pytest.raises(ValueError, match=r"values names 'size', .* \['x', 'sizes'\]; did you mean 'sizes'"):
        run("Resize", "x - - sizes", {"x": X, "sizes": whole(2, 3, 2, 2)}, {"size": whole(1)})
