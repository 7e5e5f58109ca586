"""onnxruntime as the engine of predictors gives what real Paddle gave, and what the Executor gives."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import inference
from paddlelike.errors import ExtraMissingError, FeedError, PaddlelikeError
from paddlelike.framework.codec.schema import messages
from tests.inference.test_predictor import CLOSE, MODELS, configure, read_arrays, read_lod
from tests.models.archive import read_archive, write_files

pytestmark = pytest.mark.slow  # onnxruntime is of the extra test-all

#: Between two libraries: sums in another order, exponentials of another library, several layers deep.
NEAR = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture(autouse=True)
def _runtime() -> None:
    pytest.importorskip("onnxruntime", reason="the engine is an extra")


def predict(predictor: Any, arrays: dict[str, Any]) -> list[tuple[Any, Any]]:
    for i, one in enumerate(predictor.get_input_names()):
        handle = predictor.get_input_handle(one)
        handle.copy_from_cpu(arrays[f"in{i}"])
        handle.set_lod(read_lod(arrays, f"in{i}"))
    predictor.run()
    handles = [predictor.get_output_handle(one) for one in predictor.get_output_names()]
    return [(one.copy_to_cpu(), one.lod()) for one in handles]


@pytest.mark.parametrize(("archive", "name"), MODELS)
def test_onnxruntime_gives_what_the_executor_gives(archive: str, name: str, tmp_path: Path) -> None:
    files = read_archive(archive)[name]
    write_files(files, tmp_path)
    arrays = read_arrays(files)
    if any(one.dtype in (np.int16, np.complex64) for one in arrays.values()):
        pytest.skip("a predictor takes no arrays of these types")
    ours = predict(inference.create_predictor(configure(tmp_path, files)), arrays)
    config = configure(tmp_path, files)
    config.enable_onnxruntime()
    predictor = inference.create_predictor(config)
    for _ in range(3):  # the second run has memory of its own, the third uses it again
        found = predict(predictor, arrays)
        for (a, lod), (b, want) in zip(found, ours, strict=True):
            assert (a.shape, a.dtype, lod) == (b.shape, b.dtype, want)
            np.testing.assert_allclose(a, b, **NEAR if a.dtype.kind == "f" else {"rtol": 0})
    assert "\nengine  " in config.summary()


def save(folder: Path, build: Any) -> inference.Config:
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        inputs, outputs = build()
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.save_inference_model(str(folder), inputs, outputs, exe, main, "model", "params")
    return inference.Config(str(folder / "model"), str(folder / "params"))


@pytest.mark.parametrize("version", [1_008_005, 2_006_002])
def test_yolo_box_uses_the_grid_of_the_version_of_a_program(version: int, tmp_path: Path) -> None:
    def build() -> tuple[list[str], list[Any]]:
        x, size = fluid.data("x", [1, 14, 2, 3]), fluid.data("size", [1, 2], "int32")
        one = fluid.layers.create_parameter(
            [1], "float32", default_initializer=fluid.initializer.Constant(1.0)
        )
        return ["x", "size"], list(fluid.layers.yolo_box(x * one, size, [10, 13, 16, 30], 2, 0.01, 8))

    config = save(tmp_path, build)
    for one in tmp_path.iterdir():
        if one.name not in ("model", "params"):
            one.unlink()  # the manifest, as Paddle has none
    message = messages().ProgramDesc()
    message.ParseFromString((tmp_path / "model").read_bytes())
    message.version.version = version
    (tmp_path / "model").write_bytes(message.SerializeToString())
    feed = [np.zeros((1, 14, 2, 3), "float32"), np.array([[16, 24]], "int32")]
    plain, _ = inference.create_predictor(config).run(feed)
    config.enable_onnxruntime()
    found, _ = inference.create_predictor(config).run(feed)
    np.testing.assert_allclose(found, plain, **CLOSE)
    # The right side of a box, 10 wide: 24 pixels are 3 cells of 8, for Fluid as many as there are rows.
    assert plain[0, 0, 2] == pytest.approx(24 / 2 * (0.5 + 10 / 8 / 2) if version < 2_000_000 else 4 + 5)


def build_mixed() -> tuple[list[str], list[Any]]:
    """Two layers, an operator that ONNX does not have, and two more."""
    x = fluid.data("x", [None, 8])
    hidden = fluid.layers.tanh(fluid.layers.fc(fluid.layers.fc(x, 8, act="relu"), 8))
    hidden = fluid.layers.data_norm(fluid.layers.fc(hidden, 4))
    code = fluid.layers.hash(fluid.layers.cast(hidden * 100, "int64"), 1000)
    hidden = hidden + fluid.layers.reduce_mean(fluid.layers.cast(code, "float32"))
    return ["x"], [fluid.layers.fc(fluid.layers.fc(hidden, 8, act="tanh"), 2, act="softmax"), code]


def test_operators_that_onnx_lacks_stay_on_the_executor(tmp_path: Path) -> None:
    plain = save(tmp_path, build_mixed)
    config = inference.Config(plain)
    config.enable_onnxruntime()
    first, second = inference.create_predictor(plain), inference.create_predictor(config)
    (line,) = [line for line in config.summary().splitlines() if line.startswith("engine")]
    assert "hash" in line
    assert "operators; the Executor, " in line
    for rows in (1, 5, 5, 3):
        x = np.random.default_rng(rows).random((rows, 8), "float32")
        for a, b in zip(second.run([x]), first.run([x]), strict=True):
            np.testing.assert_allclose(a, b, **CLOSE)


def build_words() -> tuple[list[str], list[Any]]:
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    pooled = fluid.layers.sequence_pool(fluid.layers.embedding(words, [30, 4]), "max")
    return ["words"], [fluid.layers.fc(pooled, 3, act="softmax")]


@pytest.mark.parametrize(
    ("values", "lod"),
    [([3, 1, 2, 7], [[0, 3, 4]]), ([3, 1, 2, 29], [[0, 1, 4]]), ([3, 1], [[0, 2, 2]])],
    ids=["two", "others", "an empty sequence"],
)
def test_sequences_match_the_executor(values: list[int], lod: Any, tmp_path: Path) -> None:
    plain = save(tmp_path, build_words)
    config = inference.Config(plain)
    config.enable_onnxruntime()
    given = inference.PaddleTensor(np.array(values, "int64")[:, None], "words", lod)
    a, b = (inference.create_predictor(one).run([given])[0] for one in (config, plain))
    assert (a.shape, a.lod) == (b.shape, b.lod)
    np.testing.assert_allclose(a.as_ndarray(), b.as_ndarray(), **CLOSE)


@pytest.mark.parametrize(
    "given",
    [
        inference.PaddleTensor(np.array([[-1]], "int64"), "words", [[0, 1]]),
        inference.PaddleTensor(np.array([[30]], "int64"), "words", [[0, 1]]),
        inference.PaddleTensor(np.array([[1.5]], "float32"), "words", [[0, 1]]),
        inference.PaddleTensor(np.array([[1]], "int64"), "words", [[0, 2]]),
        inference.PaddleTensor(np.array([[1]], "int64"), "words"),
        inference.PaddleTensor(np.array([[1, 2]], "int64"), "words", [[0, 1]]),
    ],
    ids=["negative id", "id too large", "real numbers", "offsets beyond the rows", "no LoD", "columns"],
)
def test_bad_input_raises_the_errors_of_the_executor(given: Any, tmp_path: Path) -> None:
    plain = save(tmp_path, build_words)
    config = inference.Config(plain)
    config.enable_onnxruntime()
    messages = []
    for one in (config, plain):
        with pytest.raises((PaddlelikeError, ValueError, RuntimeError)) as caught:
            inference.create_predictor(one).run([given])
        messages.append((type(caught.value), str(caught.value)))
    assert messages[0] == messages[1]


def test_an_array_of_another_shape_raises_the_error_of_the_executor(tmp_path: Path) -> None:
    config = save(tmp_path, build_mixed)
    config.enable_onnxruntime()
    with pytest.raises(FeedError, match=r"has shape \[None, 8\], the fed array has \[2, 7\]"):
        inference.create_predictor(config).run([np.zeros((2, 7), "float32")])


def test_results_of_one_run_outlive_the_next(tmp_path: Path) -> None:
    config = save(tmp_path, build_mixed)
    config.enable_onnxruntime()
    predictor = inference.create_predictor(config)
    x = np.random.default_rng(0).random((2, 8), "float32")
    for _ in range(2):
        predictor.run([x])
    first = predictor.run([x])[0]
    kept = first.copy()
    predictor.run([x + 1])
    np.testing.assert_array_equal(first, kept)


def build_ids() -> tuple[list[str], list[Any]]:
    ids = fluid.data("ids", [None, 3], "int64")
    weight = fluid.data("weight", [None, 1])
    table = fluid.layers.reduce_sum(fluid.embedding(ids, [30, 4]), dim=1)
    return ["ids", "weight"], [fluid.layers.fc(table * weight, 2)]


def make_pair(folder: Path) -> tuple[Any, Any]:
    """Return predictors of a model with ids, with onnxruntime and without it."""
    plain = save(folder, build_ids)
    config = inference.Config(plain)
    config.enable_onnxruntime()
    return inference.create_predictor(config), inference.create_predictor(plain)


def build_layer() -> tuple[list[str], list[Any]]:
    return ["x"], [fluid.layers.fc(fluid.data("x", [None, 4]), 2)]


def test_a_changed_lod_of_a_result_is_not_in_the_next_result(tmp_path: Path) -> None:
    config = save(tmp_path, build_layer)
    config.enable_onnxruntime()
    predictor = inference.create_predictor(config)
    given = [inference.PaddleTensor(np.ones((3, 4), "float32"))]
    for _ in range(4):
        (out,) = predictor.run(given)
        assert out.lod == []
        out.lod.append([0, 3])


@pytest.mark.parametrize("bad", [-1, 30], ids=["negative", "too large"])
def test_a_bad_id_raises_the_error_of_the_executor_after_good_runs(bad: int, tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    ids, weight = np.array([[3, 0, 29]]), np.ones((1, 1), "float32")
    good = [one.run([ids, weight])[0] for one in pair for _ in range(3)]
    for one in good:
        np.testing.assert_allclose(one, good[0], **CLOSE)
    messages = []
    for one in pair:
        with pytest.raises((PaddlelikeError, ValueError, RuntimeError)) as caught:
            one.run([np.array([[3, bad, 29]]), weight])
        messages.append((type(caught.value), str(caught.value)))
    assert messages[0] == messages[1]


def build_any_ids() -> tuple[list[str], list[Any]]:
    ids, x = fluid.data("ids", [None], "int64"), fluid.data("x", [None, 4])
    return ["ids", "x"], [x + fluid.layers.reduce_sum(fluid.embedding(ids, [30, 4]), dim=0)]


def test_empty_arrays_of_ids_match_the_executor_in_every_run(tmp_path: Path) -> None:
    plain = save(tmp_path, build_any_ids)
    config = inference.Config(plain)
    config.enable_onnxruntime()
    predictor, x = inference.create_predictor(config), np.ones((2, 4), "float32")
    for _ in range(3):
        np.testing.assert_array_equal(predictor.run([np.empty(0, "int64"), x])[0], x)


def test_arrays_of_the_other_byte_order_give_the_same(tmp_path: Path) -> None:
    predictor, plain = make_pair(tmp_path)
    ids, weight = np.array([[3, 0, 29]]), np.full((1, 1), 0.5, "float32")
    want = plain.run([ids, weight])[0]
    for _ in range(3):
        found = predictor.run([ids.astype(">i8"), weight.astype(">f4")])[0]
        np.testing.assert_allclose(found, want, **CLOSE)


def test_handles_and_arrays_of_one_predictor_do_not_change_each_other(tmp_path: Path) -> None:
    predictor, plain = make_pair(tmp_path)
    first = [np.array([[1, 2, 3]]), np.ones((1, 1), "float32")]
    second = [np.array([[4, 5, 6]]), np.full((1, 1), 2, "float32")]
    wanted = [plain.run(one)[0] for one in (first, second)]
    handles = [predictor.get_input_handle(name) for name in predictor.get_input_names()]
    out = predictor.get_output_handle(predictor.get_output_names()[0])
    copies = []
    for _ in range(3):
        for handle, array in zip(handles, first, strict=True):
            handle.copy_from_cpu(array)
        predictor.run()
        copies.append(out.copy_to_cpu())
        np.testing.assert_allclose(predictor.run(second)[0], wanted[1], **CLOSE)
        predictor.run()  # the handles hold the first arrays
        copies.append(out.copy_to_cpu())
    for copy in copies:
        np.testing.assert_allclose(copy, wanted[0], **CLOSE)
    for handle, array in zip(handles, second, strict=True):
        handle.copy_from_cpu(array)
    np.testing.assert_array_equal(out.copy_to_cpu(), copies[-1])
    predictor.run()
    np.testing.assert_allclose(out.copy_to_cpu(), wanted[1], **CLOSE)
    np.testing.assert_allclose(copies[-1], wanted[0], **CLOSE)


def test_clones_run_in_threads(tmp_path: Path) -> None:
    config = save(tmp_path, build_mixed)
    config.enable_onnxruntime()
    pool = inference.PredictorPool(config, 4)
    inputs = np.random.default_rng(1).random((4, 30, 2, 8), "float32")
    want = [[pool.retrive(0).run([x])[0] for x in rows] for rows in inputs]
    got: list[Any] = [None] * 4

    def work(index: int) -> None:
        got[index] = [pool.retrive(index).run([x])[0] for x in inputs[index]]

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(got, want)


def test_a_predictor_that_follows_a_folder_loads_new_saves(tmp_path: Path) -> None:
    config = save(tmp_path / "model", build_words)
    config.enable_onnxruntime()
    predictor = inference.create_predictor(config)
    predictor.follow(tmp_path / "saves")
    given = inference.PaddleTensor(np.array([[3], [4]], "int64"), "words", [[0, 2]])
    before = predictor.run([given])[0].as_ndarray()
    exe, scope = fluid.Executor(), fluid.Scope()
    with fluid.scope_guard(scope):
        program, _, fetches = fluid.io.load_inference_model(str(tmp_path / "model"), exe, "model", "params")
        for variable in program.list_vars():
            if variable.persistable and variable.name not in ("feed", "fetch"):
                tensor = scope.find_var(variable.name).get_tensor()
                tensor.set(np.asarray(tensor) * 2 + 0.125, fluid.CPUPlace())
        fluid.io.save_persistables(exe, str(tmp_path / "saves"), program)
        feed = {"words": fluid.create_lod_tensor(np.array([[3], [4]], "int64"), [[2]], fluid.CPUPlace())}
        want = exe.run(program, feed, fetches)[0]
    after = predictor.run([given])[0].as_ndarray()
    np.testing.assert_allclose(after, want, **CLOSE)
    assert not np.allclose(before, after)


def test_onnxruntime_options_reach_the_session(tmp_path: Path) -> None:
    config = save(tmp_path, build_words)
    config.enable_ort_optimization()
    config.set_cpu_math_library_num_threads(2)
    config.enable_mkldnn()
    assert "set_cpu_math_library_num_threads(2)" in config.summary()
    config.enable_onnxruntime()
    assert config.summary().endswith("without effect   enable_mkldnn()")
    config.disable_onnxruntime()
    assert "engine" not in config.summary()


def test_without_onnxruntime_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = save(tmp_path, build_words)
    config.enable_onnxruntime()
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(ExtraMissingError, match=r"enable_onnxruntime\(\) needs onnxruntime") as caught:
        inference.create_predictor(config)
    assert 'paddlelike[onnxruntime]"' in str(caught.value)
