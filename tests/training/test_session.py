"""Training sessions: their checkpoints beside those of the real CNTK 2.7, and what they do at their times."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import paddlelike as fluid
from paddlelike import training
from paddlelike.io.checkpoints.numbered import NumberedCheckpoints
from tests.helpers.fresh import fresh_programs
from tests.training.small import GOLDEN, X, Y, assert_same, criterion, source, trainer, values

UNITS = {unit.name: unit for unit in training.DataUnit}


def run(
    folder: Path,
    *writers: Any,
    samples: int = 50,
    size: int = 4,
    frequency: Any = None,
    unit: str = "sample",
    preserve: bool = False,
    restore: bool = True,
    cv: Any = None,
    rows: int = 10,
    data: Any = None,
    **more: Any,
) -> tuple[training.Trainer, list[Any]]:
    """Run a session as ``dump_training.py`` of the golden files does."""
    calls: list[Any] = []

    def callback(index: int, average: float, count: int, minibatches: int) -> bool:
        calls.append([index, count, minibatches])
        return len(calls) < cv[2]

    if cv:
        test = training.MinibatchSourceFromData({"x": X, "y": Y}, max_samples=9)
        more["cv_config"] = training.CrossValidationConfig(test, (cv[0], UNITS[cv[1]]), 4, callback)
    keep = {"keep_best": more.pop("keep_best")} if "keep_best" in more else {}
    given = frequency if not frequency else (frequency, UNITS[unit])
    config = training.CheckpointConfig(folder / "m", given, restore, preserve, **keep)
    one = trainer(*writers)
    data = source(rows) if data is None else data
    training.training_session(one, data, size, max_samples=samples, checkpoint_config=config, **more).train()
    return one, calls


def files(folder: Path) -> dict[str, int]:
    return {Path(one.path).name: one.step for one in NumberedCheckpoints(folder / "m").list()}


def label(config: dict[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in config.items())


# Every other one of the real runs: half of the time, and every kind.
@pytest.mark.parametrize(("config", "real"), GOLDEN["sessions"][::2] + GOLDEN["sessions"][-5::2], ids=str)
def test_a_session_writes_the_same_checkpoints_as_cntk(
    tmp_path: Path, config: dict[str, Any], real: dict[str, Any]
) -> None:
    """Rows C24 to C29, C34: names (with the dot), numbers of samples, callbacks."""
    config = dict(config)
    again = config.pop("again", None)
    one, calls = run(tmp_path, **config)
    if again is not None:
        with fresh_programs():
            one, calls = run(tmp_path, **{**config, "samples": again})
    want = {f"m.{name[1:]}" if name[1:] else name: count for name, count in real["files"].items()}
    if want:  # CNTK leaves an older one, also from an earlier run: facts that its users lose work by
        want["m"] = real["seen"]
    assert files(tmp_path) == want
    assert one.total_number_of_samples_seen == real["seen"]
    assert calls == real["calls"]


@pytest.mark.parametrize(("given", "real"), GOLDEN["printed"], ids=lambda one: str(one)[:60])
def test_progress_lines_match_cntk(
    given: dict[str, Any], real: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    printer = training.ProgressPrinter(**given["printer"])
    for taken in real["taken"]:
        if taken == "summary":
            printer.summarize_training()
        elif taken == "test summary":
            printer.summarize_test()
        elif taken[0] == "test":
            printer.update_test(taken[1], taken[2] / taken[1])
        else:
            printer.update_training(taken[0], taken[1] / taken[0], taken[2] / taken[0])
    lines = capsys.readouterr().out.splitlines()
    assert [re.sub(r"[\d.]+s \( *[\d.]+ samples/s\)", "TIME", line) for line in lines] == real["lines"]


class StopError(Exception):
    """Ends a session as Ctrl-C does."""


class Stopper(training.ProgressWriter):
    def __init__(self, step: int) -> None:
        super().__init__(freq=1)
        self.step = step

    def on_write_training_update(self, *rest: Any) -> None:
        if self.position == self.step:
            raise StopError


def test_a_continued_session_prints_and_logs_the_same_as_an_uninterrupted_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sums of the writers are part of a checkpoint, and the curves have each step once."""

    def run_once(folder: str, stop: int = 0) -> tuple[list[str], Any]:
        log = training.LossLog(tmp_path / f"{folder}.jsonl")
        writers = training.ProgressPrinter(freq=3), log, Stopper(stop)
        frequency = {"progress_frequency": (5, training.DataUnit.minibatch), "cv": (12, "sample", 99)}
        with fresh_programs(), contextlib.suppress(StopError):
            run(tmp_path / folder, *writers, samples=48, frequency=8, **frequency)
            final.update(values())
        lines = capsys.readouterr().out.splitlines()
        return [re.sub(r"[\d.]+s \(.*", "", line) for line in lines], log.log

    final: dict[str, Any] = {}
    lines, log = run_once("whole")
    want = dict(final)
    final.clear()
    for stop in (2, 9, 9, 13):
        run_once("parts", stop)
    found, log_of_parts = run_once("parts")
    assert_same(final, want)
    assert len(found) > 1
    assert found == lines[-len(found) :]
    assert log_of_parts.curves() == log.curves()
    assert set(log.curves()) == {"loss", "metric", "test"}
    assert log_of_parts.restarts() == [1, 8, 8, 13]


def test_the_newest_checkpoint_is_restored_whatever_its_name(tmp_path: Path) -> None:
    """Row C26: the real CNTK takes the one without a number, even where it is older."""
    run(tmp_path, samples=20, frequency=8, preserve=True)
    with fresh_programs():
        run(tmp_path, samples=32, frequency=8, preserve=True)
        want = values()
    assert files(tmp_path) == {"m": 32, "m.0": 8, "m.1": 18, "m.2": 28, "m.3": 32} | files(tmp_path)
    shutil.rmtree(tmp_path / "m")
    (tmp_path / "m.3").rename(tmp_path / "m3")  # as the real CNTK names it: row C28
    with fresh_programs():
        one, _ = run(tmp_path, samples=32, frequency=8, preserve=True)
        assert one.total_number_of_minibatches_seen == 10
        assert_same(values(), want)


@pytest.mark.parametrize("options", [{}, {"blocking": False, "keep_best": 1}], ids=["url", "in a thread"])
def test_checkpoints_can_be_saved_to_urls_in_the_background(tmp_path: Path, options: dict[str, Any]) -> None:
    pytest.importorskip("fsspec", reason="fsspec is in the extra 'remote'")
    path = tmp_path / "run" / "m" if options else f"memory://{tmp_path.name}/run/m"

    def train(samples: int, where: Any) -> dict[str, Any]:
        with fresh_programs():
            config = training.CheckpointConfig(where, 8, **options)
            data = source(randomize=True)
            training.training_session(
                trainer(), data, 4, max_samples=samples, checkpoint_config=config
            ).train()
            return values()

    train(20, path)
    assert_same(train(40, path), train(40, tmp_path / "whole"))
    steps = [one.step for one in NumberedCheckpoints(path).list() if one.path.endswith("/m")]
    assert steps == [40]


def test_a_damaged_checkpoint_is_skipped(tmp_path: Path) -> None:
    run(tmp_path, samples=20, frequency=8, preserve=True)
    for name in ("m", "m.2"):
        path = next(path for path in (tmp_path / name).iterdir() if path.name.startswith("fc_0.w"))
        path.write_bytes(path.read_bytes()[:-1])
    with fresh_programs(), pytest.warns(UserWarning, match=r"is damaged; \S+ is loaded"):
        one, _ = run(tmp_path, samples=18, frequency=0)
    assert one.total_number_of_samples_seen == 18


def test_with_restore_false_training_starts_from_the_beginning(tmp_path: Path) -> None:
    run(tmp_path, samples=20, frequency=8)
    with fresh_programs():
        one, _ = run(tmp_path, samples=12, frequency=8, restore=False)
    assert one.total_number_of_samples_seen == 12
    assert files(tmp_path) == {"m": 12}


def test_the_best_checkpoints_are_kept_beside_the_newest(tmp_path: Path) -> None:
    """Row C14. A model1 beside a model is not its checkpoint number 1, and stays."""
    with fresh_programs():
        run(tmp_path / "other", samples=4)
    (tmp_path / "other" / "m").rename(tmp_path / "m1")
    run(tmp_path, samples=60, frequency=8, cv=(8, "sample", 99), keep_best=2, restore=False)
    found = NumberedCheckpoints(tmp_path / "m")
    numbered = [one for one in found.list() if "/m." in one.path]
    assert len(numbered) == 2
    assert files(tmp_path)["m"] == 60
    assert "m1" in files(tmp_path)
    with fresh_programs():  # the metrics of all checkpoints of the same training
        run(tmp_path / "all", samples=60, frequency=8, cv=(8, "sample", 99), preserve=True)
    every = [one for one in NumberedCheckpoints(tmp_path / "all" / "m").list() if "/m." in one.path]
    best = sorted(every, key=lambda one: (one.metric, -one.step))[:2]
    assert {one.step for one in numbered} == {one.step for one in best}


@pytest.mark.parametrize("keep_best", [0, 1])
def test_a_session_removes_only_checkpoints_that_it_ranked(tmp_path: Path, keep_best: int) -> None:
    """CNTK 2.7 leaves what a session with preserve_all wrote, and never looks at copies."""
    with fresh_programs():
        run(tmp_path, samples=16, frequency=8, preserve=True)
    shutil.copytree(tmp_path / "m", tmp_path / "m.9")
    before = files(tmp_path)
    with fresh_programs():
        run(tmp_path, samples=48, frequency=8, cv=(8, "sample", 99), keep_best=keep_best)
    assert files(tmp_path).items() >= {name: step for name, step in before.items() if name != "m"}.items()
    assert len(files(tmp_path)) == len(before) + keep_best


def test_a_session_tests_after_training(tmp_path: Path) -> None:
    calls = []

    class Writer(training.ProgressWriter):
        def on_write_test_summary(self, samples: int, updates: int, *rest: Any) -> None:
            calls.append((samples, updates, self.position))

    data = training.MinibatchSourceFromData({"x": X, "y": Y}, training.FULL_DATA_SWEEP)
    run(tmp_path, Writer(), samples=12, test_config=training.TestConfig(data, 6))
    assert calls == [(20, 4, 4)]


def test_streams_are_mapped_to_variables(tmp_path: Path) -> None:
    """Rows C30, C31, C34."""
    data = training.MinibatchSourceFromData({"features": X, "labels": Y})
    one = trainer()
    inputs = {one.program.global_block().var("x"): data.streams.features, "y": data["labels"]}
    training.training_session(one, data, 5, inputs, max_samples=20).train()
    assert one.total_number_of_samples_seen == 20
    with pytest.raises(fluid.errors.SourceError, match="no stream 'feature' to feed 'x'"):
        training.training_session(one, data, 5, {"x": "feature", "y": "labels"}).train()
    with pytest.raises(fluid.errors.FeedError, match="no value for x, y; it has features, labels"):
        training.training_session(one, data, 5).train()


@pytest.mark.parametrize("given", ["reader", "loader", "arrays"])
def test_readers_loaders_and_arrays_are_accepted_as_sources(given: str) -> None:
    loss, error = criterion()
    with fluid.program_guard(loss.block.program):
        data = [loss.block.var(name) for name in "xy"]
    made = fluid.io.DataLoader.from_generator(data, capacity=2)
    made.set_batch_generator(lambda: ((X[at : at + 5], Y[at : at + 5]) for at in range(0, 20, 5)))
    source = {"reader": lambda: zip(X, Y, strict=True), "loader": made, "arrays": (X, Y)}[given]
    one = training.Trainer(None, (loss, error), fluid.optimizer.Momentum(0.05, 0.9))
    training.training_session(one, source, 5, max_samples=30).train()
    found = values()
    with fresh_programs():
        other = trainer()
        training.training_session(
            other, training.MinibatchSourceFromData({"x": X, "y": Y}), 5, max_samples=30
        ).train()
        assert_same(values(), found)


def test_a_progress_bar_is_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich", reason="rich is in the extra 'progress'")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def draw(stream: io.StringIO) -> str:
        monkeypatch.setattr(sys, "stderr", stream)
        with fresh_programs():
            training.training_session(trainer(training.ProgressBar()), source(), 5, max_samples=20).train()
        return stream.getvalue()

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    text = draw(Terminal())
    assert "20/20" in text
    assert "loss 0." in text
    assert draw(io.StringIO()) == ""
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert draw(Terminal()) == ""


@pytest.mark.slow
def test_a_progress_bar_is_drawn_in_a_notebook() -> None:
    """In a kernel of Jupyter's own."""
    nbclient = pytest.importorskip("nbclient", reason="the extra docs is not installed")
    nbformat = pytest.importorskip("nbformat", reason="the extra docs is not installed")
    pytest.importorskip("ipykernel", reason="the extra docs is not installed")
    cell = nbformat.v4.new_code_cell(
        "import numpy as np, paddlelike as fluid\n"
        "from paddlelike import training\n"
        "loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))\n"
        "rows, sgd = np.ones((64, 4), 'float32'), fluid.optimizer.SGD(0.1)\n"
        "_ = training.train(loss, (rows,), 8, parameter_learners=sgd, callbacks=[training.ProgressBar()])"
    )
    notebook = nbformat.v4.new_notebook(cells=[cell])
    nbclient.NotebookClient(notebook, timeout=300).execute()
    (output,) = [one for one in cell.outputs if one.output_type == "display_data"]
    assert '<progress value="64" max="64"></progress> 64 of 64 samples, loss ' in output.data["text/html"]


def test_train_equals_a_session_built_by_hand(tmp_path: Path) -> None:
    """Rows C16, C23, C24, C30, C32, C33: the numbers of a session made by hand."""
    config = training.CheckpointConfig(tmp_path / "m", frequency=10)
    summary = training.train(
        criterion(),
        (X, Y),
        8,
        parameter_learners=[fluid.optimizer.SGD(0.1)],
        callbacks=[config],
        max_epochs=2,
    )
    assert [one["samples"] for one in summary["updates"]] == [8, 8, 4] * 2
    first, second = summary["epoch_summaries"]
    assert first["samples"] == second["samples"] == 20
    weighted = sum(one["loss"] * one["samples"] for one in summary["updates"][:3]) / 20
    assert first["loss"] == pytest.approx(weighted, rel=1e-12)  # sums in another order
    assert files(tmp_path) == {"m": 40}
    with fresh_programs(), pytest.raises(TypeError, match="callbacks are progress writers"):
        training.train(criterion(), (X, Y), callbacks=[config, config])


def test_training_from_an_endless_source_requires_a_limit() -> None:
    """As in CNTK 2.7, whose default of max_epochs is 1."""
    endless = training.MinibatchSourceFromData({"x": X, "y": Y})
    optimizer = [fluid.optimizer.SGD(0.1)]
    with pytest.raises(ValueError, match="epoch_size must be specified, unless max_samples is given"):
        training.train(criterion(), endless, 8, parameter_learners=optimizer)
    with fresh_programs():
        summary = training.train(criterion(), endless, 8, parameter_learners=optimizer, epoch_size=16)
    assert sum(one["samples"] for one in summary["updates"]) == 16


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: training.CheckpointConfig(None, 5), ValueError, "needs a file name"),
        (lambda: training.CheckpointConfig("f", 1.5), TypeError, "frequency must be a number"),
        (lambda: training.CheckpointConfig("f", -1), ValueError, "0 or more"),
        (lambda: training.CheckpointConfig("f", 2, training.DataUnit.sweep), TypeError, "frequency_unit="),
        (lambda: training.CheckpointConfig("folder/"), ValueError, "must end with a file name"),
        (lambda: training.CheckpointConfig("f", chekcsum=None), TypeError, "checksum"),
        (lambda: training.CrossValidationConfig(frequency=3), ValueError, "minibatch_source or a callback"),
        (lambda: training.minibatch_size_schedule([]), ValueError, "takes sizes"),
    ],
    ids=["no name", "float", "negative", "unit", "folder", "option", "nothing to validate", "no size"],
)
def test_invalid_configurations_are_refused(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_a_frequency_may_be_given_in_samples_minibatches_or_sweeps() -> None:
    config = training.CheckpointConfig("f", 3, frequency_unit=training.DataUnit.sweep)
    assert config.frequency == (3, training.DataUnit.sweep)
    assert training.CheckpointConfig(None).frequency.every == 0
