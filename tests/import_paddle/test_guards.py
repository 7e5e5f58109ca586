"""What packages of Fluid's time do around their networks; the answers are those of real Paddle 1.8.5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LeftOutError, QuirkWarning
from paddlelike.framework.codec.schema import messages
from tests.import_paddle.test_install import in_a_new_process


def test_paddle_has_only_the_names_of_1_8_5(tmp_path: Path) -> None:
    script = """
import paddlelike
paddlelike.install()
import paddle
later = "enable_static disable_static nn static tensor to_tensor jit metric optimizer Tensor save load"
print([name for name in later.split() if hasattr(paddle, name) or name in dir(paddle)])
print(all(hasattr(paddle, name) for name in ["fluid", "batch", "dataset", "reader", "version"]))
print(paddle.enable_static(), getattr(paddle, "enable_static", "no"))
try:
    paddle.nn
except AttributeError as error:
    print(error)
"""
    lines = in_a_new_process(script, tmp_path).stdout.splitlines()
    assert lines[:3] == ["[]", "True", "None no"]
    assert lines[3].startswith(
        "module 'paddle' has no attribute 'nn': `import paddle` gives the names of Paddle 1.8.5"
    )


@pytest.fixture
def exe() -> fluid.Executor:
    return fluid.Executor(fluid.CPUPlace())


def test_a_program_keeps_the_table_of_operator_versions() -> None:
    """PaddleSeg writes its models so."""
    fluid.layers.fc(fluid.data("x", [None, 2]), 1)
    program = fluid.default_main_program().clone(for_test=True)
    before = program.desc.serialize_to_string()
    program.desc.flush()
    program.desc._set_version()
    assert program.desc._version() == 1008005
    assert fluid.core.save_op_compatible_info(program.desc) is True
    data = program.desc.serialize_to_string()
    assert len(data) - len(before) == 1734  # as in 1.8.5
    message = messages().ProgramDesc.FromString(data)
    assert (message.version.version, len(message.op_compatible_map.pair)) == (1008005, 64)
    for copy in (program.clone(), fluid.Program.parse_from_string(data)):
        assert len(copy.desc.serialize_to_string()) == len(data)


def test_conv2d_without_groups_is_not_depthwise() -> None:
    x = fluid.data("x", [None, 1, 8, 8])
    fluid.layers.conv2d(x, 4, 3, use_cudnn=False)
    fluid.layers.conv2d(x, 4, 3, use_cudnn=False, groups=1)
    fluid.layers.conv2d_transpose(x, 1, filter_size=3, use_cudnn=False)
    program = fluid.default_main_program()
    assert [p.name for p in program.all_parameters()] == [
        "conv2d_0.w_0",
        "conv2d_0.b_0",
        "depthwise_conv2d_0.w_0",
        "depthwise_conv2d_0.b_0",
        "conv2d_transpose_0.w_0",
        "conv2d_transpose_0.b_0",
    ]
    types = [op.type for op in program.global_block().ops if "conv" in op.type]
    assert types == ["conv2d", "depthwise_conv2d", "conv2d_transpose"]


def test_fc_accepts_the_global_pooling_of_images_of_any_size(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 3, None, None])
    pooled = fluid.layers.pool2d(x, pool_type="avg", global_pooling=True)
    out = fluid.layers.fc(pooled, 2)
    exe.run(fluid.default_startup_program())
    assert pooled.shape == (-1, 3, -1, -1)
    picture = np.random.default_rng(0).random((1, 3, 8, 6)).astype("float32")
    got, weight = exe.run(feed={"x": picture}, fetch_list=[out, "fc_0.w_0"])
    assert weight.shape == (3, 2)
    np.testing.assert_allclose(got, picture.mean((2, 3)) @ weight, rtol=1e-5)


def test_a_persistable_activation_is_saved_and_loaded(exe: fluid.Executor, tmp_path: Path) -> None:
    x = fluid.data("x", [None, 2], lod_level=1)
    padded, _ = fluid.layers.sequence_pad(x, fluid.layers.assign(np.array([0.0], "float32")))
    padded.persistable = True
    fluid.layers.fc(x, 1)
    exe.run(fluid.default_startup_program())
    fed = fluid.create_lod_tensor(np.ones((5, 2), "float32"), [[2, 3]], fluid.CPUPlace())
    (value,) = exe.run(feed={"x": fed}, fetch_list=[padded])
    fluid.io.save_persistables(exe, str(tmp_path))
    fluid.global_scope().var(padded.name).get_tensor().set(np.zeros((1, 1, 2), "float32"), fluid.CPUPlace())
    fluid.io.load_persistables(exe, str(tmp_path))
    np.testing.assert_array_equal(fluid.global_scope().find_var(padded.name).get_tensor(), value)


def test_a_tensor_without_elements_is_fetched_as_none(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 2])
    out = fluid.layers.scale(x, 2.0)
    feed = {"x": np.zeros((0, 2), "float32")}
    with pytest.warns(QuirkWarning, match="its value is None"):
        assert exe.run(feed=feed, fetch_list=[out, "x"]) == [None, None]
    fluid.set_flags({"FLAGS_fluid_quirks": False})
    assert exe.run(feed=feed, fetch_list=[out])[0].shape == (0, 2)


def test_a_program_without_operators_fetches_its_feeds(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 3])
    (got,) = exe.run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=[x])
    np.testing.assert_array_equal(got, np.ones((2, 3)))


def test_a_single_place_is_accepted_for_a_list_of_places(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 2])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe.run(fluid.default_startup_program())
    program = fluid.CompiledProgram(fluid.default_main_program())
    program = program.with_data_parallel(loss_name=loss.name, places=fluid.CPUPlace())
    assert exe.run(program, feed={"x": np.ones((2, 2), "float32")}, fetch_list=[loss])[0].shape == (1,)


def test_starting_a_reader_twice_lets_it_continue(exe: fluid.Executor) -> None:
    reader = fluid.layers.py_reader(4, [[-1, 1]], ["float32"], use_double_buffer=False)
    out = fluid.layers.scale(fluid.layers.read_file(reader), 2.0)
    reader.decorate_tensor_provider(lambda: ([np.full((2, 1), i, "float32")] for i in range(3)))
    exe.run(fluid.default_startup_program())
    reader.start()
    with pytest.warns(UserWarning, match="already started"):
        reader.start()

    def read() -> Any:
        while True:
            try:
                yield exe.run(fetch_list=[out])[0][0, 0].item()
            except fluid.core.EOFException:
                return

    assert list(read()) == [0, 2, 4]


def test_a_pass_of_the_core_is_importable_and_explains_that_it_is_refused() -> None:
    from paddlelike.core import get_pass

    with pytest.raises(LeftOutError, match="operators of Paddle's C\\+\\+ core"):
        get_pass("graph_viz_pass")
