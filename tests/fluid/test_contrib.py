"""Parts of fluid.contrib and fluid.incubate that 1.8.5 has not under Python 3, or does otherwise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import paddlelike.fluid as fluid
from paddlelike.distributed.fleet.hdfs import HDFSClient
from paddlelike.errors import GraphError, ShapeError
from paddlelike.fluid.incubate.fleet.utils import utils
from tests.helpers.hadoop import make_hadoop


@pytest.fixture(autouse=True)
def _programs() -> None:
    fluid.framework.switch_main_program(fluid.Program())
    fluid.framework.switch_startup_program(fluid.Program())


def train(decorate: bool) -> list[float]:
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 4
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, 3])
        loss = fluid.layers.reduce_mean(fluid.layers.square(fluid.layers.fc(x, 2)))
        optimizer = fluid.optimizer.Adam(0.1)
        if decorate:
            with pytest.warns(UserWarning, match="the network trains in float32"):
                optimizer = fluid.contrib.mixed_precision.decorate(optimizer, init_loss_scaling=8.0)
        optimizer.minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        feed = {"x": np.ones((2, 3), np.float32)}
        losses = [exe.run(main, feed=feed, fetch_list=[loss])[0].item() for _ in range(4)]
        if decorate:
            assert optimizer.get_scaled_loss() is loss
            (scaling,) = exe.run(main, feed=feed, fetch_list=[optimizer.get_loss_scaling()])
            assert scaling.tolist() == [1.0]
            kept = {v.name: v.dtype.name for v in main.list_vars() if v.persistable}
            # What Paddle 1.8.5 saves of this optimizer besides the parameters and Adam's moments.
            wanted = {"loss_scaling_0": "FP32", "num_good_steps_0": "INT32", "num_bad_steps_0": "INT32"}
            assert wanted.items() <= kept.items()
    return losses


def test_mixed_precision_trains_in_float32() -> None:
    assert train(decorate=True) == train(decorate=False)


def test_the_lists_of_mixed_precision_match_fluid() -> None:
    lists = fluid.contrib.mixed_precision.AutoMixedPrecisionLists(["log"], ["mul"])
    assert "log" in lists.white_list - lists.black_list
    assert "mul" in lists.black_list - lists.white_list
    with pytest.raises(ValueError, match="both the white and the black list have mul"):
        fluid.contrib.mixed_precision.AutoMixedPrecisionLists(["mul"], ["mul"])


def test_operators_and_pairs_of_neighbours_are_counted_by_type() -> None:
    x = fluid.data("x", [None, 3])
    y = fluid.layers.relu(fluid.layers.fc(fluid.layers.relu(x), 2))
    fluid.layers.relu(y)
    singles, pairs = fluid.contrib.op_freq_statistic(fluid.default_main_program())
    assert singles == [("relu", 3), ("mul", 1), ("elementwise_add", 1)]
    assert pairs == [
        ("relu->mul", 1), ("mul->elementwise_add", 1), ("elementwise_add->relu", 1), ("relu->relu", 1),
    ]  # fmt: skip
    with pytest.raises(TypeError, match="takes a program"):
        fluid.contrib.op_freq_statistic(3)  # type: ignore[arg-type]


def test_memory_usage_refuses_programs_of_unknown_size() -> None:
    with pytest.raises(ValueError, match="must be positive, got 0"):
        fluid.contrib.memory_usage(fluid.default_main_program(), 0)
    fluid.layers.relu(fluid.data("x", [None, None]))
    with pytest.raises(ValueError, match="more than one -1"):
        fluid.contrib.memory_usage(fluid.default_main_program(), 2)
    with pytest.raises(TypeError, match="takes a program"):
        fluid.contrib.memory_usage(3, 2)  # type: ignore[arg-type]


def test_contrib_layers_refuse_mismatched_arguments() -> None:
    layers = fluid.contrib.layers
    x = fluid.data("ids", [None, 1], "int64")
    for negatives, nodes, leaves, said in (
        ([1], [2, 4], 3, "neg_samples_num_list has 1 layers, layer_node_num_list 2"),
        ([2, 1], [2, 4], 3, "layer 0 has 2 nodes, too few for 2"),
        ([1, 1], [2, 4], 6, "leaf_node_num is 6, expected less than the 6 nodes"),
    ):
        with pytest.raises(GraphError, match=said):
            layers.tdm_sampler(x, negatives, nodes, leaves)
    with pytest.raises(TypeError, match="dtype must be int32 or int64, got 'float32'"):
        layers.tdm_child(x, 3, 2, dtype="float32")
    wide, narrow = fluid.data("wide", [None, 4]), fluid.data("narrow", [None, 3])
    with pytest.raises(ShapeError, match="expected"):
        layers.partial_sum([wide, narrow])
    with pytest.raises(ShapeError, match="columns 3 to 5"):
        layers.partial_concat([wide], 3, 2)
    with pytest.raises(ShapeError, match="input has shape"):
        layers.ctr_metric_bundle(wide, narrow)
    with pytest.raises(TypeError, match="must be a class of optimizers"):
        fluid.contrib.extend_with_decoupled_weight_decay(int)


def test_random_orders_follow_from_the_seed_of_the_program() -> None:
    def first(seed: int) -> list[int]:
        main = fluid.Program()
        main.random_seed = seed
        with fluid.program_guard(main, fluid.Program()), fluid.scope_guard(fluid.Scope()):
            out = fluid.contrib.layers.shuffle_batch(fluid.data("x", [None, 1]))
            feed = {"x": np.arange(20, dtype=np.float32)[:, None]}
            return [int(one) for one in fluid.Executor().run(main, feed=feed, fetch_list=[out])[0].ravel()]

    assert first(1) == first(1) != first(2)
    assert sorted(first(2)) == list(range(20))


@pytest.mark.parametrize(("count", "wanted"), [(1, [0, 1, 2, 3, 4]), (2, [1, 3])])
def test_batches_are_divided_among_trainers(
    monkeypatch: pytest.MonkeyPatch, count: int, wanted: list[int]
) -> None:
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", str(count))
    monkeypatch.setenv("PADDLE_TRAINER_ID", str(count - 1))
    reader = fluid.contrib.reader.distributed_batch_reader(lambda: iter(range(5)))
    assert list(reader()) == wanted
    monkeypatch.setenv("PADDLE_TRAINER_ID", "5")
    with pytest.raises(ValueError, match="PADDLE_TRAINER_ID is 5"):
        fluid.contrib.reader.distributed_batch_reader(lambda: iter(range(5)))


def test_programs_are_saved_to_files_and_loaded_again(tmp_path: Path) -> None:
    fluid.layers.relu(fluid.data("x", [None, 3]))
    main = fluid.default_main_program()
    path = str(tmp_path / "__model__")
    utils.save_program(main, path)
    found = utils.load_program(path)
    assert [str(op) for op in found.global_block().ops] == [str(op) for op in main.global_block().ops]
    assert sorted(found.global_block().vars) == sorted(main.global_block().vars)
    utils.save_program(main, path, is_text=True)
    assert "relu" in Path(path).read_text()
    with pytest.raises(NotImplementedError, match="in text cannot be read"):
        utils.load_program(path, is_text=True)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HDFSClient:
    """A client of a stand-in for Hadoop's command, over a folder."""
    home, root = tmp_path / "hadoop", tmp_path / "files"
    make_hadoop(home / "bin", root)
    monkeypatch.setenv("STANDIN_ROOT", str(root))
    return HDFSClient(str(home), {"fs.default.name": "hdfs://x:1", "hadoop.job.ugi": "me,pw"})


def test_files_are_copied_to_and_from_hadoop(client: HDFSClient, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "w").write_text("values\n")
    assert client.pre_commands[1:] == ["fs", "-Dfs.default.name=hdfs://x:1", "-Dhadoop.job.ugi=me,pw"]
    assert not client.is_exist("/jobs")
    assert client.makedirs("/jobs/one")
    assert client.is_dir("/jobs/one")
    assert client.upload("/jobs/one", str(tmp_path / "model"))
    assert client.is_file("/jobs/one/w")
    assert client.cat("/jobs/one/w") == "values"
    assert [path.rpartition("/")[2] for path in client.ls("/jobs")] == ["one"]
    assert [path.rpartition("/")[2] for path in client.lsr("/jobs")] == ["w"]
    assert client.lsr("/jobs", excludes=["w"]) == []
    assert client.rename("/jobs/one", "/jobs/two")
    assert client.makedirs("/jobs/three")
    assert not client.rename("/jobs/three", "/jobs/two")
    assert client.download("/jobs/two/w", str(tmp_path / "back" / "w"))
    assert (tmp_path / "back" / "w").read_text() == "values\n"
    assert client.delete("/jobs/two")
    assert not client.is_exist("/jobs/two")
    assert client.cat("/jobs/two/w") == ""


def test_files_are_divided_among_trainers() -> None:
    files = [str(i) for i in range(7)]
    shares = [HDFSClient.split_files(files, trainer, 3) for trainer in range(3)]
    assert shares == [["0", "1", "2"], ["3", "4"], ["5", "6"]]


def test_messages_about_programs_match_fluid(tmp_path: Path) -> None:
    from paddlelike.fluid.proto import framework_pb2

    fluid.layers.relu(fluid.data("x", [None, 3]))
    utils.save_program(fluid.default_main_program(), str(tmp_path / "__model__"))
    program = framework_pb2.ProgramDesc.FromString((tmp_path / "__model__").read_bytes())
    assert [op.type for op in program.blocks[0].ops] == ["relu"]
    (x,) = (var for var in program.blocks[0].vars if var.name == "x")
    assert x.type.lod_tensor.tensor.data_type == framework_pb2.VarType.FP32 == 5
    assert (framework_pb2.AttrType.Value("INTS"), framework_pb2.INTS) == (3, 3)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        framework_pb2.Nothing  # noqa: B018
