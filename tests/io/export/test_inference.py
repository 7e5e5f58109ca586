"""Models for prediction: what is exported, what comes back, what is refused and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError, LoadError, MissingFileError, NotInitializedError
from paddlelike.framework.codec.schema import messages
from tests.helpers.golden_data import GOLDEN

NORM = [f"batch_norm_0.{name}" for name in ("w_0", "b_0", "w_1", "w_2")]
X = np.arange(8, dtype="float32").reshape(2, 4) / 8
save = fluid.io.save_inference_model
load = fluid.io.load_inference_model


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name != "__manifest__")


@pytest.fixture(autouse=True)
def scope() -> Iterator[None]:
    with fluid.scope_guard(fluid.Scope()):
        yield


@pytest.fixture
def exe() -> fluid.Executor:
    return fluid.Executor()


class Net:
    """A classifier with dropout and batch norm, trained for two steps."""

    def __init__(self, exe: fluid.Executor) -> None:
        x = fluid.data("x", [None, 4])
        label = fluid.data("label", [None, 1], "int64")
        self.hidden = fluid.layers.batch_norm(fluid.layers.fc(x, 3, act="relu"))
        self.prediction = fluid.layers.fc(fluid.layers.dropout(self.hidden, 0.5), 2, act="softmax")
        self.loss = fluid.layers.mean(fluid.layers.cross_entropy(self.prediction, label))
        self.main = fluid.default_main_program()
        self.test = self.main.clone(for_test=True)
        fluid.optimizer.Momentum(0.1, 0.9).minimize(self.loss)
        exe.run(fluid.default_startup_program())
        for _ in range(2):
            exe.run(feed={"x": X, "label": np.array([[0], [1]])})

    def predict(self, exe: fluid.Executor, *variables: Any) -> list[Any]:
        return exe.run(self.test, feed={"x": X}, fetch_list=[v.name for v in variables], use_prune=True)


@pytest.fixture
def net(exe: fluid.Executor) -> Net:
    return Net(exe)


def served(exe: fluid.Executor, *args: Any) -> list[Any]:
    """What a model that was saved predicts, in a scope of its own."""
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, targets = load(args[0], exe, *args[1:])
        return exe.run(program, feed={feeds[0]: X}, fetch_list=targets)


@pytest.mark.parametrize(
    ("model", "params"), [(None, None), ("m", None), (None, "p"), ("m", "p")], ids=["each", "m", "p", "mp"]
)
def test_an_exported_model_predicts_the_same_as_the_test_program(
    net: Net, exe: fluid.Executor, tmp_path: Path, model: str | None, params: str | None
) -> None:
    save(str(tmp_path), ["x"], [net.prediction, net.hidden], exe, None, model, params)
    got = served(exe, str(tmp_path), model, params)
    for mine, wanted in zip(got, net.predict(exe, net.prediction, net.hidden), strict=True):
        np.testing.assert_array_equal(mine, wanted)
    files = names(tmp_path)
    assert (model or "__model__") in files
    assert len(files) == (2 if params else 9)  # two of each fc, four of the norm, the program


def test_training_continues_after_an_export(net: Net, exe: fluid.Executor, tmp_path: Path) -> None:
    save(str(tmp_path), ["x"], [net.prediction], exe)
    before = served(exe, str(tmp_path))
    exe.run(feed={"x": X, "label": np.array([[0], [1]])})
    np.testing.assert_array_equal(served(exe, str(tmp_path)), before)
    assert (net.predict(exe, net.prediction)[0] != before[0]).any()


def test_a_model_is_loaded_from_bytes(net: Net, exe: fluid.Executor, tmp_path: Path) -> None:
    save(str(tmp_path), ["x"], [net.prediction], exe, model_filename="m", params_filename="p")
    model, params = (tmp_path / "m").read_bytes(), (tmp_path / "p").read_bytes()
    np.testing.assert_array_equal(served(exe, None, model, params), net.predict(exe, net.prediction))


def test_the_exported_program_contains_no_training_operators(
    net: Net, exe: fluid.Executor, tmp_path: Path
) -> None:
    save(str(tmp_path), ["x"], [net.prediction], exe)
    program = load(str(tmp_path), exe)[0]
    block = program.global_block()
    assert [op.type for op in block.ops] == [
        "feed", "mul", "elementwise_add", "relu", "batch_norm", "dropout", "mul", "elementwise_add",
        "softmax", "scale", "fetch",
    ]  # fmt: skip
    assert all(op.attr("is_test") for op in block.ops if op.has_attr("is_test"))
    assert not [name for name in block.vars if "velocity" in name or "@GRAD" in name or name == "label"]


def test_exporting_twice_gives_the_same_model_under_other_names(
    net: Net, exe: fluid.Executor, tmp_path: Path
) -> None:
    first = save(str(tmp_path / "1"), ["x"], [net.prediction], exe)
    second = save(str(tmp_path / "2"), ["x"], [net.prediction], exe)
    assert (first, second) == (["save_infer_model/scale_0.tmp_0"], ["save_infer_model/scale_0.tmp_1"])
    np.testing.assert_array_equal(served(exe, str(tmp_path / "1")), served(exe, str(tmp_path / "2")))


def test_a_loaded_model_is_exported_again(net: Net, exe: fluid.Executor, tmp_path: Path) -> None:
    save(str(tmp_path / "1"), ["x"], [net.prediction, net.hidden], exe)
    program, _, targets = load(str(tmp_path / "1"), exe)
    save(str(tmp_path / "2"), ["x"], targets[:1], exe, main_program=program)
    assert load(str(tmp_path / "2"), exe)[1] == ["x"]
    np.testing.assert_array_equal(served(exe, str(tmp_path / "2")), net.predict(exe, net.prediction))


def test_an_exported_model_takes_and_returns_sequences(exe: fluid.Executor, tmp_path: Path) -> None:
    words = fluid.data("w", [None, 1], "int64", lod_level=1)
    out = fluid.layers.embedding(words, [10, 3])
    exe.run(fluid.default_startup_program())
    save(str(tmp_path), ["w"], [out], exe)
    program, _, targets = load(str(tmp_path), exe)
    tensor = fluid.create_lod_tensor(np.arange(3).reshape(3, 1), [[1, 2]], fluid.CPUPlace())
    (got,) = exe.run(program, feed={"w": tensor}, fetch_list=targets, return_numpy=False)
    assert got.lod() == [[0, 1, 3]]


def test_a_loaded_model_puts_its_values_into_the_current_scope(
    net: Net, exe: fluid.Executor, tmp_path: Path
) -> None:
    save(str(tmp_path), ["x"], [net.prediction], exe)
    mine = fluid.Scope()
    with fluid.scope_guard(mine):
        load(str(tmp_path), exe)
    assert sorted(mine.local_var_names()) == sorted(["fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0", *NORM])


def test_a_whole_program_is_exported_without_pruning(net: Net, exe: fluid.Executor, tmp_path: Path) -> None:
    save(str(tmp_path), ["x", "label"], [net.prediction], exe, export_for_deployment=False)  # one too many
    assert "__model__" not in names(tmp_path)
    program = fluid.Program.parse_from_string((tmp_path / "__model__.main_program").read_bytes())
    assert "momentum" in [op.type for op in program.global_block().ops]
    assert "fc_0.w_0_velocity_0" in names(tmp_path)


# What is refused


def unchanged(net: Net, directory: Path, call: Any, *args: Any) -> BaseException:
    """Expect a refusal that changes neither the program nor the disk."""
    text = str(net.main)
    with pytest.raises((ValueError, TypeError, RuntimeError, fluid.core.EnforceNotMet)) as caught:
        call(*args)
    assert str(net.main) == text
    assert not directory.exists()
    return caught.value


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        (["x", "nobody"], r"\['nobody'\] are not in the program"),
        (["x", "label"], r"\['label'\] are not used by the targets"),
        ([], r"also computed from \['x'\]"),
        ([3], "holds names"),
    ],
    ids=["unknown", "unused", "missing", "number"],
)
def test_invalid_feeds_are_refused_and_nothing_is_saved(
    net: Net, exe: fluid.Executor, tmp_path: Path, feeds: list[Any], words: str
) -> None:
    error = unchanged(net, tmp_path / "m", save, str(tmp_path / "m"), feeds, [net.prediction], exe)
    assert isinstance(error, ValueError)
    with pytest.raises(ValueError, match=words):
        raise error


def test_invalid_targets_are_refused(net: Net, exe: fluid.Executor, tmp_path: Path) -> None:
    for targets in ([], ["fc_1.tmp_2"], 3):
        unchanged(net, tmp_path / "m", save, str(tmp_path / "m"), ["x"], targets, exe)
    other = fluid.Program()
    with pytest.raises(GraphError, match="is not in block 0"):
        save(str(tmp_path / "m"), ["x"], [net.prediction], exe, main_program=other)


def test_a_model_without_values_is_not_exported(exe: fluid.Executor, tmp_path: Path) -> None:
    y = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    with pytest.raises(NotInitializedError, match="startup"):
        save(str(tmp_path / "m"), ["x"], [y], exe)
    assert not (tmp_path / "m").exists()


def test_nothing_is_loaded_from_a_damaged_model(net: Net, exe: fluid.Executor, tmp_path: Path) -> None:
    save(str(tmp_path / "m"), ["x"], [net.prediction], exe)
    (tmp_path / "m" / "fc_0.b_0").unlink()
    mine = fluid.Scope()
    with fluid.scope_guard(mine), pytest.raises(MissingFileError, match=r"fc_0\.b_0"):
        load(str(tmp_path / "m"), exe)
    assert mine.local_var_names() == []
    (tmp_path / "m" / "__manifest__").unlink()
    (tmp_path / "m" / "__model__").write_bytes(b"\x00garbage")
    with pytest.raises(LoadError, match="is not a model"):
        load(str(tmp_path / "m"), exe)


def _with_op(data: bytes, **op: Any) -> bytes:
    """A program with one more operator."""
    message = messages().ProgramDesc.FromString(data)
    made = message.blocks[0].ops.add(type=op["type"])
    for slot, name in op.get("inputs", {}).items():
        made.inputs.add(parameter=slot).arguments.append(name)
    for name, (kind, value) in op.get("attrs", {}).items():
        setattr(made.attrs.add(name=name, type=kind), "s" if kind == 2 else "i", value)
    return bytes(message.SerializeToString())


@pytest.mark.parametrize(
    ("op", "words"),
    [
        (
            {"type": "save", "inputs": {"X": "fc_0.b_0"}, "attrs": {"file_path": (2, "/tmp/x")}},
            r"holds 'save' \(file_path='/tmp/x'\)",
        ),
        (
            {"type": "fetch", "inputs": {"X": "nowhere"}, "attrs": {"col": (0, 1)}},
            "a fetch operator has column 1",
        ),
        ({"type": "fetch", "inputs": {"X": "x"}}, "a fetch operator has column None"),
        ({"type": "fetch", "attrs": {"col": (0, 1)}}, r"column 1 and variables \[\]"),
        ({"type": "feed", "attrs": {"col": (2, "x")}}, "a feed operator has column 'x'"),
    ],
    ids=lambda op: op["type"] if isinstance(op, dict) else "",
)
def test_models_with_invalid_operators_are_refused(
    net: Net, exe: fluid.Executor, tmp_path: Path, op: dict[str, Any], words: str
) -> None:
    save(str(tmp_path / "m"), ["x"], [net.prediction], exe)
    model = tmp_path / "m" / "__model__"
    (tmp_path / "m" / "__manifest__").unlink()
    model.write_bytes(_with_op(model.read_bytes(), **op))
    mine = fluid.Scope()
    with fluid.scope_guard(mine), pytest.raises(LoadError, match=words):
        load(str(tmp_path / "m"), exe)
    assert mine.local_var_names() == []


def test_a_trusted_model_may_contain_external_operators(
    net: Net, exe: fluid.Executor, tmp_path: Path
) -> None:
    save(str(tmp_path / "m"), ["x"], [net.prediction], exe)
    model, copy = tmp_path / "m" / "__model__", tmp_path / "copy"
    op = {"type": "save", "inputs": {"X": "fc_0.b_0"}, "attrs": {"file_path": (2, str(copy))}}
    (tmp_path / "m" / "__manifest__").unlink()
    model.write_bytes(_with_op(model.read_bytes(), **op))
    with fluid.scope_guard(fluid.Scope()):
        program, _, fetches = load(str(tmp_path / "m"), exe, trusted=True)
        exe.run(program, feed={"x": X}, fetch_list=fetches)
        assert copy.exists()
        copied = program.clone()
        copy.unlink()
        exe.run(copied, feed={"x": X}, fetch_list=fetches)
        assert copy.exists(), "a copy of a trusted program is trusted"


def test_an_empty_model_file_is_refused(exe: fluid.Executor, tmp_path: Path) -> None:
    (tmp_path / "__model__").write_bytes(b"")
    with pytest.raises(LoadError, match="is not a model: it is empty"):
        load(str(tmp_path), exe)


def test_the_error_for_a_missing_model_lists_the_existing_files(
    net: Net, exe: fluid.Executor, tmp_path: Path
) -> None:
    save(str(tmp_path / "m"), ["x"], [net.prediction], exe, model_filename="mine")
    with pytest.raises(FileNotFoundError, match="__model__") as caught:
        load(str(tmp_path / "m"), exe)
    assert "mine" in caught.value.hint
    with pytest.raises(ValueError, match="no directory"):
        load(str(tmp_path / "nowhere"), exe)


def test_a_model_in_memory_is_bytes(exe: fluid.Executor) -> None:
    with pytest.raises(ValueError, match="bytes of the model"):
        load(None, exe)
    with pytest.raises(TypeError, match="params_filename is the bytes"):
        load(None, exe, b"model", "params")
    with pytest.raises(LoadError, match="memory is not a model"):
        load(None, exe, b"\xffmodel", b"params")


def test_exporting_the_program_alone_writes_no_values(net: Net, exe: fluid.Executor, tmp_path: Path) -> None:
    save(str(tmp_path), ["x"], [net.prediction], exe, program_only=True)
    assert names(tmp_path) == ["__model__"]
    with pytest.raises(LoadError):
        load(str(tmp_path), exe)


def test_exporting_an_auc_operator_causes_a_warning(exe: fluid.Executor, tmp_path: Path) -> None:
    x = fluid.data("x", [None, 4])
    prediction = fluid.layers.fc(x, 2, act="softmax")
    fluid.layers.auc(prediction, fluid.data("label", [None, 1], "int64"))
    exe.run(fluid.default_startup_program())
    with pytest.warns(UserWarning, match="auc"):
        save(str(tmp_path), ["x"], [prediction], exe)


def test_a_model_of_paddle_3_is_loaded_by_its_names(exe: fluid.Executor) -> None:
    real = GOLDEN / "paddle300"
    program, feeds, (target,) = load(str(real), exe, "inference.json", "inference.pdiparams")
    (out,) = exe.run(program, feed={feeds[0]: np.eye(4, dtype="float32")}, fetch_list=[target])
    weight, bias = (np.array(fluid.global_scope().find_var(f"fc_0.{one}_0").get_tensor()) for one in "wb")
    np.testing.assert_allclose(out, weight + bias, rtol=1e-6)
    with fluid.scope_guard(fluid.Scope()):
        again, feeds, fetches = load(str(real), exe)  # by its directory
        (same,) = exe.run(again, feed={feeds[0]: np.eye(4, dtype="float32")}, fetch_list=fetches)
    np.testing.assert_array_equal(same, out)


def test_feed_and_fetch_operators_are_added_as_in_exports(tmp_path: Path, exe: fluid.Executor) -> None:
    """Packages have copies of Fluid's own function, which call these two."""
    y = fluid.layers.scale(fluid.data("x", [None, 4]) + fluid.data("z", [None, 4]), 2.0)
    main = fluid.default_main_program()
    pruned = main._prune_with_input(["x", "z"], [y])._inference_optimize(prune_read_op=True)
    fluid.io.prepend_feed_ops(pruned, ["x", "z"])
    fluid.io.append_fetch_ops(pruned, [y.name])
    assert [op.type for op in pruned.global_block().ops[::4]] == ["feed", "fetch"]
    (tmp_path / "__model__").write_bytes(pruned.desc.serialize_to_string())
    program, feeds, fetches = load(str(tmp_path), exe)
    assert (feeds, fetches[0].name) == (["x", "z"], y.name)
    np.testing.assert_array_equal(exe.run(program, feed={"x": X, "z": X}, fetch_list=fetches)[0], 4 * X)
