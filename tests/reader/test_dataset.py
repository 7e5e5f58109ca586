"""Datasets: samples of text files as batches, and programs run over them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import FeedError, UnsupportedError

LINES = [
    "2 1.5 2.5 3 1 2 3 1 7",
    "2 0.5 0.25 1 9 1 8",
    "2 5 6 2 4 5 1 3",
    "2 1 1 1 1 1 1",
    "2 2 2 2 2 2 1 2",
]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    paths[0].write_text("\n".join(LINES[:3]) + "\n")
    paths[1].write_text("\n".join(LINES[3:]))  # without a last newline
    return [str(path) for path in paths]


@pytest.fixture
def variables() -> list[Any]:
    return [
        fluid.layers.data("x", [2]),
        fluid.layers.data("w", [1], dtype="int64", lod_level=1),
        fluid.data("d", [None, 1], "int64"),
    ]


def dataset(kind: str, files: list[str], variables: list[Any], batch_size: int = 2) -> Any:
    data = fluid.DatasetFactory().create_dataset(kind)
    data.set_filelist(files)
    data.set_use_var(variables)
    data.set_batch_size(batch_size)
    data.set_thread(3)
    if kind == "InMemoryDataset":
        data.load_into_memory()
    return data


KINDS = ["QueueDataset", "InMemoryDataset"]


@pytest.mark.parametrize("kind", KINDS)
def test_batches_span_the_ends_of_files(kind: str, files: list[str], variables: list[Any]) -> None:
    data = dataset(kind, files, variables)
    for _ in range(2):
        feeds = list(data.feeds())
        assert [np.array(feed["x"]).tolist() for feed in feeds] == [
            [[1.5, 2.5], [0.5, 0.25]],
            [[5, 6], [1, 1]],
            [[2, 2]],
        ]
        assert [np.array(feed["w"]).ravel().tolist() for feed in feeds] == [[1, 2, 3, 9], [4, 5, 1], [2, 2]]
        assert [feed["w"].lod() for feed in feeds] == [[[0, 3, 4]], [[0, 2, 3]], [[0, 2]]]
        assert [np.array(feed["d"]).tolist() for feed in feeds] == [[[7], [8]], [[3], [1]], [[2]]]
    assert np.array(feeds[0]["x"]).dtype == np.float32
    assert np.array(feeds[0]["w"]).shape == (4, 1)


def test_values_match_the_values_that_fluid_reads(tmp_path: Path) -> None:
    """The values that Fluid 1.8.5 prints of these lines: ids of 64 bits, and zeros in memory."""
    lines = "3 0 5 0 1 7 2 0.0 1.5", "1 0 1 0 1 0.0", "2 18446744073709551615 9223372036854775808 1 3 2 0 0"
    (tmp_path / "part").write_text("\n".join([*lines, "2 -1 4 1 3 1 2.5"]))
    a, c = (fluid.data(name, [None, 1], dtype, 1) for name, dtype in (("a", "int64"), ("c", "float32")))
    found = {}
    for kind in KINDS:
        variables = [a, fluid.data("b", [None, 1], "int64"), c]
        (feed,) = dataset(kind, [str(tmp_path / "part")], variables, batch_size=4).feeds()
        found[kind] = [np.array(feed[name]).ravel().tolist() for name in ("a", "b", "c")]
    ids = [-1, -(1 << 63), -1, 4]
    assert found["QueueDataset"] == [[0, 5, 0, 0, *ids], [7, 0, 3, 3], [0, 1.5, 0, 0, 0, 2.5]]
    assert found["InMemoryDataset"] == [[5, 0, *ids], [7, 0, 3, 3], [1.5, 0, 0, 2.5]]


def test_dataset_files_are_read_through_the_pipe_command(files: list[str], variables: list[Any]) -> None:
    data = dataset("QueueDataset", files, variables, batch_size=8)
    data.set_pipe_command("sed 's/^2 /2 1/' | head -n 1")
    (feed,) = data.feeds()
    assert np.array(feed["x"]).tolist() == [[11.5, 2.5], [11.0, 1.0]]


def test_a_command_that_fails_is_an_error(files: list[str], variables: list[Any]) -> None:
    data = dataset("QueueDataset", files, variables)
    data.set_pipe_command("cat; exit 3")
    with pytest.raises(FeedError, match="ended with status 3"):
        list(data.feeds())


def test_a_missing_file_is_an_error(variables: list[Any], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        list(dataset("QueueDataset", [str(tmp_path / "nowhere")], variables).feeds())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("3 1 2 3 1 1 1 1", r"'x' has shape \[-1, 2\], the line holds 3 values"),
        ("2 1 2 5 1 1", "'w' needs 5 values, 2 are left"),
        ("2 1 2 1 -9223372036854775809 1 1", "expected a count and values for 'w': .* too large"),
        ("2 1 2 1 18446744073709551616 1 1", "expected a count and values for 'w': .* too large"),
        ("2 1 2 1 1", "expected a count and values for 'd'"),
        ("2 1 two 1 1 1 1", "expected a count and values for 'x'"),
        ("2 1 2 1 1 1 1 9 9", "2 values are left over"),
    ],
    ids=["width", "short", "low id", "high id", "missing", "word", "surplus"],
)
def test_an_error_in_a_line_names_the_file_and_line(
    line: str, words: str, variables: list[Any], tmp_path: Path
) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(f"{LINES[0]}\n\n{line}\n")
    with pytest.raises(FeedError, match=rf"bad\.txt, line 3: {words}"):
        list(dataset("QueueDataset", [str(path)], variables).feeds())


def test_samples_in_memory_are_shuffled_counted_and_released(files: list[str], variables: list[Any]) -> None:
    data = dataset("InMemoryDataset", files, variables, batch_size=1)

    def order() -> list[float]:
        return [float(np.array(feed["x"])[0, 0]) for feed in data.feeds()]

    before = order()
    assert data.get_memory_data_size() == data.get_shuffle_data_size() == 5
    random.seed(5)
    data.local_shuffle()
    first = order()
    assert sorted(first) == sorted(before)
    assert first != before
    data.load_into_memory()
    random.seed(5)
    data.global_shuffle()
    assert order() == first
    data.release_memory()
    assert data.get_memory_data_size() == 0
    with pytest.raises(FeedError, match="load_into_memory"):
        order()
    data.preload_into_memory(2)
    data.wait_preload_done()
    assert order() == before


def test_unsupported_calls_of_a_dataset_are_refused(files: list[str], variables: list[Any]) -> None:
    data = dataset("QueueDataset", files, variables)
    for call in (data.local_shuffle, data.global_shuffle):
        with pytest.raises(NotImplementedError):
            call()
    with pytest.raises(ValueError, match="FileInstantDataset"):
        fluid.DatasetFactory().create_dataset("FileInstantDataset")
    with pytest.raises(ValueError, match="batch_size"):
        data.set_batch_size(0)
    with pytest.raises(ValueError, match="'z' is FP64"):
        data.set_use_var([fluid.data("z", [None, 1], "float64")])


def test_slots_may_have_words_before_their_values(variables: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "part"
    path.write_text("1 id7 1 some-text 2 1.5 2.5 3 1 2 3 1 7\n")
    data = dataset("InMemoryDataset", [], variables)
    data.set_filelist([str(path)])
    data.set_parse_content(True)
    data.set_parse_ins_id(True)
    data.load_into_memory()
    assert data.get_memory_data_size() == 1
    (feed,) = data.feeds()
    np.testing.assert_array_equal(np.array(feed["x"]), [[1.5, 2.5]])
    data.set_parse_logkey(True)
    with pytest.raises(FeedError, match="expected 1, then the log key"):
        data.load_into_memory()


def test_merging_samples_is_refused(files: list[str], variables: list[Any]) -> None:
    data = dataset("InMemoryDataset", files, variables)
    for merge in (data.set_merge_by_lineid, lambda: data.set_enable_pv_merge(True)):
        merge()
        with pytest.raises(UnsupportedError, match="not merged here"):
            data.load_into_memory()


def test_a_command_reads_files_of_hadoop(
    files: list[str], variables: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hadoop = tmp_path / "hadoop"
    hadoop.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ncat {files[0]}\n')
    hadoop.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    data = dataset("QueueDataset", ["hdfs:/data/a b.txt"], variables)
    data.set_hdfs_config("hdfs://name:9000", "me,secret")
    assert sum(len(np.array(feed["x"])) for feed in data.feeds()) == 3
    asked = (tmp_path / "asked").read_text().strip()
    where = "-D fs.default.name=hdfs://name:9000 -D hadoop.job.ugi=me,secret"
    assert asked == f"fs {where} -cat hdfs:/data/a b.txt"
    data.set_download_cmd(f"cat {files[1]} #")  # a command of several words
    assert sum(len(np.array(feed["x"])) for feed in data.feeds()) == 2


def test_a_boxps_dataset_is_an_in_memory_dataset(files: list[str], variables: list[Any]) -> None:
    data = dataset("BoxPSDataset", files, variables)
    data.set_date("20200131")
    data.begin_pass()
    data.load_into_memory()
    data.end_pass(True)
    assert data.get_memory_data_size() == 5


def test_a_batch_has_32_samples_by_default_as_in_fluid(tmp_path: Path) -> None:
    path = tmp_path / "samples"
    path.write_text("1 0.5\n" * 70)
    data = fluid.DatasetFactory().create_dataset()
    data.set_use_var([fluid.data("x", [None, 1])])
    data.set_filelist([str(path)])
    assert data.desc().startswith('name: "MultiSlotDataFeed"\nmulti_slot_desc {')
    assert [len(np.array(feed["x"])) for feed in data.feeds()] == [32, 32, 6]
    empty = fluid.DatasetFactory().create_dataset("InMemoryDataset").desc()
    assert empty == 'name: "MultiSlotInMemoryDataFeed"\npipe_command: "cat"\n'


def test_dataset_descriptions_match_paddle(variables: list[Any]) -> None:
    text = dataset("QueueDataset", [], variables).desc()
    assert text.startswith('name: "MultiSlotDataFeed"\nbatch_size: 2\nmulti_slot_desc {\n  slots {\n')
    assert 'name: "w"\n    type: "uint64"\n    is_used: true\n  }' in text
    assert "is_dense: true\n    is_used: true\n    shape: -1\n    shape: 2\n" in text
    assert dataset("BoxPSDataset", [], variables).desc() == text.replace("MultiSlotData", "PaddleBoxData")
    ranked = dataset("QueueDataset", [], variables)
    ranked.set_pv_batch_size(3)
    ranked.set_rank_offset("ranks")
    assert ranked.desc() == text + 'rank_offset: "ranks"\npv_batch_size: 3\n'


# Programs over datasets


def network(variables: list[Any]) -> tuple[Any, Any]:
    x, w, _ = variables
    sums = fluid.layers.sequence_pool(fluid.layers.cast(w, "float32"), "sum")
    loss = fluid.layers.mean(fluid.layers.fc(x, 3)) + fluid.layers.mean(sums)
    return loss, sums


@pytest.mark.parametrize("kind", KINDS)
def test_training_over_a_dataset_equals_training_on_its_batches(
    kind: str, files: list[str], variables: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    fluid.default_startup_program().random_seed = 3
    loss, sums = network(variables)
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor()
    data = dataset(kind, files, variables)
    exe.run(fluid.default_startup_program())
    losses = [float(exe.run(feed=feed, fetch_list=[loss])[0][0]) for feed in data.feeds()]
    weight = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())

    exe.run(fluid.default_startup_program())
    main = fluid.default_main_program()
    titles = ["the loss", "sums"]
    returned = exe.train_from_dataset(main, data, fetch_list=[loss, sums], fetch_info=titles, print_period=2)
    assert returned is None
    np.testing.assert_array_equal(fluid.global_scope().find_var("fc_0.w_0").get_tensor(), weight)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("batch 2: the loss: [")
    assert float(printed[0].split("[")[1].rstrip("]")) == pytest.approx(losses[1], abs=1e-6)
    assert printed[1:] == ["batch 2: sums: [[9.],", " [1.]]"]


def test_a_prediction_over_a_dataset_changes_nothing(
    files: list[str], variables: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    loss, _ = network(variables)
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    version = fluid.global_scope().find_var("fc_0.w_0").version
    exe.infer_from_dataset(test, dataset("QueueDataset", files, variables), fetch_list=[loss], print_period=1)
    assert fluid.global_scope().find_var("fc_0.w_0").version == version
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["batch 1", "batch 2", "batch 3"]


def test_a_fetch_handler_receives_values(files: list[str], variables: list[Any]) -> None:
    loss, _ = network(variables)
    seen = []

    class Mine(fluid.executor.FetchHandler):
        def handler(self, res_dict: dict[str, Any]) -> None:
            seen.append({name: array.shape for name, array in res_dict.items()})

    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    data = dataset("QueueDataset", files, variables)
    exe.train_from_dataset(dataset=data, fetch_handler=Mine({"loss": loss}, period_secs=0))
    assert seen == [{"loss": (1,)}] * 3
    seen.clear()
    exe.train_from_dataset(dataset=data, fetch_handler=Mine({"loss": loss}))
    assert len(seen) == 1


def test_runs_without_a_dataset_or_with_too_few_texts_are_refused(
    files: list[str], variables: list[Any]
) -> None:
    loss, _ = network(variables)
    exe = fluid.Executor()
    with pytest.raises(RuntimeError, match="dataset is None"):
        exe.train_from_dataset()
    data = dataset("QueueDataset", files, variables)
    with pytest.raises(ValueError, match="1 texts for 2 variables"):
        exe.train_from_dataset(dataset=data, fetch_list=[loss, loss], fetch_info=["loss"])


def test_a_dataset_loader_gives_one_feed_per_place(files: list[str], variables: list[Any]) -> None:
    data = dataset("QueueDataset", files, variables)
    loader = fluid.io.DataLoader.from_dataset(data, fluid.cpu_places(2))
    assert [len(group) for group in loader()] == [2]
    loader = fluid.io.DataLoader.from_dataset(data, fluid.cpu_places(2), drop_last=False)
    assert [len(group) for group in loader] == [2, 1]
    with pytest.raises(TypeError, match="DatasetFactory"):
        fluid.io.DataLoader.from_dataset("files", fluid.cpu_places(1))
