"""ONNX files as values: onnx and onnxruntime read ours, ours reads PyTorch's and scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.errors import FormatError
from paddlelike.formats import registry
from paddlelike.formats.base import SNIFF_BYTES
from paddlelike.formats.onnx import OnnxFile
from paddlelike.testing import FormatContract
from tests.models.archive import read_archive

MODELS = {name: files["model.onnx"] for name, files in read_archive("onnx_models").items()}


class TestOnnxFile(FormatContract):
    format = OnnxFile()
    golden_values = {"w": np.float32([[1, -2.5]])}
    golden_files = {
        "": (
            b"\x08\x08\x12\npaddlelike:2\x12\x06values*\x13\n\x02\x01\x02\x10\x01B\x01wJ\x08"
            b"\x00\x00\x80?\x00\x00 \xc0b\x13\n\x01w\x12\x0e\n\x0c\x08\x01\x12\x08\n\x02\x08\x01"
            b"\n\x02\x08\x02B\x04\n\x00\x10\x11"
        )
    }


def test_all_values_match_the_values_that_the_onnx_package_reads() -> None:
    onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
    for name, data in MODELS.items():
        assert registry.sniff_head(data[:SNIFF_BYTES], len(data)) == OnnxFile(), name
        model = onnx.load_model_from_string(data)
        real = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
        found = {key: value.array for key, value in OnnxFile().read_all(data).items()}
        assert found.keys() == real.keys()
        for key, array in real.items():
            assert (found[key].dtype, found[key].shape) == (array.dtype, array.shape)
            np.testing.assert_array_equal(found[key], array)


@pytest.mark.parametrize(
    ("dtype", "field"),
    [("float32", "float_data"), ("float64", "double_data"), ("int64", "int64_data"), ("int32", "int32_data"),
     ("uint8", "int32_data"), ("bool", "int32_data"), ("int8", "int32_data"), ("float16", "int32_data")],
)  # fmt: skip
def test_onnx_tensors_in_typed_fields_are_read(dtype: str, field: str) -> None:
    onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
    values = np.array([[1, 0, 3], [0, -2 if dtype[0] in "fi" else 2, 1]]).astype(dtype)
    tensor = onnx.TensorProto(name="w", dims=values.shape)
    tensor.data_type = onnx.helper.np_dtype_to_tensor_dtype(values.dtype)
    plain = values.view(np.uint16) if dtype == "float16" else values
    getattr(tensor, field).extend(int(one) if dtype[0] != "f" else one for one in plain.reshape(-1).tolist())
    graph = onnx.helper.make_graph([], "g", [], [], [tensor])
    data = onnx.helper.make_model(graph).SerializeToString()
    found = OnnxFile().read_all(data)["w"].array
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)


@pytest.mark.slow
def test_written_files_pass_the_checker_of_onnx_and_hold_the_values() -> None:
    onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is in the extra 'test-all'")
    values = {"w": np.float32([[1, 2]]), "n": np.array([3], np.int64), "s": np.array(2.5)}
    data = b"".join(OnnxFile().write(values))
    onnx.checker.check_model(data, full_check=True)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for (name, array), got in zip(values.items(), session.run(None, {}), strict=True):
        np.testing.assert_array_equal(got, array, err_msg=name)


def test_external_data_of_onnx_is_listed_and_not_read() -> None:
    onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
    tensor = onnx.TensorProto(name="w", dims=[2], data_type=1, data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="../secret")
    data = onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [], [tensor])).SerializeToString()
    (entry,) = OnnxFile().entries(data)
    assert (entry.name, entry.shape) == ("w", (2,))
    with pytest.raises(FormatError, match="in another file") as caught:
        OnnxFile().read(data, entry)
    assert "import_onnx" in str(caught.value.hint)
