"""Predictors give what real Paddle gave for the same models: from directories, files, memory, in threads."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import inference
from paddlelike.errors import FeedError, LoadError, MissingFileError
from tests.models.archive import Files, find_names, read_archive, write_files

#: float32 sums in another order than the real system's; log and exp of another library.
CLOSE = {"rtol": 2e-5, "atol": 2e-6}
MODELS = [(archive, name) for archive in ("models185", "layers262") for name in sorted(read_archive(archive))]


def read_arrays(files: Files) -> dict[str, Any]:
    with np.load(io.BytesIO(files["io.npz"])) as file:
        return dict(file)


def read_lod(arrays: dict[str, Any], key: str) -> list[list[int]]:
    return [arrays[name].tolist() for name in sorted(arrays) if name.startswith(f"{key}@lod")]


def configure(folder: Path, files: Files) -> inference.AnalysisConfig:
    program, params = find_names(files)
    if program is None and params is None:
        return inference.AnalysisConfig(str(folder))
    config = inference.AnalysisConfig()
    config.set_prog_file(str(folder / (program or "__model__")))
    config.set_params_file(str(folder / params) if params else "")
    return config


def assert_close(ours: Any, real: Any) -> None:
    assert (ours.shape, ours.dtype) == (real.shape, real.dtype)
    if real.dtype.kind == "f":
        np.testing.assert_allclose(ours, real, **CLOSE)
    else:
        np.testing.assert_array_equal(ours, real)


@pytest.mark.parametrize(("archive", "name"), MODELS)
def test_a_predictor_gives_what_real_paddle_gave(archive: str, name: str, tmp_path: Path) -> None:
    files = read_archive(archive)[name]
    write_files(files, tmp_path)
    arrays = read_arrays(files)
    predictor = inference.create_predictor(configure(tmp_path, files))
    for i, one in enumerate(predictor.get_input_names()):
        handle = predictor.get_input_handle(one)
        if arrays[f"in{i}"].dtype not in (np.int16, np.complex64):
            handle.copy_from_cpu(arrays[f"in{i}"])
            handle.set_lod(read_lod(arrays, f"in{i}"))
        else:
            with pytest.raises(FeedError, match="a predictor takes no arrays of"):
                handle.copy_from_cpu(arrays[f"in{i}"])
            return
    assert predictor.run() is True
    outputs = predictor.get_output_names()
    for i, one in enumerate(outputs):
        handle = predictor.get_output_handle(one)
        if outputs.count(one) == 1:
            assert_close(handle.copy_to_cpu(), arrays[f"out{i}"])
            assert handle.lod() == read_lod(arrays, f"out{i}")


def save_network(folder: Path) -> None:
    """Save a network of two layers as one file of the program and one of the parameters."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 4])
        out = fluid.layers.fc([x, y], 3, act="tanh")
        total = fluid.layers.reduce_sum(out, dim=1)
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.save_inference_model(str(folder), ["x", "y"], [out, total], exe, main, "model", "params")


X, Y = np.random.default_rng(0).random((2, 5, 4)).astype("float32")


def run_by_executor(folder: Path) -> list[Any]:
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(str(folder), exe, "model", "params")
        return exe.run(program, feed=dict(zip(feeds, (X, Y), strict=True)), fetch_list=fetches)


@pytest.mark.parametrize("kind", ["files", "memory", "native", "core"])
def test_a_predictor_takes_tensors_in_input_order(kind: str, tmp_path: Path) -> None:
    save_network(tmp_path)
    config: Any = inference.AnalysisConfig(str(tmp_path / "model"), str(tmp_path / "params"))
    if kind == "memory":
        program, params = ((tmp_path / name).read_bytes() for name in ("model", "params"))
        config = inference.AnalysisConfig()
        config.set_model_buffer(program, len(program), params, len(params))
        assert config.model_from_memory()
    elif kind == "native":
        config = config.to_native_config()
        assert (config.prog_file, config.param_file) == (str(tmp_path / "model"), str(tmp_path / "params"))
    elif kind == "core":
        config = fluid.core.AnalysisConfig(config)
    predictor = fluid.core.create_paddle_predictor(config)
    assert predictor.get_input_names() == ["x", "y"]
    outs = predictor.run([inference.PaddleTensor(X), fluid.core.PaddleTensor(Y)])
    for out, name, want in zip(outs, predictor.get_output_names(), run_by_executor(tmp_path), strict=True):
        assert (out.name, out.shape, out.dtype) == (name, list(want.shape), inference.PaddleDType.FLOAT32)
        np.testing.assert_array_equal(out.as_ndarray(), want)
        assert out.data.float_data() == want.ravel().tolist()
    for out, want in zip(predictor.run([X, Y]), run_by_executor(tmp_path), strict=True):
        np.testing.assert_array_equal(out, want)


def test_a_predictor_takes_tensors_by_name(tmp_path: Path) -> None:
    save_network(tmp_path)
    config = inference.Config(str(tmp_path / "model"), str(tmp_path / "params"))
    config.switch_specify_input_names(True)
    predictor = inference.create_predictor(config)
    y = inference.PaddleTensor()
    y.name, y.shape, y.dtype = "y", [5, 4], inference.PaddleDType.FLOAT32
    y.data = inference.PaddleBuf(Y.ravel().tolist())
    assert inference.paddle_tensor_to_bytes(y) == Y.tobytes()
    out = predictor.run([y, inference.PaddleTensor(X, "x")])[0]
    np.testing.assert_array_equal(out.as_ndarray(), run_by_executor(tmp_path)[0])
    y.shape = [5, 5]
    with pytest.raises(FeedError, match="'y': 80 bytes do not fill float32 of shape \\[5, 5\\]"):
        predictor.run([y, y])
    with pytest.raises(FeedError, match=r"no input 'z'[^.]*it has x, y"):
        predictor.run([inference.PaddleTensor(X, "z"), y])
    with pytest.raises(FeedError, match="1 tensors for 2 inputs"):
        predictor.run([y])


def test_input_handles_keep_their_arrays_and_missing_ones_are_named(tmp_path: Path) -> None:
    save_network(tmp_path)
    predictor = inference.create_predictor(
        inference.Config(str(tmp_path / "model"), str(tmp_path / "params"))
    )
    x, y = (predictor.get_input_handle(name) for name in "xy")
    with pytest.raises(FeedError, match="'x' has no value"):
        predictor.run()
    given = X.copy()
    x.reshape([5, 4])
    x.copy_from_cpu(given.ravel())
    given[...] = 0
    y.copy_from_cpu(Y)
    assert (x.shape(), x.type(), inference.paddle_dtype_size(x.type())) == (
        [5, 4],
        inference.DataType.FLOAT32,
        4,
    )
    predictor.zero_copy_run()
    handle = predictor.get_output_tensor(predictor.get_output_names()[0])
    first = handle.copy_to_cpu()
    np.testing.assert_array_equal(first, run_by_executor(tmp_path)[0])
    y.copy_from_cpu(X)
    predictor.run()
    assert not np.array_equal(handle.copy_to_cpu(), first)
    with pytest.raises(FeedError, match="no output 'nothing'"):
        predictor.get_output_handle("nothing")


def test_a_result_that_a_model_gives_twice_is_found_under_its_name(tmp_path: Path) -> None:
    save_network(tmp_path)
    expected = run_by_executor(tmp_path)
    program = fluid.Program.parse_from_string((tmp_path / "model").read_bytes())
    block = program.global_block()
    first, second = (op.input("X")[0] for op in block.ops[-2:])
    block.ops[-1]._rename_input(second, first)
    block.append_op(
        type="fetch", inputs={"X": [second]}, outputs={"Out": block.ops[-1].output("Out")}, attrs={"col": 2}
    )
    (tmp_path / "__manifest__").unlink()
    (tmp_path / "model").write_bytes(program.desc.serialize_to_string())
    predictor = inference.create_predictor(
        inference.Config(str(tmp_path / "model"), str(tmp_path / "params"))
    )
    for name, array in zip("xy", (X, Y), strict=True):
        predictor.get_input_handle(name).copy_from_cpu(array)
    predictor.run()
    assert predictor.get_output_names() == [first, first, second]
    for name, array in zip((first, second), expected, strict=True):
        np.testing.assert_array_equal(predictor.get_output_handle(name).copy_to_cpu(), array)


def test_clones_run_in_threads_and_share_the_parameters(tmp_path: Path) -> None:
    save_network(tmp_path)
    pool = inference.PredictorPool(inference.Config(str(tmp_path / "model"), str(tmp_path / "params")), 8)
    inputs = np.random.default_rng(1).random((8, 50, 2, 3, 4)).astype("float32")
    want = [[pool.retrive(0).run([x, y])[0] for x, y in rows] for rows in inputs]
    got: list[Any] = [None] * 8
    barrier = threading.Barrier(8)

    def work(index: int) -> None:
        predictor = pool.retrive(index)
        barrier.wait()
        got[index] = [predictor.run([x, y])[0] for x, y in inputs[index]]

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(got, want)
    weights = [pool.retrive(i)._scope.find_var("fc_0.w_0").get_tensor() for i in range(8)]
    assert len({id(one) for one in weights}) == 1


def test_config_switches_are_accepted_and_documented_as_ineffective(tmp_path: Path) -> None:
    config = inference.Config("model", "params")
    assert (config.use_gpu(), config.ir_optim(), config.cpu_math_library_num_threads()) == (False, True, 1)
    config.enable_use_gpu(100, 0)
    config.switch_ir_optim(False)
    config.set_cpu_math_library_num_threads(4)
    config.enable_tensorrt_engine(workspace_size=1 << 20, precision_mode=inference.PrecisionType.Half)
    config.delete_pass("fc_fuse_pass")
    assert (config.use_gpu(), config.ir_optim(), config.cpu_math_library_num_threads()) == (True, False, 4)
    assert config.tensorrt_engine_enabled()
    without = config.summary().splitlines()[-1]
    assert without.startswith("without effect   enable_use_gpu(100, 0), set_cpu_math_library_num_threads(4)")
    assert without.endswith("delete_pass('fc_fuse_pass')")
    with pytest.raises(AttributeError, match="did you mean 'enable_mkldnn'"):
        config.enable_mkldn()
    copy = inference.Config(config)
    copy.disable_gpu()
    assert (copy.use_gpu(), config.use_gpu()) == (False, True)


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="the configuration names no model"):
        inference.create_predictor(inference.Config())
    with pytest.raises(MissingFileError):
        inference.create_predictor(inference.Config(str(tmp_path / "model"), str(tmp_path / "params")))
