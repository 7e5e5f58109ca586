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
            draw(3, 2, 3, 3, dtype="int8"),
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
}  # fmt: skip


def make_model(
    kind: str, inputs: list[Any], count: int, attrs: dict[str, Any], opset: int
) -> onnx.ModelProto:
    names = ["" if one is None else f"x{i}" for i, one in enumerate(inputs)]
    ports = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
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
    onnx.save(make_model(kind, inputs, count, attrs, opset), file)
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


def test_random_numbers_of_a_size_that_is_computed() -> None:
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
