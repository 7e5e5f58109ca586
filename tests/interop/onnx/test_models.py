"""Models of real Paddle, exported, give Paddle's own outputs in onnxruntime."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is in the extra 'test-all'")

import onnx

import paddlelike as fluid
from paddlelike.errors import NotInitializedError, UnsupportedError
from paddlelike.framework.opdef import registry
from paddlelike.interop.onnx.exporter.graph import load_table
from tests.helpers.golden_data import GOLDEN, arrays
from tests.interop.onnx.runs import run_onnx
from tests.models.archive import collect_types, find_names, read_archive, write_files

pytestmark = pytest.mark.slow

#: float32 sums in another order than the real system's; log and exp of another library.
CLOSE = {"rtol": 2e-5, "atol": 1e-5}


def compare(file: Path, feed, wanted, feeds) -> None:
    got = run_onnx(file, dict(zip(feeds, feed, strict=True)))
    assert len(got) == len(wanted)
    for ours, real in zip(got, wanted, strict=True):
        assert (ours.shape, ours.dtype) == (real.shape, real.dtype)
        np.testing.assert_allclose(ours, real, **CLOSE)


def check(archive: str, name: str, folder: Path, **options) -> fluid.OnnxReport:
    files = read_archive(archive)[name]
    model = folder / "model"
    model.mkdir()
    write_files(files, model)
    program, params = find_names(files)
    report = fluid.export_onnx(
        model, folder / "it.onnx", model_filename=program, params_filename=params, **options
    )
    with np.load(io.BytesIO(files["io.npz"])) as file:
        feed = [file[f"in{i}"] for i in range(len(report.inputs))]
        wanted = [file[f"out{i}"] for i in range(len(report.outputs))]
    compare(folder / "it.onnx", feed, wanted, report.inputs)
    return report


@pytest.mark.parametrize(
    "name",
    [
        "average_ceil",
        "viterbi",
        "grid_sample_n",
        "grid_sample5",
        "lstm_cells",
        "nested",
        "swiglu2",
        "set_item",
    ],
)
def test_a_function_exported_by_paddle_3_is_converted_to_onnx(name: str, tmp_path: Path) -> None:
    files = read_archive("exports331")[name]
    write_files(files, tmp_path)
    values = "inference.pdiparams" if files.get("inference.pdiparams") else None
    report = fluid.export_onnx(
        tmp_path, tmp_path / "it.onnx", model_filename="inference.json", params_filename=values
    )
    with np.load(io.BytesIO(files["io.npz"])) as file:
        fed = {one: file[f"in{i}"] for i, one in enumerate(file["feeds"].tolist())}
        wanted = [file[f"out{i}"] for i in range(len(report.outputs))]
    compare(tmp_path / "it.onnx", [fed[one] for one in report.inputs], wanted, report.inputs)


NETWORKS = [
    ("fit_a_line", "inference", None, None),
    ("mnist_conv_bn", "inference_combined", "model", "params"),
    ("word2vec_shared", "inference", None, None),
]


@pytest.mark.parametrize("opset", [9, 11, 12, 13, 18, 22])
@pytest.mark.parametrize(("network", "form", "model", "params"), NETWORKS, ids=[row[0] for row in NETWORKS])
def test_a_network_of_fluid_gives_its_recorded_outputs_in_onnxruntime(
    network, form, model, params, opset, tmp_path: Path
) -> None:
    report = fluid.export_onnx(
        GOLDEN / network / form,
        tmp_path / "it.onnx",
        opset=opset,
        model_filename=model,
        params_filename=params,
    )
    fed = arrays(network, "io", "infer_in/")
    feed = [fed[name] for name in report.inputs]
    wanted = list(arrays(network, "io", "infer_out/").values())
    compare(tmp_path / "it.onnx", feed, wanted[: len(report.outputs)], report.inputs)
    assert onnx.load(tmp_path / "it.onnx").opset_import[0].version == opset


@pytest.mark.parametrize("name", ["bert", "convnet"])
def test_a_fluid_model_is_exported(name: str, tmp_path: Path) -> None:
    check("models185", name, tmp_path)


#: Why operators of a room of ``paddlelike/ops`` are not written.
REASONS = {
    "contrib": "matching of texts and trees on sequences of sequences",
    "control": "callbacks into Python, rows divided by masks",
    "io": "files and readers",
    "loss": "losses: training",
    "metric": "measures over many batches",
    "quantization": "quantized or simulated so",
    "random": "random numbers, which would be others",
    "ranking": "ranking in training",
    "remote": "other processes",
    "update": "training",
}


def list_reasons(here, expressed) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in set(here) - expressed - {"feed", "fetch"}:
        room = here[name].__module__.split(".")[2]
        found.setdefault(REASONS.get(room, "no counterpart in ONNX, or not written yet"), []).append(name)
    return found


def test_convertible_paddle2_models_give_their_outputs_in_onnxruntime(tmp_path: Path, capsys) -> None:
    """Each is either refused as a whole, or gives Paddle 2.6.2's outputs."""
    exported = []
    for archive, name in [
        (one, name) for one in ("layers262", "spectra262") for name in sorted(read_archive(one))
    ]:
        folder = tmp_path / name
        folder.mkdir()
        try:
            check(archive, name, folder)
        except UnsupportedError:
            assert not (folder / "it.onnx").exists()
        else:
            exported.append(name)
    assert len(exported) >= 426
    types = collect_types(read_archive("models185")) | collect_types(read_archive("layers262"))
    here = {name: cls for name, cls in registry.all_ops().items() if "_grad" not in name and "@" not in name}
    expressed = set(load_table()) & set(here)
    with capsys.disabled():
        golden = f"{len(expressed & types)} of {len(types)} in golden models"
        print(f"onnx: {len(expressed)} of {len(here)} operators, {golden}")  # noqa: T201
        for reason, names in list_reasons(here, expressed).items():
            print(f"  not: {reason}: {', '.join(sorted(names))}")  # noqa: T201
    assert len(expressed) >= 240


def test_an_exported_convnet_takes_another_batch_size(tmp_path: Path) -> None:
    files = read_archive("models185")["convnet"]
    report = check("models185", "convnet", tmp_path)
    with np.load(io.BytesIO(files["io.npz"])) as file:
        first = file["in0"]
    twice = np.concatenate([first, first[:1]])
    got = run_onnx(tmp_path / "it.onnx", {report.inputs[0]: twice})
    assert [len(one) for one in got] == [len(twice)] * len(got)
    for out in got:
        np.testing.assert_allclose(out[-1], out[0], **CLOSE)
    port = onnx.load(tmp_path / "it.onnx").graph.input[0]
    assert port.type.tensor_type.shape.dim[0].dim_param == f"{port.name}.dim0"


def test_all_operators_without_a_counterpart_are_listed(tmp_path: Path) -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [4, 2])
        y = main.global_block().create_var(name="y", shape=[4, 2], dtype="float32")
        out = fluid.layers.random_crop(fluid.layers.py_func(np.tanh, x, y), [2])
    with pytest.raises(UnsupportedError) as caught:
        fluid.export_onnx(main, tmp_path / "it.onnx", ["x"], [out])
    for kind in ("py_func", "random_crop"):
        assert kind in str(caught.value)
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_external_parameters_are_written_to_a_second_file(tmp_path: Path) -> None:
    report = check("models185", "bert", tmp_path, external_data=True)
    sizes = {one.name: one.stat().st_size for one in tmp_path.glob("it.onnx*")}
    assert sizes["it.onnx.data"] > report.bytes / 2
    assert sizes["it.onnx"] + sizes["it.onnx.data"] > report.bytes


def test_parameters_too_large_for_one_file_are_written_to_a_second_one(tmp_path: Path, monkeypatch) -> None:
    from paddlelike.interop.onnx.exporter import export

    monkeypatch.setattr(export, "LARGEST", 1000)
    check("models185", "bert", tmp_path)
    assert (tmp_path / "it.onnx.data").stat().st_size > 1000
    other = tmp_path / "small"
    other.mkdir()
    fluid.export_onnx(GOLDEN / "fit_a_line" / "inference", other / "it.onnx")
    assert [one.name for one in other.iterdir()] == ["it.onnx"]


def build_network(*, trained: bool) -> tuple[fluid.Program, fluid.Program, fluid.Variable]:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 4])
        hidden = fluid.layers.dropout(fluid.layers.fc(x, 3, act="relu"), 0.25)
        out = fluid.layers.batch_norm(hidden)
        if trained:
            loss = fluid.layers.reduce_mean(out)
            fluid.optimizer.SGD(0.1).minimize(loss)
    return main, startup, out


def test_a_training_program_is_cut_to_its_prediction(tmp_path: Path) -> None:
    main, startup, out = build_network(trained=True)
    x = np.random.default_rng(0).standard_normal((5, 4)).astype("float32")
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        exe = fluid.Executor()
        exe.run(startup)
        exe.run(main, feed={"x": x}, fetch_list=[])
        (want,) = exe.run(main.clone(for_test=True)._prune([out]), feed={"x": x}, fetch_list=[out])
    report = fluid.export_onnx(main, tmp_path / "it.onnx", ["x"], [out], scope=scope)
    assert "sgd" not in report.operators
    compare(tmp_path / "it.onnx", [x], [want], ["x"])


def test_equal_programs_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.onnx", "b.onnx"):
        fluid.export_onnx(GOLDEN / "word2vec_shared" / "inference", tmp_path / name)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_parameters_without_values_are_refused(tmp_path: Path) -> None:
    main, _, out = build_network(trained=False)
    with pytest.raises(NotInitializedError, match=r"parameter 'batch_norm_0\.b_0' holds no tensor"):
        fluid.export_onnx(main, tmp_path / "it.onnx", ["x"], [out], scope=fluid.Scope())
    assert not list(tmp_path.iterdir())


def test_an_opset_that_is_too_old_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="opset is 8; it can be 9 to"):
        fluid.export_onnx(GOLDEN / "fit_a_line" / "inference", tmp_path / "it.onnx", opset=8)


def test_outputs_have_the_names_of_the_fetched_variables(tmp_path: Path) -> None:
    """Also one that a ``scale`` by 1 gives, which needs no node, one that is fetched twice, and an input."""
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 4])
        same = fluid.layers.scale(fluid.layers.relu(x), 1.0)
    report = fluid.export_onnx(main, tmp_path / "it.onnx", ["x"], [same, same, x])
    assert report.outputs == [same.name, f"{same.name}@1", "x@1"]
    array = np.array([[-1, 0, 1, 2]], np.float32)
    compare(tmp_path / "it.onnx", [array], [np.maximum(array, 0), np.maximum(array, 0), array], ["x"])


def test_a_variable_that_is_written_twice_has_its_last_value(tmp_path: Path) -> None:
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 4])
        first = fluid.layers.scale(x, 2.0)
        before = fluid.layers.tanh(first)
        fluid.layers.assign(fluid.layers.relu(first), first)
    fluid.export_onnx(main, tmp_path / "it.onnx", ["x"], [before, first])
    array = np.array([[-1, 0, 1, 2]], np.float32)
    wanted = [np.tanh(2 * array), 2 * np.maximum(array, 0)]
    compare(tmp_path / "it.onnx", [array], wanted, ["x"])


def test_print_is_exported_as_identity(tmp_path: Path) -> None:
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        out = fluid.layers.scale(fluid.layers.Print(fluid.data("x", [None, 2])), 3.0)
    fluid.export_onnx(main, tmp_path / "it.onnx", ["x"], [out])
    array = np.array([[1, 2]], np.float32)
    compare(tmp_path / "it.onnx", [array], [3 * array], ["x"])


def test_a_traced_operator_accepts_any_batch_size(tmp_path: Path) -> None:
    """Of each first dim that is not known the traced graph asks at run time."""
    pytest.importorskip("jax", reason="the extra jax is not installed")
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        x, label = fluid.data("x", [None, 4]), fluid.data("label", [None, 1], "int64")
        loss = fluid.layers.bpr_loss(fluid.layers.softmax(x), label)
        outs = [loss, fluid.layers.smooth_l1(x, fluid.layers.relu(x)), fluid.layers.l2_normalize(x, 1)]
    fluid.export_onnx(main, tmp_path / "it.onnx", ["x", "label"], outs)
    rng = np.random.default_rng(1)
    for rows in (1, 5, 8):
        feed = {"x": rng.standard_normal((rows, 4)).astype("float32"), "label": rng.integers(0, 4, (rows, 1))}
        want = fluid.Executor().run(main, feed=feed, fetch_list=outs)
        compare(tmp_path / "it.onnx", list(feed.values()), want, list(feed))


@pytest.mark.parametrize("name", ["bitwise_and_int", "bitwise_not", "fold"])
def test_operators_of_opset_18_are_exported(name: str, tmp_path: Path) -> None:
    check("layers262", name, tmp_path)


def test_maxima_and_minima_of_segments_are_exported(tmp_path: Path) -> None:
    check("spectra262", "segments", tmp_path)


@pytest.mark.parametrize(
    ("kind", "meant"), [("elementwise_mul", np.logical_and), ("elementwise_add", np.logical_or)]
)
def test_arithmetic_of_bools_is_exported(kind: str, meant, tmp_path: Path) -> None:
    program = fluid.Program()
    with fluid.program_guard(program):
        x, y = (fluid.data(name, [4], "bool") for name in "xy")
        out = program.global_block().create_var(name="out", shape=(4,), dtype="bool")
        program.global_block().append_op(
            type=kind, inputs={"X": [x], "Y": [y]}, outputs={"Out": [out]}, attrs={}
        )
    fluid.export_onnx(program, tmp_path / "it.onnx", feeds=["x", "y"], fetches=[out])
    feed = {"x": np.array([True, True, False, False]), "y": np.array([True, False, True, False])}
    (got,) = run_onnx(tmp_path / "it.onnx", feed)
    np.testing.assert_array_equal(got, meant(feed["x"], feed["y"]))
