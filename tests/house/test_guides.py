"""Snippets of the cookbook run, and the Chinese guides have the code and names of the English ones."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import paddlelike as fluid
from paddlelike.cli.app import app
from tests.helpers.fresh import fresh_programs
from tests.models.archive import read_archive

GUIDES = Path(__file__).parents[2] / "tutorials"
PAGE = GUIDES / "how_to" / "cookbook.md"
TASKS = re.findall(r"^### ([^\n]*)\n\n```(python|bash)\n(.*?)```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
(SETUP,) = re.findall(r"```python setup\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_every_task_has_a_snippet() -> None:
    assert len(TASKS) >= 30
    assert len(TASKS) == PAGE.read_text().count("\n### ")


def test_the_chinese_list_has_every_task() -> None:
    listed = re.findall(
        r"\| \[(.*?)\]\(\.\./how_to/cookbook.md#", (GUIDES / "zh" / "cookbook.md").read_text()
    )
    assert listed == [title for title, _, _ in TASKS]


@pytest.mark.parametrize(("kind", "text"), [one[1:] for one in TASKS], ids=[one[0] for one in TASKS])
def test_every_snippet_runs(kind: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if kind == "python":
        exec(compile(f"{SETUP}\n{text}", "cookbook.md", "exec"), {"__name__": "cookbook"})
        return
    for line in text.splitlines():
        name, *arguments = shlex.split(line, comments=True)
        assert name == "paddlelike"
        assert CliRunner().invoke(app, arguments).exit_code in (0, 1), line  # 1: something was found


ENGLISH = {
    "README": "../../README.md",
    "formats": "../reference/formats.md",
    "messages": "../reference/messages.md",
    "old_models": "../how_to/old_models.md",
    "onnx": "../how_to/onnx.md",
    "porting": "../how_to/porting.md",
    "saving": "../how_to/saving.md",
    "servers": "../how_to/servers.md",
    "tutorials": "../README.md",
}
BLOCK = re.compile(r"^```(?:python|bash|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIRST_CELL = re.compile(r"^\| (\[?`[^|]*?) \|", re.MULTILINE)


def test_the_ten_most_read_pages_are_translated() -> None:
    assert {page.stem for page in (GUIDES / "zh").glob("*.md")} == {*ENGLISH, "cookbook"}


@pytest.mark.parametrize("name", ENGLISH)
def test_code_and_names_match_the_english_page(name: str) -> None:
    chinese = (GUIDES / "zh" / f"{name}.md").read_text("utf-8")
    english = (GUIDES / "zh" / ENGLISH[name]).read_text("utf-8")
    assert name in ("README", "tutorials") or f"]({ENGLISH[name]}" in chinese
    assert [block for block in BLOCK.findall(chinese) if block not in english] == []
    if name in ("formats", "tutorials"):
        cells = [cell.replace("](../", "](") for cell in FIRST_CELL.findall(chinese)]
        assert cells == FIRST_CELL.findall(english)[: len(cells)]


FILES = (GUIDES / "how_to" / "files.md").read_text()
GOLDEN = Path(__file__).parents[1] / "golden"
#: For rows of the page, by their beginning: a file of the real system, and its name in the calls of the row.
SAMPLES = {
    "a directory with `__model__`": {"DIR": "fit_a_line/inference"},
    "a directory of": {"DIR": "fit_a_line/persistables"},
    "one such file": {"FILE": "fit_a_line/persistables/fc_0.w_0"},
    "`NAME.pdparams`": {"NAME": "fit_a_line/fluid_save/model"},
    "`inference.json`": {"inference": "paddle300/inference"},
    "`NAME.pdmodel`": {"NAME": "paddle262/mlp_adam/inference/model"},
    "`NAME.h5`": {"FILE": "tfh5/all.hdf5"},
    "`NAME.npz`": {"FILE": "fit_a_line/io.npz"},
    "`NAME.pt`": {"FILE": "nested/torch-ck.pt"},
    "`NAME.model`, `NAME.dnn`": {"FILE": "cntk/ck-sgd.dnn"},
    "`NAME.model` that begins": {"FILE": "dynet/whole.model"},
    "`NAME.zip`": {"FILE": "theano/shared.zip"},
}
#: For the other rows: how a directory gets such a file, and the name of it in the calls of the row.
MADE: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "`__model__` and `__params__`": (lambda to: save_model(to, params_filename="__params__"), "DIR", ""),
    "`__manifest__`": (lambda to: save_model(to), "DIR", ""),
    "`NAME.onnx`": (
        lambda to: (to / "m.onnx").write_bytes(read_archive("onnx_models")["cntk-mlp"]["model.onnx"]),
        "FILE",
        "m.onnx",
    ),
    "`NAME.safetensors`": (
        lambda to: fluid.interop.convert(str(GOLDEN / "fit_a_line/io.npz"), f"{to}/m.safetensors"),
        "PATH",
        "m.safetensors",
    ),
}
#: Rows that tests/io, tests/cli/test_commands.py (compact) and tests/formats/test_explain.py follow.
ELSEWHERE = ("one file for many variables", "`__deltas__`", "a file that begins with `version")


def save_model(folder: Path, params_filename: str | None = None) -> None:
    with fresh_programs(), fluid.scope_guard(fluid.Scope()):
        out = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        fluid.io.save_inference_model(str(folder), ["x"], [out], exe, params_filename=params_filename)


#: Calls that need a network; tests/io runs them.
NEEDS_A_PROGRAM = ("load_persistables", "fluid.load(")


def test_every_row_of_the_table_of_files_has_a_file() -> None:
    rows = [line for line in FILES.splitlines() if line.startswith("| ")][1:]
    starts = (*SAMPLES, *MADE, *ELSEWHERE)
    assert [row for row in rows if sum(row.startswith(f"| {start}") for start in starts) != 1] == []
    assert len(rows) == len(starts)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of what no variable can hold
@pytest.mark.parametrize("row", [*SAMPLES, *MADE])
def test_each_file_opens_by_the_calls_in_its_table_row(row: str, tmp_path: Path) -> None:
    if row in MADE:
        make, name, file = MADE[row]
        make(tmp_path)
        sample = tmp_path / file
    else:
        ((name, golden),) = SAMPLES[row].items()
        sample = GOLDEN / golden
    (cell,) = re.findall(rf"^\| {re.escape(row)}[^|]* \| ([^|]*) \|", FILES, re.MULTILINE)
    calls = [
        call for call in re.findall(r"`(fluid\.[^`]*)`", cell) if not any(n in call for n in NEEDS_A_PROGRAM)
    ]
    assert calls
    known = {"fluid": fluid, "exe": fluid.Executor(fluid.CPUPlace()), name: str(sample)}
    for call in calls:
        with fluid.scope_guard(fluid.Scope()):
            assert eval(call.replace(f'"{name}"', name), known), call


#: What the steps of a guide need before they run.
NETWORK = """
import numpy as np, paddlelike as fluid
from paddlelike import training
x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1], "int64")
out = fluid.layers.fc(x, 3, act="softmax")
loss, error = fluid.layers.mean(fluid.layers.cross_entropy(out, y)), fluid.layers.accuracy(out, y)
exe = fluid.Executor()
"""
DATA = """
images = np.random.default_rng(0).normal(size=(60, 4)).astype("float32")
labels = np.random.default_rng(1).integers(0, 3, (60, 1))
test_source = source = training.MinibatchSourceFromData({"x": images, "y": labels}, max_samples=180)
"""
BEFORE = {
    "saving": f"""{NETWORK}
fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
exe.run(fluid.default_startup_program())
fluid.io.save_persistables(exe, "models")""",
    "sessions": NETWORK + DATA,
    "growing_tables": "",
    "quantization": "",
}


@pytest.mark.parametrize("name", BEFORE)
def test_the_code_of_every_guide_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (GUIDES / "how_to" / f"{name}.md").read_text().replace("0_000", "0")  # fewer samples
    for index, step in enumerate(re.findall(r"```python\n(.*?)```", text, re.DOTALL)):
        if step.startswith("while trainer"):
            step = f"trainer = training.Trainer(out, (loss, error), fluid.optimizer.SGD(0.1))\n{step}"
        (tmp_path / str(index)).mkdir()
        monkeypatch.chdir(tmp_path / str(index))
        with fluid.scope_guard(fluid.Scope()), fresh_programs():
            exec(compile(f"{BEFORE[name]}\n{step}", f"{name}.md", "exec"), {"__name__": name})


FEED = 'feed={"x": np.ones((6, 4), "float32"), "y": np.zeros((6, 1), "int64")}'
JOBS = {
    "servers": "from paddlelike.distributed import resumable_steps\nfluid.optimizer.SGD(0.1).minimize(loss)",
    "workers": "",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_the_script_and_the_command_of_a_guide_train_and_save(name: str, tmp_path: Path) -> None:
    text = (GUIDES / "how_to" / f"{name}.md").read_text()
    if name == "workers":
        pytest.importorskip("jax", reason="jax is in the extra 'test-all'")
    (script,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (command,) = re.findall(r"^python (-m paddlelike\..* train\.py)$", text, re.MULTILINE)
    script = script.replace("feed=...", FEED).replace("1000", "3").replace("10)", "3)")
    (tmp_path / "train.py").write_text(f"{NETWORK}\n{JOBS[name]}\n{script}")
    environment = {**os.environ, "PYTHONPATH": str(GUIDES.parent)}
    done = subprocess.run(
        [sys.executable, *command.split()],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    saved = max((tmp_path / "models").rglob("__manifest__"))
    assert re.search(
        r"(files are as they were|1 file is as it was) saved", str(fluid.io.verify(saved.parent))
    )
