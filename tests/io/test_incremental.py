"""Saves that write only what changed: what counts as a change, and what is noticed from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import LoDTensor, ScopeVariable
from paddlelike.framework.opdef import registry
from paddlelike.io import incremental
from paddlelike.io.incremental import Ledger, get_state, ledger
from paddlelike.io.load import load
from paddlelike.storage import manifest
from paddlelike.storage.local import manifest_file

NAMES = [f"v{number}" for number in range(5)]


@pytest.fixture
def exe() -> fluid.Executor:
    return fluid.Executor()


@pytest.fixture(autouse=True)
def program() -> Iterator[fluid.Program]:
    """Five variables, v0 to v4, with values of their own."""
    ledger.forget()
    program = fluid.Program()
    with fluid.scope_guard(fluid.Scope()):
        for number, name in enumerate(NAMES):
            program.global_block().create_var(name=name, shape=[3], dtype="float32", persistable=True)
            put(name, number)
        yield program


def put(name: str, number: float) -> None:
    fluid.global_scope().var(name).get_tensor().set(np.full(3, number, "float32"))


def save(exe: fluid.Executor, path: Path, program: fluid.Program, **options: Any) -> Any:
    return fluid.io.save_persistables(exe, str(path), program, **options)


def loaded(exe: fluid.Executor, path: Path, program: fluid.Program) -> list[float]:
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(exe, str(path), program)
        return [float(np.array(fluid.global_scope().find_var(name).get_tensor())[0]) for name in NAMES]


def test_a_second_save_writes_only_changed_files(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    first = save(exe, tmp_path / "a", program)
    assert (first.written, first.kept) == (5, 0)
    inodes = {name: (tmp_path / "a" / name).stat().st_ino for name in NAMES}
    put("v3", 30)
    second = save(exe, tmp_path / "a", program)
    assert (second.written, second.kept) == (1, 4)
    assert sorted(second.saved) == NAMES
    assert loaded(exe, tmp_path / "a", program) == [0, 1, 2, 30, 4]
    same = {name for name in NAMES if (tmp_path / "a" / name).stat().st_ino == inodes[name]}
    assert same == set(NAMES) - {"v3"}
    assert manifest_file.verify(tmp_path / "a")


def test_a_save_without_changes_writes_nothing(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    save(exe, tmp_path / "a", program)
    again = save(exe, tmp_path / "a", program)
    assert (again.written, again.written_bytes, again.kept) == (0, 0, 5)
    assert "5 files kept" in str(again)
    assert manifest_file.verify(tmp_path / "a")


def test_training_counts_as_a_change_and_prediction_does_not(exe: fluid.Executor, tmp_path: Path) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 4])
        loss = fluid.layers.mean(fluid.layers.fc(x, 2))
        test = main.clone(for_test=True)
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    feed = {"x": np.ones((2, 4), "float32")}
    exe.run(startup)
    save(exe, tmp_path / "a", main)
    exe.run(test, feed=feed, fetch_list=[loss])
    assert save(exe, tmp_path / "a", main).written == 0
    exe.run(main, feed=feed)
    report = save(exe, tmp_path / "a", main)
    assert (report.written, report.kept) == (4, 1)  # the learning rate is what it was


def test_a_run_that_was_interrupted_counts_as_a_change(
    exe: fluid.Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forward(param: Any, *rest: Any, **attrs: Any) -> None:
        param[0] = 77  # as a kernel does that writes in place
        raise KeyboardInterrupt

    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 2, bias_attr=False))
        fluid.optimizer.SGD(0.1).minimize(loss)
    exe.run(startup)
    save(exe, tmp_path / "a", main)
    monkeypatch.setattr(registry.find_or_none("sgd"), "specialize", lambda keywords, variables: forward)
    with pytest.raises(KeyboardInterrupt):
        exe.run(main, feed={"x": np.ones((2, 4), "float32")})
    save(exe, tmp_path / "a", main)
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(exe, str(tmp_path / "a"), main)
        assert np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())[0, 0] == 77


@pytest.mark.parametrize("how", ["changed", "same size", "replaced", "removed", "everything"])
def test_changes_to_a_file_by_others_are_noticed(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, how: str
) -> None:
    save(exe, tmp_path / "a", program)
    path = tmp_path / "a" / "v2"
    data = path.read_bytes()
    if how == "changed":
        path.write_bytes(b"other")
    elif how == "same size":
        path.write_bytes(data[:-1] + b"?")
    elif how == "replaced":
        (tmp_path / "new").write_bytes(data)
        os.replace(tmp_path / "new", path)
    elif how == "everything":
        for name in (*NAMES, "__manifest__"):
            (tmp_path / "a" / name).unlink()
        (tmp_path / "a").rmdir()
    else:
        path.unlink()
    report = save(exe, tmp_path / "a", program)
    assert report.written == (5 if how == "everything" else 1)
    assert loaded(exe, tmp_path / "a", program) == [0, 1, 2, 3, 4]
    assert manifest_file.verify(tmp_path / "a")


def test_a_save_by_another_process_is_noticed(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    save(exe, tmp_path / "a", program)
    script = (
        "import numpy as np, paddlelike as fluid\n"
        "p = fluid.Program()\n"
        "for n in range(5):\n"
        "    p.global_block().create_var(name=f'v{n}', shape=[3], dtype='float32', persistable=True)\n"
        "    fluid.global_scope().var(f'v{n}').get_tensor().set(np.full(3, 9, 'float32'))\n"
        "fluid.io.save_persistables(fluid.Executor(), 'a', p)\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, env=_environment())
    assert loaded(exe, tmp_path / "a", program) == [9] * 5
    assert save(exe, tmp_path / "a", program).written == 5
    assert loaded(exe, tmp_path / "a", program) == [0, 1, 2, 3, 4]


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(fluid.__file__).parent.parent)}


def test_two_scopes_that_save_in_turn_do_not_mix(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    save(exe, tmp_path / "a", program)
    other = fluid.Scope()
    with fluid.scope_guard(other):
        for name in NAMES:
            put(name, 7)
        save(exe, tmp_path / "a", program)
    assert loaded(exe, tmp_path / "a", program) == [7] * 5
    assert save(exe, tmp_path / "a", program).written == 5
    assert loaded(exe, tmp_path / "a", program) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("how", ["set_value", "adopt", "lod", "erased", "array"])
def test_other_values_in_the_same_place_count_as_changes(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, how: str
) -> None:
    save(exe, tmp_path / "a", program)
    scope = fluid.global_scope()
    holder = scope.find_var("v1")
    if how == "set_value":
        holder.set_value(LoDTensor(np.full(3, 50, "float32")))
    elif how == "adopt":
        holder.get_tensor().adopt(np.full(3, 50, "float32"))
    elif how == "lod":
        holder.get_tensor().set_lod([[0, 1, 3]])
    elif how == "array":  # behind the back of the count
        holder.get_tensor()._array = np.full(3, 50, "float32")
    else:
        scope.erase(["v1"])
        put("v1", 50)
    assert save(exe, tmp_path / "a", program).written == 1
    want = 1 if how == "lod" else 50
    assert loaded(exe, tmp_path / "a", program) == [0, want, 2, 3, 4]


def test_changes_of_selected_rows_are_noticed(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    table = program.global_block().create_var(
        name="table", type=fluid.core.VarDesc.VarType.SELECTED_ROWS, shape=[10, 2], dtype="float32",
        persistable=True,
    )  # fmt: skip
    rows = fluid.global_scope().var("table").get_selected_rows()
    rows.set_rows([3, 4])
    rows.set_height(10)
    rows.get_tensor().set(np.ones((2, 2), "float32"))
    assert save(exe, tmp_path / "a", program).written == 6
    assert save(exe, tmp_path / "a", program).written == 0
    rows.set_rows([3, 5])
    assert save(exe, tmp_path / "a", program).written == 1
    assert table.name == "table"


def test_a_base_shares_unchanged_files(exe: fluid.Executor, tmp_path: Path, program: fluid.Program) -> None:
    save(exe, tmp_path / "a", program)
    put("v0", 10)
    report = save(exe, tmp_path / "b", program, base=str(tmp_path / "a"))
    assert (report.written, report.kept) == (1, 4)
    assert loaded(exe, tmp_path / "a", program) == [0, 1, 2, 3, 4]
    assert loaded(exe, tmp_path / "b", program) == [10, 1, 2, 3, 4]
    assert manifest_file.verify(tmp_path / "a")
    assert manifest_file.verify(tmp_path / "b")
    put("v1", 11)  # a shared file is replaced, not written into
    save(exe, tmp_path / "b", program)
    assert loaded(exe, tmp_path / "a", program) == [0, 1, 2, 3, 4]
    assert loaded(exe, tmp_path / "b", program) == [10, 11, 2, 3, 4]


def test_an_unknown_base_shares_nothing(exe: fluid.Executor, tmp_path: Path, program: fluid.Program) -> None:
    save(exe, tmp_path / "a", program)
    ledger.forget()
    assert save(exe, tmp_path / "b", program, base=str(tmp_path / "a")).kept == 0
    assert save(exe, tmp_path / "c", program, base=str(tmp_path / "nowhere")).kept == 0


def test_a_combined_file_is_kept_whole_or_written_whole(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    save(exe, tmp_path / "a", program, filename="all")
    assert save(exe, tmp_path / "a", program, filename="all").kept == 1
    put("v4", 40)
    report = save(exe, tmp_path / "a", program, filename="all")
    assert (report.written, report.kept) == (1, 0)
    some = [program.global_block().var(name) for name in NAMES[:3]]
    assert fluid.io.save_vars(exe, str(tmp_path / "a"), program, some, filename="all").written == 1
    assert save(exe, tmp_path / "a", program, filename="all").written == 1
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(exe, str(tmp_path / "a"), program, "all")
        assert np.array(fluid.global_scope().find_var("v4").get_tensor())[0] == 40


def test_a_directory_may_hold_separate_files_and_a_combined_file(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    save(exe, tmp_path / "a", program)
    save(exe, tmp_path / "a", program, filename="all")
    put("v2", 20)
    assert save(exe, tmp_path / "a", program).written == 1
    assert save(exe, tmp_path / "a", program, filename="all").written == 1
    assert loaded(exe, tmp_path / "a", program) == [0, 1, 20, 3, 4]


def test_a_requested_checksum_is_computed(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    save(exe, tmp_path / "a", program, checksum=None)
    assert save(exe, tmp_path / "a", program, checksum=None).written == 0
    assert save(exe, tmp_path / "a", program).written == 5
    assert save(exe, tmp_path / "a", program, checksum=None).written == 0
    assert manifest_file.verify(tmp_path / "a")


def test_all_names_of_a_directory_are_recognised(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(exe, tmp_path / "a", program)
    (tmp_path / "link").symlink_to("a")
    monkeypatch.chdir(tmp_path)
    for other in ("a", "./a/", "link", (tmp_path / "a").as_uri()):
        assert fluid.io.save_persistables(exe, other, program).written == 0, other


def test_files_of_a_failed_save_are_not_kept(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    save(exe, tmp_path / "a", program)
    put("v1", 10)
    (tmp_path / "a" / "v1").unlink()
    (tmp_path / "a" / "v1").mkdir()
    with pytest.raises(fluid.errors.SaveError):
        save(exe, tmp_path / "a", program)
    (tmp_path / "a" / "v1").rmdir()
    assert save(exe, tmp_path / "a", program).written == 1
    assert loaded(exe, tmp_path / "a", program) == [0, 10, 2, 3, 4]


def test_unknown_options_of_a_save_are_refused(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    with pytest.raises(ValueError, match="durability"):
        save(exe, tmp_path / "a", program, durability="wishful")
    with pytest.raises(ValueError, match="checksum"):
        save(exe, tmp_path / "a", program, checksum="md5")
    with pytest.raises(TypeError, match="colour"):
        save(exe, tmp_path / "a", program, colour="red")
    save(exe, tmp_path / "a", program, durability="power", wait=None, keep_generation=True)
    put("v0", 5)
    save(exe, tmp_path / "a", program, durability="power", wait=1.0, keep_generation=True)
    assert loaded(exe, tmp_path / "a", program) == [5, 1, 2, 3, 4]


@pytest.mark.parametrize("between", ["nothing", "a write", "another save", "a file", "a rename"])
def test_values_loaded_from_a_directory_count_as_saved_there(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, between: str
) -> None:
    save(exe, tmp_path / "a", program)
    ledger.forget()
    with fluid.scope_guard(fluid.Scope()):
        rename = {"v1": "v2", "v2": "v1"} if between == "a rename" else None
        fluid.io.load_persistables(exe, str(tmp_path / "a"), program, rename=rename)
        if between == "a write":
            put("v4", 40)
        elif between == "another save":
            with fluid.scope_guard(fluid.Scope()):
                for name in NAMES:
                    put(name, 7)
                save(exe, tmp_path / "a", program)
        elif between == "a file":
            (tmp_path / "a" / "v0").write_bytes((tmp_path / "a" / "v1").read_bytes())
        report = save(exe, tmp_path / "a", program)
        assert report.written == {"nothing": 0, "another save": 5, "a rename": 2}.get(between, 1)
    want = {"a write": [0, 1, 2, 3, 40], "a rename": [0, 2, 1, 3, 4]}.get(between, [0, 1, 2, 3, 4])
    assert loaded(exe, tmp_path / "a", program) == want
    assert manifest_file.verify(tmp_path / "a")


# Another thread writes at the worst moment: what it wrote is in no file yet


def test_values_written_right_after_a_load_are_saved(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(exe, tmp_path / "a", program)
    real = load.record_loaded

    def record(*arguments: Any) -> None:
        put("v0", 40)
        real(*arguments)

    monkeypatch.setattr(load, "record_loaded", record)
    for in_place in (False, True):
        put("v0", 1)
        fluid.io.load_persistables(exe, str(tmp_path / "a"), program, in_place=in_place)
        report = save(exe, tmp_path / "b", program, base=str(tmp_path / "a"))
        assert loaded(exe, tmp_path / "b", program) == [40, 1, 2, 3, 4]
        assert (report.written, report.kept) == (1, 4)


def test_a_value_replaced_during_a_save_is_saved_by_the_next(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    class Trained(ScopeVariable):
        """Another thread replaces the value right after it was asked for."""

        __slots__ = ()
        armed = True

        @property
        def value(self) -> Any:
            value = self._value
            if self.armed:
                Trained.armed = False
                self.set_value(LoDTensor(np.full(3, 40, "float32")))
            return value

    holder = Trained("v0")
    holder._value = LoDTensor(np.zeros(3, "float32"))
    scope = fluid.global_scope()
    scope._vars["v0"] = holder

    for _ in range(2):
        save(exe, tmp_path / "a", program)
    assert not Trained.armed
    assert loaded(exe, tmp_path / "a", program) == [40, 1, 2, 3, 4]


class FakeLocation:
    """A location whose stamp and manifest a test sets."""

    key = "location"

    def __init__(self) -> None:
        self.now: object = 1
        self.files = {"v0": manifest.Record(1, None, (1, 1))}

    def stamp(self) -> object:
        return self.now

    def manifest(self) -> manifest.Manifest:
        return manifest.Manifest(self.files)


def test_a_load_is_remembered_until_the_variable_or_the_directory_changes() -> None:
    book, location = Ledger(), FakeLocation()
    holder = fluid.global_scope().find_var("v0")
    book.note_loaded(location, 1, {holder: get_state(holder)})
    assert book.known(location).find_loaded(holder, "v0") is location.files["v0"]
    assert book.known(location).find_loaded(holder, "sub/v0") is None
    location.now = 2
    assert book.known(location).find_loaded(holder, "v0") is None
    location.now = 1
    put("v0", 2)
    assert book.known(location).find_loaded(holder, "v0") is None


def test_the_save_record_keeps_no_variables_and_few_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incremental, "_MOST", 20)
    book = Ledger()
    scope = fluid.Scope()
    holder = scope.var("w")
    holder.get_tensor().set(np.ones(2, "float32"))
    record = manifest.Record(1, None, (1, 1))
    for number in range(40):
        location = FakeLocation()
        location.key = f"location{number}"
        book.note_saved(location, None, [(holder, get_state(holder), record)])
    assert len(book._saves) == 20
    assert book.known(location).find_saved(holder) is record
    saves = book.known(location)._saves
    assert len(saves) == 1
    scope.erase(["w"])
    del holder
    assert len(saves) == 0
