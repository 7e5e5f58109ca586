"""Operators of ONNX with attributes that its own cases leave out give onnxruntime's outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra onnx is not installed")
pytest.importorskip("onnxruntime", reason="its outputs are compared with")

import onnx
from onnx import helper, numpy_helper

import paddlelike as fluid
from paddlelike.errors import UnsupportedError
from tests.interop.onnx.runs import run_onnx

pytestmark = pytest.mark.slow

RANDOM = np.random.default_rng(5)


def draw(*shape: int, dtype: str = "float32") -> np.ndarray:
    if np.dtype(dtype).kind != "f":
        return RANDOM.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype)
    return RANDOM.normal(size=shape).astype(dtype)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def number(value: int) -> np.ndarray:
    return np.array(value, np.int64)


CROP = {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": "linear", "extrapolation_value": 2.0}
#: Operator, inputs, which of them are fed (the others are initializers), attributes, version.
CASES: dict[str, tuple[str, list[Any], int, dict[str, Any], int]] = {
    "dft-padded": ("DFT", [draw(2, 5, 3, 1), number(8), number(1)], 1, {}, 20),
    "dft-cut": ("DFT", [draw(2, 5, 3, 2), number(4), number(-2)], 1, {}, 20),
    "dft-one-sided-padded": ("DFT", [draw(2, 5, 1), number(7), number(1)], 1, {"onesided": 1}, 20),
    "dft-double": ("DFT", [draw(2, 6, 2, dtype="float64"), None, number(1)], 1, {"inverse": 1}, 20),
    "stft-window": ("STFT", [draw(2, 30, 1), number(5), draw(8), number(8)], 1, {"onesided": 0}, 17),
    "stft-double": ("STFT", [draw(2, 30, 1, dtype="float64"), number(4), None, number(6)], 1, {}, 17),
    "conv-transpose-same-lower": (
        "ConvTranspose",
        [draw(1, 2, 4, 5), draw(2, 3, 3, 2)],
        1,
        {"auto_pad": "SAME_LOWER", "strides": [2, 3]},
        18,
    ),
    "conv-transpose-signal": (
        "ConvTranspose",
        [draw(1, 2, 4), draw(2, 3, 4), draw(3)],
        1,
        {"output_shape": [7], "strides": [2]},
        18,
    ),
    "conv-integer": (
        "ConvInteger",
        [draw(1, 2, 6, 6, dtype="uint8"), draw(4, 1, 3, 3, dtype="int8"), np.uint8(7), np.int8(-3)],
        1,
        {"group": 2, "strides": [2, 2]},
        10,
    ),
    "qlinear-conv": (
        "QLinearConv",
        [
            draw(2, 2, 5, 5, dtype="uint8"),
            np.float32(0.02),
            np.uint8(120),
            draw(3, 2, 3, 3, dtype="int8") // 2,  # on AVX2 onnxruntime adds pairs of products in int16
            np.array([0.01, 0.02, 0.03], np.float32),
            np.zeros(3, np.int8),
            np.float32(0.25),
            np.uint8(128),
            RANDOM.integers(-5000, 5000, 3).astype(np.int32),
        ],
        1,
        {"pads": [1, 1, 1, 1]},
        10,
    ),
    "scatter-nd-from-the-end": ("ScatterND", [draw(4, 3), ints(-1, 0, -2)[:, None], draw(3, 3)], 3, {}, 16),
    "scatter-nd-least": (
        "ScatterND",
        [draw(4, 3), ints(-1, 0, 1)[:, None], draw(3, 3)],
        3,
        {"reduction": "min"},
        18,
    ),
    "gather-nd-from-the-end": ("GatherND", [draw(4, 3), ints(-1, -3, 0, 2).reshape(2, 2)], 2, {}, 13),
    "gather-nd-of-rows": ("GatherND", [draw(2, 4, 3), ints(-1, 3).reshape(2, 1)], 2, {"batch_dims": 1}, 13),
    "mod-of-reals": ("Mod", [draw(9) * 9, draw(9)], 2, {"fmod": 1}, 13),
    "crop": (
        "Resize",
        [draw(1, 2, 6, 5), np.array([0, 0, 0.2, 0.1, 1, 1, 0.7, 1.3], np.float32), None, ints(1, 2, 4, 4)],
        1,
        CROP,
        18,
    ),
    "not-larger": (
        "Resize",
        [draw(1, 2, 6, 4), None, None, ints(9, 7)],
        1,
        {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger", "mode": "linear"},
        18,
    ),
    "by-seven-twelfths": (
        "Resize",
        [draw(1, 2, 12, 10), None, np.array([1, 1, 7 / 12, 0.7], np.float32)],
        1,
        {"mode": "linear"},
        18,
    ),
    "nearest-of-tensorflow": (
        "Resize",
        [draw(1, 2, 12, 10), None, None, ints(1, 2, 7, 16)],
        1,
        {
            "coordinate_transformation_mode": "tf_half_pixel_for_nn",
            "mode": "nearest",
            "nearest_mode": "floor",
        },
        13,
    ),
    "pad-reflect-matrix": ("Pad", [draw(3, 5), ints(2, 1, 0, 3)], 1, {"mode": "reflect"}, 13),
    "pad-edge": ("Pad", [draw(1, 2, 3, 4, 2), ints(0, 0, 1, 0, 2, 0, 1, 2, 0, 1)], 1, {"mode": "edge"}, 13),
    "pad-reflect-any-size": ("Pad", [draw(3, 5), ints(2, 1, 0, 3)], 1, {"mode": "reflect"}, 13),
    "blocks-of-any-size": ("DepthToSpace", [draw(2, 8, 3, 4)], 1, {"blocksize": 2}, 13),
    "blocks-crd-of-any-size": ("DepthToSpace", [draw(2, 8, 3, 4)], 1, {"blocksize": 2, "mode": "CRD"}, 13),
    "depth-of-any-size": ("SpaceToDepth", [draw(2, 3, 4, 6)], 1, {"blocksize": 2}, 13),
    "depth": ("SpaceToDepth", [draw(2, 3, 4, 6)], 1, {"blocksize": 2}, 13),
    "scatter-any-size": ("ScatterElements", [draw(4, 3), ints(-1, 0, -2)[None], draw(1, 3)], 1, {}, 16),
}  # fmt: skip


def make_model(
    kind: str,
    inputs: list[Any],
    count: int,
    attrs: dict[str, Any],
    opset: int,
    dims: list[int | None] | None = None,
) -> onnx.ModelProto:
    names = ["" if one is None else f"x{i}" for i, one in enumerate(inputs)]
    ports = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), dims or one.shape)
        for name, one in zip(names[:count], inputs[:count], strict=True)
    ]
    held = [
        numpy_helper.from_array(np.asarray(one), name)
        for name, one in zip(names[count:], inputs[count:], strict=True)
        if one is not None
    ]
    nodes = [helper.make_node(kind, names, ["y"], **attrs)]
    graph = helper.make_graph(nodes, "g", ports, [onnx.ValueInfoProto(name="y")], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    found = onnx.shape_inference.infer_shapes(model)
    assert found.graph.output[0].type.tensor_type.elem_type
    return found


@pytest.mark.parametrize("name", CASES)
def test_an_operator_gives_the_outputs_of_onnxruntime(name: str, tmp_path: Path) -> None:
    kind, inputs, count, attrs, opset = CASES[name]
    file = tmp_path / "x.onnx"
    dims = (
        [n if axis == 1 else None for axis, n in enumerate(inputs[0].shape)] if "any-size" in name else None
    )
    onnx.save(make_model(kind, inputs, count, attrs, opset, dims), file)
    feed = {f"x{i}": one for i, one in enumerate(inputs[:count])}
    (wanted,) = run_onnx(file, feed)
    with fluid.scope_guard(fluid.Scope()):
        program, _, fetches = fluid.import_onnx(file)
        (got,) = fluid.Executor().run(program, feed=feed, fetch_list=fetches)
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    if got.dtype.kind in "iu":  # a product that is half a step may round to either side
        assert np.abs(got.astype(int) - wanted.astype(int)).max() <= (name == "qlinear-conv")
    else:
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)  # float32 in another order


def test_an_image_of_a_size_that_no_memory_holds_is_refused() -> None:
    model = make_model(
        "Resize", [draw(1, 2, 4, 4), None, None, ints(1, 2, 4, 10**12)], 1, {"mode": "linear"}, 13
    )
    with pytest.raises(UnsupportedError, match="1000000000000 of 4"):
        fluid.import_onnx(model.SerializeToString())


def test_random_numbers_of_a_computed_size_are_imported() -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Cast", ["places"], ["real"], to=1),
        helper.make_node("RandomNormalLike", ["real"], ["y"]),
    ]
    ports = [[helper.make_tensor_value_info(*port)] for port in (("x", 1, [6]), ("y", 1, [1, "n"]))]
    graph = helper.make_graph(nodes, "g", *ports)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    program, _, fetches = fluid.import_onnx(model.SerializeToString())
    x = np.array([0, 1, 2, 0, 3, 4], np.float32)
    (got,) = fluid.Executor().run(program, feed={"x": x}, fetch_list=fetches)
    assert got.shape == (1, 4)
    assert len(set(got.ravel())) == 4


ACTIVATIONS = {"Sigmoid": 0, "Tanh": 0, "Relu": 0, "Softsign": 0, "Softplus": 0, "LeakyRelu": 1, "Elu": 1,
               "ThresholdedRelu": 1, "HardSigmoid": 2, "ScaledTanh": 2, "Affine": 2}  # fmt: skip


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("seed", range(6))
def test_recurrent_layers_of_every_kind_are_imported(kind: str, seed: int, tmp_path: Path) -> None:
    """Any activations, with their parameters or without; limits, coupled gates, peepholes, lengths."""
    rng, hidden = np.random.default_rng(seed), 3
    gates, count = {"LSTM": (4, 3), "GRU": (3, 2), "RNN": (1, 1)}[kind]
    ways = 1 + seed % 2
    names = rng.choice(list(ACTIVATIONS), count * ways).tolist()
    attrs: dict[str, Any] = {"hidden_size": hidden, "activations": names}
    attrs["direction"] = "bidirectional" if ways == 2 else "reverse"
    for at, key in ((1, "activation_alpha"), (2, "activation_beta")):
        size = sum(ACTIVATIONS[name] >= at for name in names)
        attrs |= {key: rng.uniform(0.1, 0.9, size).tolist()} if size else {}
    attrs |= {"clip": 0.4} if seed > 3 else {}
    attrs |= {"GRU": {"linear_before_reset": seed % 2}, "LSTM": {"input_forget": seed % 2}}.get(kind, {})
    f = lambda *dims: (rng.normal(size=dims) * 0.5).astype("float32")
    lengths = np.array([5, 2, 4], np.int32) if seed % 3 else None
    inputs = [
        f(5, 3, 4),
        f(ways, gates * hidden, 4),
        f(ways, gates * hidden, hidden),
        f(ways, 2 * gates * hidden),
    ]
    inputs += [lengths, f(ways, 3, hidden)] + (
        [f(ways, 3, hidden), f(ways, 3 * hidden)] if kind == "LSTM" else []
    )
    model = make_model(kind, inputs, 1, attrs, 14)
    file = tmp_path / "x.onnx"
    onnx.save(model, file)
    (wanted,) = run_onnx(file, {"x0": inputs[0]})
    with fluid.scope_guard(fluid.Scope()):
        program, _, fetches = fluid.import_onnx(file)
        (got,) = fluid.Executor().run(program, feed={"x0": inputs[0]}, fetch_list=fetches)
    # float32 in another order, of activations without limits
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5 * max(1, np.abs(wanted).max()))


def test_trees_with_missing_values_and_mixed_comparisons_are_imported(tmp_path: Path) -> None:
    """As LightGBM's are: a category is compared by ``==``, and a missing value goes its own way."""
    modes = ["BRANCH_LEQ", "BRANCH_EQ", "BRANCH_NEQ", "LEAF", "LEAF", "LEAF", "LEAF"]
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x0"], ["y"], domain="ai.onnx.ml", n_targets=1,
        nodes_treeids=[0] * 7, nodes_nodeids=list(range(7)), nodes_featureids=[0, 1, 1, 0, 0, 0, 0],
        nodes_modes=modes, nodes_values=[0.5, 2.0, 3.0, 0, 0, 0, 0],
        nodes_truenodeids=[1, 3, 5, 0, 0, 0, 0], nodes_falsenodeids=[2, 4, 6, 0, 0, 0, 0],
        nodes_missing_value_tracks_true=[1, 0, 1, 0, 0, 0, 0],
        target_treeids=[0] * 4, target_nodeids=[3, 4, 5, 6], target_ids=[0] * 4,
        target_weights=[1.0, 2, 3, 4],
    )  # fmt: skip
    ports = [[helper.make_tensor_value_info(*port)] for port in (("x0", 1, [None, 2]), ("y", 1, [None, 1]))]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(helper.make_graph([node], "g", *ports), opset_imports=opsets, ir_version=10)
    onnx.save(model, tmp_path / "x.onnx")
    nan = np.nan
    x = np.array([[0, 2], [0, 1], [1, 3], [1, 1], [nan, 2], [nan, nan], [1, nan], [0, nan]], np.float32)
    (wanted,) = run_onnx(tmp_path / "x.onnx", {"x0": x})
    program, _, fetches = fluid.import_onnx(tmp_path / "x.onnx")
    (got,) = fluid.Executor().run(program, feed={"x0": x}, fetch_list=fetches)
    assert got.ravel().tolist() == wanted.ravel().tolist()
    assert set(wanted.ravel()) == {1, 2, 3, 4}


def make_list_model(nodes: list[onnx.NodeProto], outputs: list[str], **held: int | list[int]) -> bytes:
    """Return a model of ``x`` (3, any size) whose outputs are tensors made of lists."""
    ports = [
        [helper.make_tensor_value_info(name, 1, dims) for name, dims in group]
        for group in ([("x", [3, "k"])], [(name, ["a", "b"]) for name in outputs])
    ]
    numbers = [numpy_helper.from_array(np.array(one, np.int64), name) for name, one in held.items()]
    graph = helper.make_graph(nodes, "g", *ports, numbers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    return model.SerializeToString()


def make_growing_loop() -> onnx.GraphProto:
    """Return a loop's body that appends twice the last tensor to a list."""
    number, truth = helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("more", 9, [])
    lists = [helper.make_tensor_sequence_value_info(name, 1, None) for name in ("list", "longer")]
    tensors = [helper.make_tensor_value_info(name, 1, [3, "k"]) for name in ("v", "twice")]
    going = helper.make_tensor_value_info("going", 9, [])
    nodes = [
        helper.make_node("Identity", ["more"], ["going"]),
        helper.make_node("SequenceInsert", ["list", "v"], ["longer"]),
        helper.make_node("Add", ["v", "v"], ["twice"]),
    ]
    inputs, outputs = [number, truth, lists[0], tensors[0]], [going, lists[1], tensors[1]]
    return helper.make_graph(nodes, "body", inputs, outputs)


LISTS: dict[str, tuple[list[onnx.NodeProto], list[str], dict[str, Any]]] = {
    "joined": (
        [
            helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
            helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=1),
        ],
        ["y"],
        {},
    ),
    "last-part": (
        [
            helper.make_node("SplitToSequence", ["x", "sizes"], ["s"], axis=0),
            helper.make_node("SequenceAt", ["s", "at"], ["y"]),
        ],
        ["y"],
        {"sizes": [1, 2], "at": -1},
    ),
    "the-shorter-list-stays": (
        [
            helper.make_node("SequenceConstruct", ["x"], ["s"]),
            helper.make_node("SequenceInsert", ["s", "x"], ["u"]),
            helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0),
            helper.make_node("ConcatFromSequence", ["u"], ["z"], axis=0),
        ],
        ["y", "z"],
        {},
    ),
    "grown-in-a-loop": (
        [
            helper.make_node("SequenceEmpty", [], ["s"]),
            helper.make_node("Loop", ["turns", "", "s", "x"], ["grown", "end"], body=make_growing_loop()),
            helper.make_node("ConcatFromSequence", ["grown"], ["y"], axis=0),
        ],
        ["y", "end"],
        {"turns": 4},
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_operators_on_lists_of_tensors_are_imported(name: str, tmp_path: Path) -> None:
    """As PyTorch exports EmbeddingBag and splits by numbers that are computed."""
    nodes, outputs, held = LISTS[name]
    data, x = make_list_model(nodes, outputs, **held), draw(3, 4)
    (tmp_path / "x.onnx").write_bytes(data)
    wanted = run_onnx(tmp_path / "x.onnx", {"x": x})
    program, _, fetches = fluid.import_onnx(data)
    for ours, real in zip(
        fluid.Executor().run(program, feed={"x": x}, fetch_list=fetches), wanted, strict=True
    ):
        np.testing.assert_array_equal(ours, real)


def test_a_tensor_inserted_in_the_middle_of_a_list_is_refused() -> None:
    nodes = [
        helper.make_node("SequenceConstruct", ["x"], ["s"]),
        helper.make_node("SequenceInsert", ["s", "x", "at"], ["u"]),
        helper.make_node("SequenceAt", ["u", "at"], ["y"]),
    ]
    with pytest.raises(UnsupportedError, match="in the middle of a list"):
        fluid.import_onnx(make_list_model(nodes, ["y"], at=0))
