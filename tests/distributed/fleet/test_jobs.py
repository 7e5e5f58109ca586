"""Scripts of fleet as real jobs: servers and trainers that the launcher starts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.formats.paddle import selected_rows
from tests.distributed.launch.launcher import wait_until
from tests.helpers.hadoop import make_hadoop
from tests.helpers.saved_files import read_variables

PROJECT = Path(__file__).parents[3]
JOB = Path(__file__).parent / "driver.py"

pytestmark = pytest.mark.slow


def run_job(home: Path, mode: str, first: int, last: int, load: str, save: str, *options: str) -> str:
    command = [sys.executable, "-m", "paddlelike.distributed.launch", "--max_restarts=0", *options, str(JOB)]
    done = subprocess.run(
        [*command, mode, str(first), str(last), load, save],
        cwd=home,
        env=os.environ | {"PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def losses(home: Path, worker: int) -> list[float]:
    log = (home / "log" / f"workerlog.{worker}").read_text()
    assert log.endswith("stopped\n")
    return [float(text) for text in re.findall(r"loss (\S+)", log)]


@pytest.mark.parametrize("mode", ["sync", "async", "half_async", "geo"])
def test_a_job_learns_and_its_servers_end(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if mode == "sync":  # this one is watched: it lasts for more than the five seconds between two lines
        monkeypatch.setenv("SECONDS_A_STEP", "0.09")
        check_progress(run_job(tmp_path, mode, 0, 80, "-", "models", "--progress"))
    else:
        run_job(tmp_path, mode, 0, 80, "-", "models")
    for worker in range(2):
        found = losses(tmp_path, worker)
        assert len(found) == 80
        assert np.mean(found[-10:]) < 0.5  # of a target whose variance is above 4
    for server in range(2):
        assert (tmp_path / "log" / f"serverlog.{server}").read_text() == "served\n"
    saved = read_variables(tmp_path / "models")
    assert {"embedding_0.w_0", "embedding_0.w_0_moment_0", "fc_0.w_0", "@LR_DECAY_COUNTER@"} <= set(saved)
    exported = read_variables(tmp_path / "models.model")
    assert set(exported) == {"__model__", "embedding_0.w_0", "fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0"}
    if mode == "sync":  # otherwise the other trainer may have trained on between the two
        assert all(exported[name] == saved[name] for name in set(exported) - {"__model__"})
    learned_and_exported(tmp_path / "models.model")


def learned_and_exported(directory: Path) -> None:
    exe = fluid.Executor()
    program, feeds, fetches = fluid.io.load_inference_model(str(directory), exe)
    rng = np.random.RandomState(7)
    x, ids = rng.uniform(-1, 1, (500, 13)).astype("float32"), rng.randint(0, 3000, (500, 1))
    (found,) = exe.run(program, feed=dict(zip(feeds, (x, ids), strict=True)), fetch_list=fetches)
    expected = x.sum(1, keepdims=True) + 0.1 * (ids % 7)
    assert np.mean((found - expected) ** 2) < 0.5 * np.var(expected)


def test_another_number_of_servers_continues_from_the_save(tmp_path: Path) -> None:
    run_job(tmp_path, "sync", 0, 20, "-", "first")
    run_job(tmp_path, "sync", 20, 40, "first", "second", "--server_num=3")
    resumed = losses(tmp_path, 0)
    run_job(tmp_path, "sync", 0, 40, "-", "whole")
    assert losses(tmp_path, 0)[20:] == resumed
    assert read_variables(tmp_path / "second") == read_variables(tmp_path / "whole")


def check_progress(said: str) -> None:
    """Assert that the launcher has told the steps of the workers and the rounds of the servers."""
    servers = re.findall(r"servers (\S+),(\S+), 2 workers", said)[0]
    seen = [
        line
        for line in said.splitlines()
        if "worker 0: step" in line and all(f"{server}: round" in line for server in servers)
    ]
    assert seen, said  # the first and the last may come before a server answers, or after it has ended
    assert re.search(r"round [1-9]\d*, \d+\.\d/s, in \d+\.\d\d MB/s, out", " ".join(seen))


def _run_days(home: Path, servers: int, more: dict[str, str]) -> subprocess.Popen[str]:
    home.mkdir()
    command = [
        sys.executable,
        "-m",
        "paddlelike.distributed.launch",
        f"--server_num={servers}",
        "--worker_num=2",
    ]
    environment = os.environ | {"PYTHONPATH": str(PROJECT), "SECONDS_A_STEP": "0.02"}
    job = [*command, str(JOB.with_name("growing_tables.py")), str(home / "saves")]
    return subprocess.Popen(job, cwd=home, env=environment | more, stderr=subprocess.PIPE, text=True)


def _read_table(path: Path) -> dict[int, bytes]:
    rows = selected_rows.read(path.read_bytes())
    return {i: row.tobytes() for i, row in zip(rows.rows(), np.asarray(rows.array), strict=True)}


def _read_last_day(home: Path) -> dict[str, dict[int, bytes]]:
    return {file.name: _read_table(file) for file in sorted((home / "saves" / "day29").glob("emb*"))}


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, bytes]]:
    """The tables of two servers that nobody disturbed."""
    home = tmp_path_factory.mktemp("days") / "two"
    with _run_days(home, 2, {}) as launcher:
        _, said = launcher.communicate(timeout=120)
        assert launcher.returncode == 0, said
    assert "emb" in read_variables(home / "saves" / "model")
    found = _read_last_day(home)
    assert set(found) == {"emb", "emb_counts", "emb_moment_0"}
    assert 10 < len(found["emb"]) <= len(found["emb_counts"]) < 60  # of some 70 ids that came
    return found


@pytest.mark.parametrize("kind", ["Memory", "SSD"])
def test_growing_tables_have_the_same_bits_after_one_of_three_servers_is_killed(
    tmp_path: Path, kind: str, days: dict[str, dict[int, bytes]]
) -> None:
    disk = {"TABLE_CLASS": f"{kind}SparseTable", "PADDLELIKE_TABLE_STORE": str(tmp_path / "stores")}
    home = tmp_path / "killed"
    with _run_days(home, 3, disk | {"SAVE_MODE": "2", "PADDLELIKE_HOT_ROWS": "7"}) as launcher:
        wait_until((home / "saves" / "day11").exists, "the second day")
        os.kill(int((home / "server0.pid").read_text()), signal.SIGKILL)
        _, said = launcher.communicate(timeout=120)
        assert launcher.returncode == 0, said
    assert _read_last_day(home) == days


def test_a_script_of_pslib_trains_saves_forgets_and_loads(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(PROJECT), "PADDLELIKE_CHECKPOINT_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "paddlelike.distributed.launch", "--max_restarts=0"]
    command += ["--server_num=2", "--worker_num=2", str(JOB.with_name("clicks.py")), str(tmp_path / "saves")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    log = (tmp_path / "log" / "workerlog.0").read_text()
    found = [float(text) for text in re.findall(r"loss (\S+)", log)]
    assert len(found) == 3
    assert found[-1] < 0.05  # of 0.69 without any knowledge
    rows, empty, again, count, clicked = log.splitlines()[-1].split()
    assert (rows, empty, again, count, clicked) == ("58", "0", "58", "58", "True")  # 39 words, 19 users
    assert set(_read_table(tmp_path / "saves" / "table" / "embedding")) >= {1 << 50, 1}


#: What Paddle 1.8.5's optimizer_factory.py keeps of this network: ids and variables of its tables, and keys.
_WEIGHTS = ["a.b_0", "a.w_0", "b.b_0", "b.w_0"]
_SUMS = ["norm.batch_size", "norm.batch_square_sum", "norm.batch_sum"]
_INSIDE = {
    "config": {
        "pull_sparse": [0, 1, 2],
        "push_sparse": [0, 1, 2],
        "pull_dense": [3, 4],
        "push_dense": [3, 4],
    },
    "dense": [[at, names, [f"{name}@GRAD" for name in names]] for at, names in ((3, _WEIGHTS), (4, _SUMS))],
    "keys": (  # noqa: SIM905
        "adjust_ins_weight async_tables check_nan_var_names copy_table device_worker dump_converter "
        "dump_fields dump_fields_path dump_file_num dump_param dump_slot fleet_desc local_tables loss_names "
        "no_cvm optimizer program_configs program_id_to_worker scale_datanorm stat_var_names trainer use_cvm "
        "worker_skipped_ops"
    ).split(),
}


@pytest.mark.obeys(
    "call it after fleet.init(...) and fleet.distributed_optimizer(...).minimize(loss)",
    "name the parameters: src_var_list and dest_var_list",
    "pass startup_programs=[...], the one that was current when the network was built",
    "supported are pull_dense, {}",
    "save before a pass; load_model goes back to that save",
)
def test_a_script_may_use_internals_of_the_pslib_fleet(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(PROJECT), "PADDLELIKE_CHECKPOINT_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "paddlelike.distributed.launch", "--max_restarts=0", "--server_num=2"]
    command += ["--worker_num=2", str(JOB.with_name("inside.py")), str(tmp_path / "saves")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    log = (tmp_path / "log" / "workerlog.0").read_text()
    assert done.returncode == 0, done.stderr + log
    said = json.loads(log.partition("said ")[2].splitlines()[0])
    assert {key: said[key] for key in _INSIDE} == _INSIDE
    drawn = np.concatenate([np.random.RandomState(k).randint(1, 20, (80, 2)) for k in (0, 1)])
    words = np.stack([drawn[:, 1], drawn[:, 1] + 1])
    assert said["rows"] == [len(np.unique(words)), 2]
    assert said["back"][0] == said["back"][1]
    assert said["loaded"] == len(np.unique(drawn[:, 0]))
    starts = [
        "call it after fleet.init(...)",
        "name the parameters: src_var_list",
        "pass startup_programs=[...],",
    ]
    starts += ["supported are pull_dense, client_flush", "save before a pass; load_model goes back"]
    assert [hint[: len(start)] for hint, start in zip(said["hints"], starts, strict=True)] == starts
    np.testing.assert_allclose(said["shows"], [words.size, 0.98 * words.size], rtol=1e-6)
    assert said["late"] and not said["same"]  # noqa: PT018  (copied before the last five batches)
    assert np.all(np.array(said["pulled"]) != 7)
    tables = {name: _read_table(tmp_path / "saves" / name / name) for name in ("embedding", "copied")}
    assert tables["embedding"].keys() == tables["copied"].keys()
    rows = [np.array([np.frombuffer(some[one], "f4") for one in sorted(some)]) for some in tables.values()]
    apart = np.abs(rows[0] - rows[1]).max(1)
    # Rows begin within 0.7, by the name of the table; those that came after the last copy still differ so.
    assert (apart < 0.1).mean() > 0.5
    assert apart.max() > 0
    assert set(_read_table(tmp_path / "saves" / "listed" / "embedding")) == {3, 5}


@pytest.mark.slow
def test_an_old_script_of_pslib_trains_on_its_own_files(tmp_path: Path) -> None:
    make_hadoop(tmp_path / "hadoop" / "bin", tmp_path / "files")
    (tmp_path / "all").symlink_to("/")
    environment = os.environ | {
        "PYTHONPATH": str(PROJECT), "PADDLELIKE_CHECKPOINT_DIR": str(tmp_path),
        "HADOOP_HOME": str(tmp_path / "hadoop"), "STANDIN_ROOT": str(tmp_path / "all"),
    }  # fmt: skip
    command = [sys.executable, "-m", "paddlelike.distributed.launch", "--max_restarts=0", "--server_num=2"]
    command += ["--worker_num=2", str(JOB.with_name("old_pslib.py")), str(tmp_path / "saves")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    log = (tmp_path / "log" / "workerlog.0").read_text()
    assert done.returncode == 0, done.stderr + log
    _, auc, rate, rows, count, shows, clicks = log.splitlines()[-1].split()
    drawn = np.concatenate([np.random.RandomState(k).randint(0, 20, 400) % 2 for k in (0, 1)])
    assert (float(auc), float(rate)) == (1.0, pytest.approx(drawn.mean()))
    assert (rows, count) == ("20", "800")
    days = 0.98 * (1 + 0.98)  # pslib's decay, after each of two passes of three epochs
    assert float(shows) == pytest.approx(3 * 800 * days, rel=1e-5)  # counted in float32
    assert float(clicks) == pytest.approx(3 * drawn.sum() * days, rel=1e-5)
    assert "'copied'" not in log
    assert "pslib's use_cvm have no effect here" in log
    passes = tmp_path / "saves" / "20200101"
    expected = sorted((i << 50) - (1 << 63) for i in range(20))
    for name in ("1", "2", "delta-2", "delta-2/000_cache"):
        (whole,) = [*(passes / name).glob("embedding"), *(passes / name).glob("__deltas__/embedding.*.0")]
        assert sorted(_read_table(whole)) == expected
    dense = (passes / "delta-2" / "dnn_plugin" / "dense.2").read_bytes()
    files = [(passes / "2" / name).read_bytes() for name in ("fc_0.b_0", "fc_0.w_0")]
    assert dense == b"".join(files)
    lines = (tmp_path / "saves" / "donefile.txt").read_text().splitlines()
    assert [line.split("\t")[3] for line in lines] == ["1", "2"]


@pytest.mark.parametrize(
    ("damage", "call", "what"),
    [
        ("id", "save", "the checksum of a row does not match"),
        ("row", "delta", "the checksum of a row does not match"),
        ("checksum", "train", "the checksum of a row does not match"),
        ("zeros", "save", "the checksum of a row does not match"),
        ("cut", "save", "the file ends too early"),
        ("cut", "train", "the file ends too early"),
    ],
)
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the file of a store has no name but there")
def test_a_damaged_store_of_a_server_process_ends_a_call_at_once_with_an_error(
    damage: str, call: str, what: str, tmp_path: Path
) -> None:
    more = {"PADDLELIKE_TABLE_STORE": str(tmp_path / "stores"), "PADDLELIKE_HOT_ROWS": "5"}
    command = [sys.executable, "-m", "paddlelike.distributed.launch", "--max_restarts=0", "--server_num=2"]
    command += [str(JOB.with_name("damaged_store.py")), str(tmp_path), damage, call]
    environment = os.environ | {"PYTHONPATH": str(PROJECT), **more}
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=150, check=False)
    log = (tmp_path / "log" / "workerlog.0").read_text()
    kind, said, is_unchanged = json.loads(log.partition("said ")[2].splitlines()[0])
    assert is_unchanged
    assert f"StorageError: the rows in {tmp_path / 'stores'} cannot be read: {what}" in said
    if call == "train":
        assert kind == "OperatorError"
    else:
        assert said.startswith("nothing was saved: ")
        assert f"hint: {tmp_path / 'saved'} holds the whole save of" in said
