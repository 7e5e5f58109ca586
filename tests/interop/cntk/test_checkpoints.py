"""Checkpoints of CNTK's trainers: training continues with CNTK's numbers. test_real.py goes the other way."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import training
from paddlelike.errors import (
    FormatError,
    LoadError,
    MissingFileError,
    NotInitializedError,
    SaveError,
    UnsupportedError,
)
from paddlelike.formats.cntk.dictionary import SizeT, decode, encode
from tests.helpers.golden_data import GOLDEN

MODELS = GOLDEN / "cntk"
#: Of the scripts that made the files: momentum 0.9, and Adam's default for the variance, by sample.
OPTIMIZERS = {
    "sgd": lambda: fluid.optimizer.SGD(0.5),
    "momentum": lambda: fluid.optimizer.Momentum(0.5, 0.9),
    "adam": lambda: fluid.optimizer.Adam(0.5, 0.9, 0.9999986111120757**8),
}
#: float32, summed in another order; Adam's 1 - beta2^t is of 4e-5, of which float32 keeps 3 digits.
CLOSE = {"sgd": 3e-7, "momentum": 3e-7, "adam": 5e-6}


@pytest.fixture(autouse=True)
def scope():
    with fluid.scope_guard(fluid.Scope()):
        yield fluid.global_scope()


def open_and_minimize(kind: str, file: Path | None = None, optimizer: str = ""):
    found = fluid.import_cntk_checkpoint(MODELS / f"ck-{kind}.dnn" if file is None else file)
    with fluid.program_guard(found.program, found.startup_program):
        OPTIMIZERS[optimizer or kind]().minimize(found.loss)
    fluid.Executor().run(found.startup_program)
    return found


def train(found, real, first: int, count: int) -> list[float]:
    losses = []
    for index in range(first, first + count):
        rows = slice(index % 6 * 8, index % 6 * 8 + 8)
        feed = {"features": real["X"][rows], "labels": real["Y"][rows]}
        made = fluid.Executor().run(found.program, feed=feed, fetch_list=[found.loss])
        losses.append(float(made[0][0]))
    return losses


@pytest.mark.parametrize("kind", sorted(OPTIMIZERS))
def test_training_continues_with_the_numbers_of_cntk(kind: str, scope: fluid.Scope) -> None:  # C13, C21
    found = open_and_minimize(kind)
    found.restore()
    with np.load(MODELS / f"ck-{kind}.npz") as real:
        steps = found.learner.minibatch_count
        losses = train(found, real, steps, steps)
        np.testing.assert_allclose(losses, real["losses_after"], rtol=0, atol=CLOSE[kind])
        for index, name in enumerate(found.learner.arrays):
            value = np.array(scope.find_var(name).get_tensor())
            np.testing.assert_allclose(value, real[f"end{index}"], rtol=0, atol=CLOSE[kind])


#: float32; Adam's first steps divide by averages of squares of which float32 keeps 3 digits.
AFTER = {"sgd": 3e-7, "momentum": 3e-7, "adam": 3e-4, "adam_plain": 5e-3, "adamax_plain": 5e-7}


def continue_schedule(kind: str, file: Path | None, first: int) -> tuple[fluid.CntkCheckpoint, list[float]]:
    """Train to the twentieth minibatch from a checkpoint of ``dump_cntk_schedules.py``."""
    found = fluid.import_cntk_checkpoint(MODELS / f"ck-{kind}_schedule.dnn" if file is None else file)
    with fluid.program_guard(found.program, found.startup_program):
        beta2 = 0.9999986111120757**8
        optimizer = fluid.optimizer.Adamax(0.5, 0.9, beta2) if "adamax" in kind else None
        (optimizer or OPTIMIZERS[kind.partition("_")[0]]()).minimize(found.loss)
    fluid.Executor().run(found.startup_program)
    found.restore(unit_gain="plain" not in kind)
    losses = []
    for index in range(first, 20):
        random = np.random.RandomState(100 + index)
        x, y = random.randn(8, 4).astype("f"), np.eye(3, dtype="f")[random.randint(0, 3, 8)]
        feed = dict(zip(found.feeds, (x, y), strict=True))
        losses.append(float(fluid.Executor().run(found.program, feed=feed, fetch_list=[found.loss])[0][0]))
    return found, losses


@pytest.mark.parametrize("kind", sorted(AFTER))
def test_schedules_and_learners_without_unit_gain_continue_with_the_numbers_of_cntk(kind: str) -> None:
    found, losses = continue_schedule(kind, None, 6)
    with np.load(MODELS / "schedules.npz") as real:
        np.testing.assert_allclose(losses, real[kind], rtol=0, atol=AFTER[kind])
        (weight,) = (
            name
            for name, one in found.learner.arrays.items()
            if found.program.global_block().var(name).shape == (4, 3)
        )
        value = np.array(fluid.global_scope().find_var(weight).get_tensor())
        np.testing.assert_allclose(value, real[f"{kind}_w"], rtol=0, atol=10 * AFTER[kind])


@pytest.mark.parametrize("kind", ["momentum", "adamax_plain"])
def test_schedules_resume_from_our_own_checkpoint(kind: str, tmp_path: Path) -> None:
    found, _ = continue_schedule(kind, None, 20)
    found.save(tmp_path / "same.dnn")
    with fluid.scope_guard(fluid.Scope()):
        again, losses = continue_schedule(kind, tmp_path / "same.dnn", 6)
    assert again.learner.schedule == found.learner.schedule
    with np.load(MODELS / "schedules.npz") as real:
        np.testing.assert_allclose(losses, real[kind], rtol=0, atol=AFTER[kind])


@pytest.mark.parametrize("kind", sorted(OPTIMIZERS))
def test_a_checkpoint_lists_its_learner_and_parameters(kind: str) -> None:  # C15, C20
    found = fluid.import_cntk_checkpoint(MODELS / f"ck-{kind}.dnn")
    state, learner = found.external_state, found.learner
    np.testing.assert_array_equal(state.pop("array"), np.arange(6, dtype="f").reshape(2, 3))
    assert state == {
        "epoch": 2, "lr": 0.125, "name": "reader é", "flag": False, "nothing": None,
        "items": [1, 2.5, "three", True],
        "nested": {"cursor": {"position": learner.sample_count, "epoch": 0}},
    }  # fmt: skip
    assert (found.feeds, [one.name for one in found.outputs]) == (["features", "labels"], ["logits"])
    assert learner.learning_rate == (0.01 if kind == "adam" else 0.1)  # C41: that of the file
    assert (learner.sample_count, learner.minibatch_count) == ((24, 3) if kind == "adam" else (32, 4))
    with np.load(MODELS / f"ck-{kind}.npz") as real:
        at = sorted(key for key in real.files if key.startswith("at"))
        assert [f"at{i}:{name}" for i, name in enumerate(learner.arrays)] == at  # C42: CNTK's order
        for index, array in enumerate(learner.arrays.values()):
            np.testing.assert_array_equal(array, real[f"state{index}"])


def test_a_checkpoint_has_the_metric_of_the_trainer() -> None:
    found = fluid.import_cntk_checkpoint(MODELS / "ck-sgd.dnn")
    with np.load(MODELS / "ck-sgd.npz") as real:
        feed = {"features": real["X"][:16], "labels": real["Y"][:16]}
        logits, metric = fluid.Executor().run(
            found.program, feed=feed, fetch_list=[found.outputs[0], found.metric]
        )
        wrong = logits.argmax(axis=1) != feed["labels"].argmax(axis=1)
    assert metric[0] == np.float32(wrong.mean())


def test_a_checkpoint_of_two_workers_is_read_and_written(tmp_path: Path) -> None:  # C37
    found = fluid.import_cntk_checkpoint(MODELS / "ck-distributed.dnn")
    assert found.metric is None
    assert found.external_state == {"rank": 0, "position": 8}
    workers = {rank: one["external_worker_state"] for rank, one in found.distributed_state.items()}
    assert workers == {"0": {"rank": 0, "position": 8}, "1": {"rank": 1, "position": 9}}
    found.save(tmp_path / "again.dnn")
    again = decode((tmp_path / "again.dnn.ckp").read_bytes())
    assert list(again["Learners"][0]) == ["localLearners", "totalNumberOfSamplesSeen"]
    np.testing.assert_equal(again, decode((MODELS / "ck-distributed.dnn.ckp").read_bytes()))


@pytest.mark.parametrize("kind", sorted(OPTIMIZERS))
def test_an_unchanged_checkpoint_is_written_as_read(kind: str, tmp_path: Path) -> None:
    found = open_and_minimize(kind)
    found.restore()
    found.save(tmp_path / "again.dnn")
    tree, real = (decode(path.read_bytes()) for path in (tmp_path / "again.dnn", MODELS / f"ck-{kind}.dnn"))
    np.testing.assert_equal(tree, real)
    state, real = (
        decode(path.read_bytes()) for path in (tmp_path / "again.dnn.ckp", MODELS / f"ck-{kind}.dnn.ckp")
    )
    for one, other in zip(
        state["Learners"][0].pop("smoothed_gradients"),
        real["Learners"][0].pop("smoothed_gradients"),
        strict=True,
    ):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=3e-7, atol=0)  # divided and multiplied by the rate
    np.testing.assert_equal(state, real)


def test_training_continues_from_our_own_saves(tmp_path: Path) -> None:
    with np.load(MODELS / "ck-momentum.npz") as file:
        real = {key: file[key] for key in file.files}
    found = open_and_minimize("momentum")
    found.restore()
    train(found, real, 4, 2)
    found.save(tmp_path / "mine.dnn", {"epoch": 3}, samples=16, minibatches=2)
    with fluid.scope_guard(fluid.Scope()):
        again = open_and_minimize("momentum", tmp_path / "mine.dnn")
        again.restore()
        assert (again.learner.sample_count, again.learner.minibatch_count) == (48, 6)
        assert again.external_state == {"epoch": 3}
        losses = train(again, real, 6, 2)
    np.testing.assert_allclose(losses, real["losses_after"][2:], rtol=0, atol=3e-7)


def values_of(scope: fluid.Scope) -> dict[str, bytes]:
    return {name: np.array(scope.var(name).get_tensor()).tobytes() for name in scope.local_var_names()}


@pytest.mark.parametrize(
    ("kind", "optimizer"),
    [("sgd", "momentum"), ("momentum", "sgd"), ("momentum", "adam"), ("adam", "momentum")],
)
def test_another_kind_of_optimizer_is_refused(kind: str, optimizer: str, scope: fluid.Scope) -> None:  # C42
    found = open_and_minimize(kind, optimizer=optimizer)
    before = values_of(scope)
    with pytest.raises(LoadError, match=rf"does not fit {optimizer}: .* another kind of learner"):
        found.restore()
    assert values_of(scope) == before


def test_restore_before_minimize_or_startup_raises() -> None:
    found = fluid.import_cntk_checkpoint(MODELS / "ck-sgd.dnn")
    with pytest.raises(LoadError, match="the program updates no parameters") as caught:
        found.restore()
    assert "minimize" in (caught.value.hint or "")
    with fluid.program_guard(found.program, found.startup_program):
        fluid.optimizer.Momentum(0.5, 0.9).minimize(found.loss)
    with pytest.raises(NotInitializedError, match="learning_rate_0"):
        found.restore()


def test_an_optimizer_that_cntk_does_not_have_is_refused(tmp_path: Path) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
        out = fluid.layers.fc(x, 1)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
        fluid.optimizer.Ftrl(0.1).minimize(loss)
        whole = fluid.layers.reduce_sum(out)
    fluid.Executor().run(startup)
    with pytest.raises(SaveError, match=r"fc_0\.[bw]_0 is updated by ftrl, whose state differs from CNTK's"):
        fluid.export_cntk_checkpoint(main, tmp_path / "my.dnn", ["x", "y"], [out], loss)
    with pytest.raises(UnsupportedError, match="is not a mean over samples"):
        fluid.export_cntk_checkpoint(main, tmp_path / "my.dnn", ["x", "y"], [out], whole)
    with pytest.raises(SaveError, match="updates no parameters"):
        fluid.export_cntk_checkpoint(main.clone(for_test=True), tmp_path / "my.dnn", ["x", "y"], [out], loss)
    assert list(tmp_path.iterdir()) == []


def copy_pair(folder: Path) -> Path:
    for end in ("", ".ckp"):
        shutil.copyfile(MODELS / f"ck-sgd.dnn{end}", folder / f"my.dnn{end}")
    return folder / "my.dnn"


def test_a_file_that_is_missing_is_named_and_nothing_changes(tmp_path: Path, scope: fluid.Scope) -> None:
    file = copy_pair(tmp_path)
    (tmp_path / "my.dnn.ckp").unlink()
    with pytest.raises(MissingFileError, match=r"my\.dnn\.ckp: .* alone is not a checkpoint"):
        fluid.import_cntk_checkpoint(file)
    shutil.copyfile(MODELS / "mlp.model", tmp_path / "my.dnn.ckp")
    with pytest.raises(FormatError, match="lacks Version, Learners, ExternalState"):
        fluid.import_cntk_checkpoint(file)
    assert scope.local_var_names() == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda state: state.pop("Learners"), "lacks Learners"),
        (lambda state: state["Learners"].append({}), "has 2 learners"),
        (lambda state: state["Learners"][0].pop("sample_count"), "has no sample_count"),
        (lambda state: state["Learners"][0]["smoothed_gradients"].pop(), "keeps 3 arrays, and trains 4"),
        (
            lambda state: state["Learners"][0]["learnig_rate_schedule"].update(schedule={}),
            "learning rates are",
        ),
        (lambda state: state["Learners"][0].update(minibatchCount="4"), "has no minibatchCount"),
        (lambda state: state.update(ExternalState=SizeT(1)), "lacks ExternalState"),
    ],
    ids=["learners", "several", "count", "arrays", "rates", "text", "state"],
)
def test_damage_of_the_state_file_is_named(change, text: str, tmp_path: Path) -> None:
    file = copy_pair(tmp_path)
    state = decode((tmp_path / "my.dnn.ckp").read_bytes())
    change(state)
    (tmp_path / "my.dnn.ckp").write_bytes(encode(state))
    with pytest.raises(FormatError, match=text):
        fluid.import_cntk_checkpoint(file)


def test_batch_normalization_is_trained(tmp_path: Path, scope: fluid.Scope) -> None:
    found = fluid.import_cntk_checkpoint(MODELS / "ck-bn.dnn")
    assert found.batch_size == 6
    assert "running variances" in found.differences[0]
    with fluid.program_guard(found.program, found.startup_program):
        fluid.optimizer.Momentum(0.5, 0.9).minimize(found.loss)
    fluid.Executor().run(found.startup_program)
    found.restore()
    with np.load(MODELS / "ck-bn.npz") as file:
        real = {key: file[key] for key in file.files}
    losses = []
    for index in range(3, 6):
        rows = slice(index * 6, index * 6 + 6)
        feed = {"image": real["X"][rows], "label": real["Y"][rows]}
        losses.append(float(fluid.Executor().run(found.program, feed=feed, fetch_list=[found.loss])[0][0]))
    np.testing.assert_allclose(losses, real["losses"], rtol=0, atol=2e-6)  # float32, in another order
    found.save(tmp_path / "my.dnn", samples=18, minibatches=3)
    leaves = {one["uid"]: one for one in decode((tmp_path / "my.dnn").read_bytes())["inputs"]}
    for key, array in real.items():
        if key.startswith("end:"):
            leaf = leaves[key[4:]]
            # variances of 6 samples divided by 5 in CNTK: 1.2 times as large, of which 35 % came in 3 steps
            close = 0.2 if leaf["name"] == "aggregate_variance" else 3e-6
            np.testing.assert_allclose(
                leaf["value"], array, rtol=close, atol=close * 0.3, err_msg=leaf["name"]
            )
    assert {float(one["value"]) for one in leaves.values() if one.get("name") == "aggregate_count"} == {36.0}


def test_training_with_running_averages_of_all_samples_is_refused(tmp_path: Path) -> None:
    tree = decode((MODELS / "ck-bn.dnn").read_bytes())
    for one in tree["primitive_functions"]:
        if "normalizationTimeConstant" in one["attributes"]:
            one["attributes"]["normalizationTimeConstant"] = -1.0
    (tmp_path / "my.dnn").write_bytes(encode(tree))
    shutil.copyfile(MODELS / "ck-bn.dnn.ckp", tmp_path / "my.dnn.ckp")
    with pytest.raises(UnsupportedError, match=r"BatchNormalization .*cannot be trained here"):
        fluid.import_cntk_checkpoint(tmp_path / "my.dnn")


def test_a_save_that_is_refused_leaves_the_older_pair(tmp_path: Path) -> None:
    found = fluid.import_cntk_checkpoint(copy_pair(tmp_path))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FormatError, match="no tuple"):
        found.save(tmp_path / "my.dnn", {"position": (1, 2)})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


#: As in the scripts that made the files; minibatches are of 8.
LEARNERS = {
    "adagrad": lambda: training.AdagradLearner(0.5, 8),
    "adadelta": lambda: training.AdadeltaLearner(0.5, 8, rho=0.9, epsilon=1e-6),
    "rmsprop": lambda: training.RMSPropLearner(0.5, 8, gamma=0.95, inc=1.2, dec=0.7, max=10, min=0.01),
    "fsadagrad": lambda: training.FSAdagradLearner(0.5, 8, momentum=0.9, variance_momentum=0.99),
}


def open_with(kind: str, optimizer):
    found = fluid.import_cntk_checkpoint(MODELS / f"ck-{kind}.dnn")
    with fluid.program_guard(found.program, found.startup_program):
        optimizer().minimize(found.loss)
    fluid.Executor().run(found.startup_program)
    return found


@pytest.mark.parametrize("kind", sorted(LEARNERS))
def test_learners_of_cntk_continue_with_its_numbers(
    kind: str, scope: fluid.Scope, tmp_path: Path
) -> None:  # C13, C21
    found = open_with(kind, LEARNERS[kind])
    found.restore()
    found.save(tmp_path / "again.dnn")
    again = fluid.import_cntk_checkpoint(tmp_path / "again.dnn", scope=fluid.Scope()).learner
    for name, array in found.learner.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)
    if kind in ("adadelta", "adagrad"):
        assert again.smoothed_count is found.learner.smoothed_count is None
    else:
        assert again.smoothed_count == pytest.approx(found.learner.smoothed_count, rel=1e-6)  # float32 here
    with np.load(MODELS / f"ck-{kind}.npz") as real, np.load(MODELS / "ck-sgd.npz") as data:
        losses = train(found, data, 6, 6)
        np.testing.assert_allclose(losses, real["losses_after"], rtol=0, atol=1e-6)  # float32, six steps
        for name in found.learner.arrays:
            value = np.array(scope.find_var(name).get_tensor())
            np.testing.assert_allclose(value, real[f"end_{name}"], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "optimizer", "text"),
    [
        ("momentum", LEARNERS["adagrad"], "is of momentum_sgd, whose formula differs"),
        ("adam", LEARNERS["fsadagrad"], "is of adam, whose formula differs"),
        ("rmsprop", LEARNERS["adadelta"], "does not fit cntk_adadelta"),
        ("adagrad", lambda: fluid.optimizer.Momentum(0.05, 0.9), "is of adagrad, whose formula differs"),
        ("fsadagrad", lambda: fluid.optimizer.Adam(0.05), "is of fsadagrad, whose formula differs"),
        (
            "adagrad",
            lambda: fluid.optimizer.Adagrad(0.05),
            "updated by adagrad, whose state differs",
        ),
        ("fsadagrad", lambda: fluid.optimizer.Ftrl(0.05), "updated by ftrl, whose state differs"),
        (
            "adagrad",
            lambda: fluid.optimizer.Adadelta(0.05),
            "updated by adadelta, whose state differs",
        ),
    ],
    ids=[
        "momentum in adagrad",
        "adam in fsadagrad",
        "rmsprop in adadelta",
        "adagrad in momentum",
        "fsadagrad in adam",
        "adagrad",
        "ftrl",
        "adadelta",
    ],
)
@pytest.mark.filterwarnings("ignore::paddlelike.framework.quirks.QuirkWarning")
def test_learners_of_other_formulas_are_refused_before_anything_changes(
    kind: str, optimizer, text: str, scope: fluid.Scope
) -> None:
    found = open_with(kind, optimizer)
    before = {name: np.array(scope.find_var(name).get_tensor()) for name in scope.local_var_names()}
    with pytest.raises(LoadError, match=text):
        found.restore()
    for name, value in before.items():
        np.testing.assert_array_equal(np.array(scope.find_var(name).get_tensor()), value)
