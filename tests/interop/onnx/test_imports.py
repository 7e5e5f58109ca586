"""Models of PyTorch's exporters, scikit-learn's converter and CNTK run with onnxruntime's outputs."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra onnx is not installed")

import onnx
from onnx import TensorProto, helper

import paddlelike as fluid
from paddlelike.errors import FormatError, MissingFileError, OperatorError, UnsupportedError
from tests.helpers.golden_data import GOLDEN, arrays
from tests.interop.onnx.runs import run_onnx
from tests.models.archive import find_names, read_archive, write_files

MODELS = read_archive("onnx_models")
#: float32 sums in another order than onnxruntime's.
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def read_io(name: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    with np.load(io.BytesIO(MODELS[name]["io.npz"])) as file:
        inputs, outputs = (sum(key.startswith(way) for key in file) for way in ("in", "out"))
        return [file[f"in{i}"] for i in range(inputs)], [file[f"out{i}"] for i in range(outputs)]


def run(source, feed):
    """Return the outputs of a model."""
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.import_onnx(source)
        given = dict(zip(feeds, feed, strict=True))
        return fluid.Executor().run(program, feed=given, fetch_list=fetches)


def compare(got, wanted) -> None:
    assert len(got) == len(wanted)
    for ours, theirs in zip(got, wanted, strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape or (1,), theirs.dtype)
        np.testing.assert_allclose(ours, theirs, **CLOSE)


def test_a_category_missing_from_the_encoder_raises_an_error() -> None:
    """As onnxruntime has it, where the encoder was not told to give zeros."""
    with pytest.raises(OperatorError, match=r"X holds 4, expected 0 \.\. 3"):
        run(MODELS["sklearn-one_hot"]["model.onnx"], [np.array([[1, 9, 2]])])


@pytest.mark.usefixtures("textbook")  # Fluid fetches what is empty as None
@pytest.mark.parametrize("name", MODELS)
def test_a_model_gives_the_outputs_of_onnxruntime(name: str) -> None:
    feed, wanted = read_io(name)
    got = run(MODELS[name]["model.onnx"], feed)
    compare(got, wanted)


ROWS = (
    "torch-script-resnet torch-dynamo-resnet torch-script-lstm2 torch-dynamo-gru2 torch-dynamo-rnn "
    "torch-script-transformer torch-dynamo-transformer torch-dynamo-embedder torch-script-causal"
)


@pytest.mark.parametrize("name", ROWS.split())
def test_an_imported_model_takes_a_batch_of_another_size(name: str) -> None:
    """Rows do not know of each other: the batch twice over gives each output twice over."""
    feed, wanted = read_io(name)
    got = run(MODELS[name]["model.onnx"], [np.concatenate([one, one]) for one in feed])
    for ours, theirs in zip(got, wanted, strict=True):
        axis = 0 if len(ours) == 2 * len(theirs) else 1  # last states (directions, N, hidden)
        np.testing.assert_allclose(ours, np.concatenate([theirs, theirs], axis), **CLOSE)


ROUNDS = [
    ("fit_a_line", "inference", None, None),
    ("mnist_conv_bn", "inference_combined", "model", "params"),
    ("word2vec_shared", "inference", None, None),
]


@pytest.mark.parametrize(("network", "form", "model", "params"), ROUNDS, ids=[row[0] for row in ROUNDS])
def test_our_exported_models_are_imported_again(network, form, model, params, tmp_path: Path) -> None:
    fluid.export_onnx(
        GOLDEN / network / form, tmp_path / "it.onnx", model_filename=model, params_filename=params
    )
    fed = arrays(network, "io", "infer_in/")
    wanted = list(arrays(network, "io", "infer_out/").values())
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.import_onnx(tmp_path / "it.onnx")
        got = fluid.Executor().run(program, feed={name: fed[name] for name in feeds}, fetch_list=fetches)
    compare(got, wanted[: len(got)])


@pytest.mark.parametrize("name", ["bert", "convnet"])
def test_exported_fluid_networks_are_imported_again(name: str, tmp_path: Path) -> None:
    files = read_archive("models185")[name]
    model = tmp_path / "model"
    model.mkdir()
    write_files(files, model)
    program, params = find_names(files)
    report = fluid.export_onnx(
        model, tmp_path / "it.onnx", model_filename=program, params_filename=params, external_data=True
    )
    with np.load(io.BytesIO(files["io.npz"])) as file:
        feed = [file[f"in{i}"] for i in range(len(report.inputs))]
        wanted = [file[f"out{i}"] for i in range(len(report.outputs))]
    got = run(tmp_path / "it.onnx", feed)
    for ours, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-5)  # of Fluid's own kernels


# What becomes of the parameters


def test_parameters_have_the_names_of_the_initializers_and_are_trained() -> None:
    feed, _ = read_io("torch-dynamo-mlp")
    with fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
        program, feeds, (out,) = fluid.import_onnx(MODELS["torch-dynamo-mlp"]["model.onnx"])
        assert {one.name for one in program.all_parameters()} == {"0.weight", "0.bias", "2.weight", "2.bias"}
        program.global_block().ops = [op for op in program.global_block().ops if op.type != "fetch"]
        startup = fluid.Program()
        with fluid.program_guard(program, startup):
            loss = fluid.layers.reduce_mean(fluid.layers.square(out))
            fluid.optimizer.SGD(0.1).minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        losses = [
            float(exe.run(program, feed={feeds[0]: feed[0]}, fetch_list=[loss])[0][0]) for _ in range(4)
        ]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


def test_exported_parameters_are_imported_under_their_names(tmp_path: Path) -> None:
    """Also those that another shape is made of before they are added; moving statistics are not trained."""
    fluid.export_onnx(
        GOLDEN / "mnist_conv_bn" / "inference_combined",
        tmp_path / "it.onnx",
        model_filename="model",
        params_filename="params",
    )
    program, _, _ = fluid.import_onnx(tmp_path / "it.onnx", scope=fluid.Scope())
    trained = {one.name for one in program.all_parameters() if one.trainable}
    with fluid.scope_guard(fluid.Scope()):
        before, _, _ = fluid.io.load_inference_model(
            str(GOLDEN / "mnist_conv_bn" / "inference_combined"), fluid.Executor(), "model", "params"
        )
    names = {one.name for one in before.list_vars() if one.persistable} - {"feed", "fetch"}
    assert trained < {one.name for one in program.all_parameters()} == names
    assert names - trained == {"batch_norm_0.w_1", "batch_norm_0.w_2"}


def test_the_program_can_be_saved_and_loaded(tmp_path: Path) -> None:
    feed, wanted = read_io("torch-script-convnet")
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor()
        program, feeds, fetches = fluid.import_onnx(MODELS["torch-script-convnet"]["model.onnx"])
        fluid.io.save_inference_model(str(tmp_path / "model"), feeds, fetches, exe, program)
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path / "model"), exe)
        got = exe.run(program, feed={feeds[0]: feed[0]}, fetch_list=fetches)
    compare(got, wanted)


def test_the_scope_that_is_given_receives_the_parameters() -> None:
    scope = fluid.Scope()
    fluid.import_onnx(MODELS["torch-dynamo-mlp"]["model.onnx"], scope=scope)
    assert np.asarray(scope.find_var("0.weight").get_tensor()).shape == (8, 4)
    assert fluid.global_scope().find_var("0.weight") is None


# Refusals


def make_model(nodes, inputs, outputs, initializers=(), opset=17) -> onnx.ModelProto:
    ports = [[helper.make_tensor_value_info(*port) for port in row] for row in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *ports, initializer=list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


X = ("x", TensorProto.FLOAT, ["n", 3])


def test_all_operators_that_cannot_be_expressed_are_listed() -> None:
    nodes = [
        helper.make_node("Multinomial", ["x"], ["u"]),
        helper.make_node("Det", ["x"], ["v"], domain="some.other"),
        helper.make_node("Multinomial", ["d"], ["y"]),
    ]
    model = make_model(nodes, [X, ("d", TensorProto.FLOAT, [1, 4, 1])], [("y", TensorProto.FLOAT, ["k"])])
    model.opset_import.append(helper.make_opsetid("some.other", 1))
    scope = fluid.Scope()
    with pytest.raises(UnsupportedError, match=r"Multinomial \(2\); some.other::Det") as caught:
        fluid.import_onnx(model.SerializeToString(), scope=scope)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (helper.make_tensor_type_proto(TensorProto.UINT16, [2]), "input 'x' is of UINT16, which variables"),
        (helper.make_tensor_type_proto(TensorProto.STRING, [2]), "input 'x' is of STRING, which variables"),
        (
            helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2])),
            "input 'x' is of optional_type, expected tensor_type",
        ),
    ],
)
def test_inputs_that_no_variable_can_hold_are_refused_with_their_type(kind, message: str) -> None:
    node = helper.make_node("Identity", ["x"], ["y"])
    ports = [helper.make_value_info(name, kind) for name in "xy"]
    model = helper.make_model(helper.make_graph([node], "g", ports[:1], ports[1:]))
    with pytest.raises(UnsupportedError, match=message):
        fluid.import_onnx(model.SerializeToString())


def test_attributes_that_cannot_be_expressed_are_listed_with_their_nodes() -> None:
    nodes = [
        helper.make_node("ArgMax", ["x"], ["a"], name="one", axis=0, select_last_index=1),
        helper.make_node("ArgMax", ["x"], ["b"], name="two", axis=0, select_last_index=1),
    ]
    outputs = [("a", TensorProto.INT64, [1, 3]), ("b", TensorProto.INT64, [1, 3])]
    with pytest.raises(UnsupportedError, match=r"ArgMax \(one\): .*; ArgMax \(two\): "):
        fluid.import_onnx(make_model(nodes, [X], outputs).SerializeToString())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("opset", [16, 22])
def test_grid_sample_of_every_mode_gives_the_values_of_onnxruntime(
    kind: str, padding: str, corners: int, opset: int, tmp_path: Path
) -> None:
    """As onnxruntime; many places are beyond the ends, and several images are in a batch."""
    rng = np.random.default_rng(3)
    feed = {"x": rng.standard_normal((2, 3, 5, 4)).astype("float32")}
    feed["grid"] = rng.uniform(-1.6, 1.6, (2, 6, 7, 2)).astype("float32")
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(kind, kind) if opset >= 20 else kind
    node = helper.make_node(
        "GridSample", ["x", "grid"], ["y"], mode=mode, padding_mode=padding, align_corners=corners
    )
    inputs = [("x", TensorProto.FLOAT, ["n", 3, 5, 4]), ("grid", TensorProto.FLOAT, ["n", 6, 7, 2])]
    model = make_model([node], inputs, [("y", TensorProto.FLOAT, ["n", 3, 6, 7])], opset=opset)
    onnx.save(model, tmp_path / "g.onnx")
    (want,) = run_onnx(tmp_path / "g.onnx", feed)
    with fluid.scope_guard(fluid.Scope()):
        program, _, fetches = fluid.import_onnx(tmp_path / "g.onnx")
        (got,) = fluid.Executor().run(program, feed=feed, fetch_list=fetches)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-5)  # float32 in another order


def test_unique_elements_keep_the_order_of_appearance() -> None:
    """A second formula, numpy's; the cases of the specification try the sorted ones."""
    x = np.random.default_rng(2).integers(0, 5, 20)
    node = helper.make_node("Unique", ["x"], ["y", "first", "back", "count"], sorted=0)
    outputs = [(name, TensorProto.INT64, ["k"]) for name in ("y", "first", "back", "count")]
    model = make_model([node], [("x", TensorProto.INT64, ["n"])], outputs)
    with fluid.scope_guard(fluid.Scope()):
        program, _, fetches = fluid.import_onnx(model.SerializeToString())
        y, first, back, count = fluid.Executor().run(program, feed={"x": x}, fetch_list=fetches)
    np.testing.assert_array_equal(y[back], x)
    np.testing.assert_array_equal(first, np.sort(np.unique(x, return_index=True)[1]))
    np.testing.assert_array_equal(y, x[first])
    np.testing.assert_array_equal(count, [np.sum(x == one) for one in y])


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"", "no graph"), (b"\x08", "is not an ONNX model"), (b"not a model at all", "is not an ONNX model")],
    ids=["empty", "cut", "text"],
)
def test_bytes_that_are_not_an_onnx_model_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        fluid.import_onnx(data)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="does not exist"):
        fluid.import_onnx(tmp_path / "none.onnx")


# External data


def make_external(location: str, offset: int = 0, length: int = 12) -> onnx.ModelProto:
    model = make_model(
        [helper.make_node("Add", ["x", "w"], ["y"])], [X], [("y", TensorProto.FLOAT, ["n", 3])]
    )
    tensor = model.graph.initializer.add(name="w", dims=[3], data_type=TensorProto.FLOAT)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": offset, "length": length}.items():
        tensor.external_data.add(key=key, value=str(value))
    return model


def test_external_data_is_read_from_the_directory_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"\0" * 8 + np.array([1, 2, 3], "<f4").tobytes())
    (tmp_path / "m.onnx").write_bytes(make_external("w.bin", 8).SerializeToString())
    got = run(tmp_path / "m.onnx", [np.zeros((1, 3), "float32")])
    assert got[0].tolist() == [[1, 2, 3]]


@pytest.mark.parametrize("location", ["../secret", "/etc/hostname", "", "a/../../secret", "link"])
def test_external_data_cannot_leave_the_directory(location: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"\0" * 64)
    home = tmp_path / "home"
    home.mkdir()
    (home / "link").symlink_to(tmp_path / "secret")
    (home / "m.onnx").write_bytes(make_external(location).SerializeToString())
    with pytest.raises(FormatError, match="outside of the model's directory"):
        fluid.import_onnx(home / "m.onnx")


@pytest.mark.parametrize(
    ("offset", "length"), [(60, 12), (0, 1 << 60), (-4, 12)], ids=["cut", "huge", "before"]
)
def test_the_size_of_external_data_is_checked_before_reading(
    offset: int, length: int, tmp_path: Path
) -> None:
    (tmp_path / "w.bin").write_bytes(b"\0" * 64)
    (tmp_path / "m.onnx").write_bytes(make_external("w.bin", offset, length).SerializeToString())
    with pytest.raises(FormatError):
        fluid.import_onnx(tmp_path / "m.onnx")


def test_missing_external_data_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(make_external("w.bin").SerializeToString())
    with pytest.raises(MissingFileError, match=r"w\.bin.* does not exist"):
        fluid.import_onnx(tmp_path / "m.onnx")


def test_a_tensor_with_fewer_elements_than_declared_is_refused() -> None:
    model = make_model(
        [helper.make_node("Add", ["x", "w"], ["y"])], [X], [("y", TensorProto.FLOAT, ["n", 3])]
    )
    model.graph.initializer.add(name="w", dims=[1 << 40, 3], data_type=TensorProto.FLOAT, raw_data=b"\0" * 12)
    with pytest.raises(FormatError):
        fluid.import_onnx(model.SerializeToString())


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize(
    ("shape", "error"),
    [
        ((1, 2, 4), None),
        ((1, 5, 4), OperatorError),
        ((1, 1, 4), OperatorError),
        ((1, 2, 3), FormatError),
        ((2, 2, 4), FormatError),
        ((2, 4), FormatError),
    ],
)
def test_an_initial_state_of_the_wrong_shape_is_refused(kind: str, shape, error) -> None:
    rng, gates = np.random.default_rng(0), {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    values = {"w": (1, gates * 4, 3), "r": (1, gates * 4, 4), "h": shape}
    held = [
        onnx.numpy_helper.from_array(rng.standard_normal(dims).astype("float32"), name)
        for name, dims in values.items()
    ]
    node = helper.make_node(kind, ["x", "w", "r", "", "", "h"], ["y"], hidden_size=4)
    ports = [(name, TensorProto.FLOAT, [None] * rank) for name, rank in (("x", 3), ("y", 4))]
    model = make_model([node], ports[:1], ports[1:], held)
    feed = [rng.standard_normal((6, 2, 3)).astype("float32")]
    if error is None:
        assert run(model.SerializeToString(), feed)[0].shape == (6, 1, 2, 4)
    else:
        with pytest.raises(error):
            run(model.SerializeToString(), feed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceLogSumExp", "CumSum", "Squeeze", "Unsqueeze"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_axes_given_as_a_fed_input_work(kind: str, axis: int) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="its outputs are compared with")
    shape = [1, 1, 1] if kind == "Squeeze" else [2, 3, 2]
    axes = helper.make_tensor_value_info("axes", TensorProto.INT64, [] if kind == "CumSum" else [1])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    rank = len(shape) + {"Squeeze": -1, "Unsqueeze": 1}.get(kind, 0)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * rank)
    graph = helper.make_graph([helper.make_node(kind, ["x", "axes"], ["y"])], "g", [x, axes], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    data = np.random.default_rng(0).random(shape, "float32")
    number = np.array(axis if kind == "CumSum" else [axis], "int64")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (want,) = session.run(None, {"x": data, "axes": number})
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, targets = fluid.import_onnx(model.SerializeToString())
        feed = dict(zip(feeds, (data, number.reshape(-1)), strict=True))
        (got,) = fluid.Executor().run(program, feed=feed, fetch_list=targets)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5)
