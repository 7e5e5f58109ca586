"""Programs, scopes, optimizers and readers as pickles and in bundles. T.. are rows of Theano's list."""

from __future__ import annotations

import copy
import importlib
import io
import json
import pickle
import pickletools
import random
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import bundle
from paddlelike.bundle.own_classes import _TABLE, is_own
from paddlelike.core import Versioned
from paddlelike.errors import FormatError, MissingFileError, UntrustedError
from paddlelike.io.contents.lazy import MappedTensor
from paddlelike.ops.kernels.growing_rows import GrowingRows, RowRule
from tests.bundle.golden import PICKLES, Training, train


def through_bundle(value: Any) -> Any:
    file = io.BytesIO()
    bundle.dump(value, file)
    return bundle.load(file)


COPIES: dict[str, Callable[[Any], Any]] = {
    "deepcopy": copy.deepcopy,
    "bundle": through_bundle,
    **{
        f"protocol {p}": lambda value, p=p: pickle.loads(pickle.dumps(value, p))  # type: ignore[misc]
        for p in range(pickle.HIGHEST_PROTOCOL + 1)
    },
}


@pytest.mark.parametrize("way", COPIES)
def test_a_training_continues_with_the_same_bits(way: str) -> None:  # T01, T10
    training = train()
    again = Training(*COPIES[way](tuple(training)))
    assert again.main.to_string(True) == training.main.to_string(True)
    assert again.startup.to_string(True) == training.startup.to_string(True)
    assert again.main.desc.serialize_to_string() == training.main.desc.serialize_to_string()
    assert training.main.plans
    assert again.main.plans == {}  # T11: a cache
    assert again.run(4) == training.run(4)


def test_both_picklers_of_python_give_the_same_result() -> None:  # T04: Python 2 had pickle and cPickle
    main = train().main
    slow = pickle._loads(pickle._dumps(main, 2))  # type: ignore[attr-defined]
    assert slow.to_string(True) == main.to_string(True)
    mixed = pickle.loads(pickle._dumps(main, 2))  # type: ignore[attr-defined]
    assert mixed.to_string(True) == main.to_string(True)


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: fluid.optimizer.SGD(0.1),
    "Momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9),
    "Lars": lambda: fluid.optimizer.LarsMomentum(0.1, 0.9),
    "Adagrad": lambda: fluid.optimizer.Adagrad(0.1),
    "DecayedAdagrad": lambda: fluid.optimizer.DecayedAdagrad(0.1),
    "Adadelta": lambda: fluid.optimizer.Adadelta(0.1),
    "Adamax": lambda: fluid.optimizer.Adamax(0.1),
    "Lamb": lambda: fluid.optimizer.Lamb(0.1),
    "Ftrl": lambda: fluid.optimizer.Ftrl(0.1),
    "RMSProp": lambda: fluid.optimizer.RMSProp(0.1),
    "Dpsgd": lambda: fluid.optimizer.Dpsgd(0.1, 10.0, 16.0, 1.0),
    "Lookahead": lambda: fluid.optimizer.LookaheadOptimizer(fluid.optimizer.SGD(0.1)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("way", ["deepcopy", "bundle", "protocol 2"])
def test_every_unpickled_optimizer_builds_the_same_operators(name: str, way: str) -> None:  # T01
    fresh = COPIES[way](OPTIMIZERS[name]())
    one, other = train(OPTIMIZERS[name]), train(lambda: fresh)
    assert list(map(repr, other.main.global_block().ops)) == list(map(repr, one.main.global_block().ops))
    if name != "Dpsgd":  # its noise has no seed
        assert other.run(1) == one.run(1)
    again = COPIES[way](one.optimizer)
    inner = getattr(again, "inner_optimizer", again)
    wanted = getattr(one.optimizer, "inner_optimizer", one.optimizer)
    assert inner.get_opti_var_name_list() == wanted.get_opti_var_name_list()


def test_moving_averages_survive_pickling() -> None:  # T01
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        fluid.layers.fc(fluid.data("x", [None, 2]), 1)
        ema = fluid.optimizer.ExponentialMovingAverage(0.9)
        ema.update()
    again = through_bundle(ema)
    assert again.apply_program.to_string(True) == ema.apply_program.to_string(True)


@pytest.mark.parametrize(
    "made",
    [
        fluid.ParamAttr(name="w", initializer=fluid.initializer.Uniform(-1, 1), learning_rate=0.5),
        fluid.WeightNormParamAttr(dim=1, initializer=fluid.initializer.MSRA()),
        fluid.initializer.NumpyArrayInitializer(np.arange(3.0)),
        fluid.regularizer.L1Decay(0.1),
        fluid.clip.GradientClipByValue(0.5),
        fluid.clip.ErrorClipByValue(0.5),
        fluid.CPUPlace(),
    ],
    ids=lambda made: type(made).__name__,
)
def test_small_objects_survive_pickling(made: Any) -> None:  # T01
    for way in COPIES.values():
        again = way(made)
        assert type(again) is type(made)
        assert repr(fingerprint(again)) == repr(fingerprint(made))


def fingerprint(value: Any) -> Any:
    if isinstance(value, Versioned):
        return type(value).__name__, fingerprint(value.__getstate__())
    return {key: fingerprint(one) for key, one in value.items()} if isinstance(value, dict) else value


def test_a_pickled_variable_includes_its_program() -> None:  # T01
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 2])
        fluid.layers.relu(x)
    for way in COPIES.values():
        again = way(x)
        assert again.block.vars["x"] is again
        assert again.block.program.to_string(True) == main.to_string(True)


def test_arrays_of_a_scope_are_zip_members_with_the_names_of_variables(tmp_path: Path) -> None:  # T17, T21
    scope = train().scope
    scope.var("rows").set_value(fluid.core.SelectedRows([2, 0], 5, np.ones((2, 3), "float32")))
    bundle.dump(scope, tmp_path / "scope.zip")
    with np.load(tmp_path / "scope.zip") as seen:
        names = set(seen.files) - {"pkl"}
        assert names == {*scope.local_var_names(), "rows.rows"}
        for name in ("w", "b", "learning_rate_0"):
            np.testing.assert_array_equal(seen[name], scope.find_var(name).get_tensor().array)
        assert seen["rows.rows"].tolist() == [2, 0]
    again = bundle.load(tmp_path / "scope.zip")
    assert again.find_var("rows").get_selected_rows().rows() == [2, 0]


def test_a_program_read_from_a_file_keeps_unknown_fields() -> None:  # T01
    model = Path(__file__).parent.parent / "golden" / "mnist_conv_bn" / "programs" / "main_train.pb"
    program = fluid.Program.parse_from_string(model.read_bytes())
    for way in COPIES.values():
        assert way(program).desc.serialize_to_string() == program.desc.serialize_to_string()


# Golden files of earlier releases


@pytest.mark.parametrize("file", sorted(path.name for path in PICKLES.glob("training-*.[pz]*")))
def test_pickles_of_earlier_releases_are_read(file: str) -> None:  # T02
    facts = json.loads((PICKLES / f"{Path(file).stem}.json").read_text())
    found = bundle.load(PICKLES / file)
    readings = [found] + ([pickle.loads((PICKLES / file).read_bytes())] if file.endswith("pkl") else [])
    for reading in readings:
        training = Training(*reading)
        assert training.main.to_string(True) == facts["main"]
        np.testing.assert_allclose(training.run(4), facts["losses"], rtol=1e-6)  # another machine's tanh


#: Classes of release 1.0.0 that are in other modules now.
MOVED = {
    "distributed.transpiler.dispatch": "HashName PSDispatcher RoundRobin",
    "optimizer.ftrl": "FtrlOptimizer",
    "optimizer.lookahead": "LookaheadOptimizer",
    "optimizer.model_average": "ModelAverage",
    "optimizer.momentum": "LarsMomentumOptimizer MomentumOptimizer",
    "optimizer.moving_average": "ExponentialMovingAverage",
    "optimizer.recompute": "RecomputeOptimizer",
    "optimizer.rmsprop": "RMSPropOptimizer",
    "reader.loader": "GeneratorLoader",
    "training.early_stopping": "EarlyStopping",
    "training.frequency": "DataUnit",
}


@pytest.mark.parametrize("module", MOVED)
def test_pickles_that_name_a_module_of_release_1_find_its_classes(module: str) -> None:  # T02
    for name in MOVED[module].split():
        pickled = f"cpaddlelike.{module}\n{name}\n.".encode()
        found = pickle.loads(pickled)
        assert found.__name__ == name
        if is_own(found):
            assert bundle.load(io.BytesIO(pickled)) is found


def test_a_file_of_a_newer_release_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:  # T02
    monkeypatch.setattr(fluid.Program, "_state_version", 2)
    file = io.BytesIO()
    bundle.dump(fluid.Program(), file)
    monkeypatch.undo()
    with pytest.raises(FormatError, match="a Program has version 2, this release reads up to version 1"):
        bundle.load(file)


def test_the_table_of_pickled_classes_lists_every_class_with_a_state() -> None:
    listed = set()
    for module, names in _TABLE.items():
        for name in names.split():
            listed.add(getattr(importlib.import_module(f"paddlelike.{module}"), name))
    pending, found = [Versioned], set()
    while pending:
        for kind in pending.pop().__subclasses__():
            pending.append(kind)
            found.add(kind)
    ours = {kind for kind in found if kind.__module__.startswith("paddlelike.")}
    leaves = {kind for kind in ours if not kind.__subclasses__() and not kind.__name__.startswith("_")}
    assert leaves - listed == {MappedTensor}  # its pickle is that of a LoDTensor


def test_an_unpickled_growing_table_creates_the_same_new_rows() -> None:
    table = GrowingRows(3, np.dtype("float32"), RowRule("uniform_random", -1.0, 1.0, 7))
    table.add_rows([5, -(1 << 60)])
    for way in COPIES.values():
        again = way(table)
        assert again.rows() == table.rows()
        again.add_rows([9])
        fresh = GrowingRows(3, np.dtype("float32"), RowRule("uniform_random", -1.0, 1.0, 7))
        fresh.add_rows([5, -(1 << 60), 9])
        np.testing.assert_array_equal(again.array, fresh.array)


def test_a_mapped_tensor_is_pickled_with_its_elements() -> None:
    mapped = MappedTensor(np.frombuffer(b"x" + np.arange(3.0).tobytes(), "u1")[1:].view("f8"), [[0, 3]])
    for way in COPIES.values():
        again = way(mapped)
        assert type(again) is fluid.LoDTensor
        assert (again.array.tolist(), again.lod()) == ([0, 1, 2], [[0, 3]])


# Trust


def build_print_program() -> fluid.Program:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        fluid.layers.Print(fluid.layers.fill_constant([1], "float32", 3.0))
    return main


def test_a_bundled_program_runs_external_operators_only_when_trusted(tmp_path: Path) -> None:
    bundle.dump(build_print_program(), tmp_path / "p")
    exe = fluid.Executor()
    with pytest.raises(UntrustedError, match="'print'"):
        exe.run(bundle.load(tmp_path / "p"))
    assert all(op.trusted for op in bundle.load(tmp_path / "p", trusted=True).global_block().ops)
    assert all(op.trusted for op in copy.deepcopy(build_print_program()).global_block().ops)


def test_a_dataset_with_a_shell_command_needs_trust(tmp_path: Path) -> None:
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_pipe_command("touch here")
    bundle.dump(dataset, tmp_path / "d")
    with pytest.raises(FormatError, match="runs the shell command 'touch here'"):
        bundle.load(tmp_path / "d")
    assert bundle.load(tmp_path / "d", trusted=True).pipe_command == "touch here"


@pytest.mark.parametrize(
    "data",
    [
        b"cpaddlelike.framework.graph.program\nProgram\n(tR.",  # called
        b"cpaddlelike.core.tensor\nLoDTensor\n(I1\ntR.",
        b"\x80\x02cpaddlelike.core.tensor\nLoDTensor\nK\x01\x85\x81.",  # made with an argument
        b"cpaddlelike.executor.run\nExecutor\n.",  # not in the table
        b"cpaddlelike.core.dtypes\nVarType\n(S'x'\ntR.",
        b"cpaddlelike.core.dtypes\nVarType\n(I999\ntR.",
        b"cpaddlelike.framework.graph.program\nProgram\n}S'plans'\nI1\nsb.",  # the state of a class
        b"\x80\x02cpaddlelike.framework.graph.program\nProgram\n)\x81I5\nb.",
        b"\x80\x02cpaddlelike.core.tensor\nLoDTensor\n)\x81}X\x01\x00\x00\x00xK\x01sb.",  # no such slot
    ],
)
def test_crafted_pickles_of_our_classes_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        bundle.load(io.BytesIO(data))


def test_enums_are_written_by_value() -> None:
    data = pickle.dumps(fluid.core.VarDesc.VarType.FP32, 2)
    assert [arg for op, arg, _ in pickletools.genops(data) if op.name == "BININT1"] == [5]
    assert bundle.load(io.BytesIO(data)) is fluid.core.VarDesc.VarType.FP32


def test_a_damaged_pickle_only_raises_our_errors() -> None:
    whole = (PICKLES / "training-1.pkl").read_bytes()
    rng = random.Random(0)
    refused = 0
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(rng.choice((1, 1, 3))):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        with suppress(FormatError, MissingFileError):
            bundle.load(io.BytesIO(bytes(damaged)))
            refused -= 1
        refused += 1
    assert refused > 40
    for length in range(0, len(whole) - 1, 397):
        with pytest.raises(FormatError):
            bundle.load(io.BytesIO(whole[:length]))


def test_a_bundle_without_its_arrays_raises_format_error(tmp_path: Path) -> None:  # T20
    bundle.dump(train().scope, tmp_path / "s")
    with zipfile.ZipFile(tmp_path / "s") as archive:
        data = archive.read("pkl")
    with pytest.raises(FormatError, match="outside of it, and this is not a bundle"):
        bundle.load(io.BytesIO(data))
    assert "w" in bundle.arrays(tmp_path / "s")
