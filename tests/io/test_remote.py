"""Saving to and loading from URLs: memory, a server of S3's protocol, a stand-in of Hadoop's command."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import (
    ExtraMissingError,
    FormatError,
    LoadError,
    MissingFileError,
    PaddlelikeError,
    SaveError,
    StorageError,
)
from paddlelike.io import asynchronous
from paddlelike.io.incremental import ledger
from paddlelike.storage import manifest
from paddlelike.storage.location import locate
from paddlelike.storage.manifest import decode
from paddlelike.storage.remote import base, fsspec_store, marker, transaction as remote_transaction
from paddlelike.storage.remote.directory import RemoteDirectory

pytest.importorskip("fsspec", reason="fsspec is the extra 'remote'")

NAMES = ["big", "deep/er", "v2", "v3", "v4"]


@pytest.fixture
def exe() -> fluid.Executor:
    return fluid.Executor()


@pytest.fixture(autouse=True)
def program() -> Iterator[fluid.Program]:
    """Five variables of the values 0 to 4; one has more than a head of 4 KB, one lies in a folder."""
    ledger.forget()
    asynchronous.discard_pending()
    program = fluid.Program()
    for number, name in enumerate(NAMES):
        size = 3000 if name == "big" else 3
        program.global_block().create_var(name=name, shape=[size], dtype="float32", persistable=True)
        put(name, number)
    yield program
    asynchronous.discard_pending()


def put(name: str, number: float) -> None:
    size = 3000 if name == "big" else 3
    fluid.global_scope().var(name).get_tensor().set(np.full(size, number, "float32"))


def fill(number: float) -> None:
    for name in NAMES:
        put(name, number)


def loaded(exe: fluid.Executor, url: str, program: fluid.Program, **choices: Any) -> list[float]:
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(exe, url, program, **choices)
        arrays = [np.array(fluid.global_scope().find_var(name).get_tensor()) for name in NAMES]
    assert all((array == array[0]).all() for array in arrays)
    return [float(array[0]) for array in arrays]


# The places


def remote(url: str) -> RemoteDirectory:
    found = locate(url)
    assert isinstance(found, RemoteDirectory)
    return found


def files(url: str) -> dict[str, bytes]:
    """What lies in a directory by plain names."""
    where = remote(url)
    names = where.store.find(where.root).keys() - {"__manifest__"}
    return {name: where.store.read(f"{where.root}/{name}") for name in names}


def beside(url: str) -> list[str]:
    """What is beside a directory besides its newest marker: older ones and folders of savers."""
    where = remote(url)
    name = where.root.rpartition("/")[2]
    found = {each for each in where.store.list_prefix(where.root) if each.startswith(name + ".")}
    numbers = [each for each in found if each.rpartition(".")[2].isdigit()]
    assert len(numbers) == 1
    return sorted(found - set(numbers))


# What every place does


def test_a_remote_save_is_loaded_with_the_same_bits(
    exe: fluid.Executor, program: fluid.Program, url: str, tmp_path: Path
) -> None:
    report = fluid.io.save_persistables(exe, url, program)
    assert report.target == url
    assert (report.written, report.kept) == (5, 0)
    assert loaded(exe, url, program) == [0, 1, 2, 3, 4]
    assert loaded(exe, url, program, verify=True) == [0, 1, 2, 3, 4]
    fluid.io.save_persistables(exe, str(tmp_path / "local"), program)
    local = {name: (tmp_path / "local" / name).read_bytes() for name in NAMES}
    assert files(url) == local  # the same bytes, and nothing foreign
    above = remote(url)
    inside = above.store.find(above.root.rpartition("/")[0])
    assert sorted(name for name in inside if ".saving-" in name) == []


def test_a_second_save_writes_only_changed_files(
    exe: fluid.Executor, program: fluid.Program, url: str
) -> None:
    fluid.io.save_persistables(exe, url, program)
    put("v3", 30)
    report = fluid.io.save_persistables(exe, url, program)
    assert (report.written, report.kept) == (1, 4)
    assert loaded(exe, url, program, verify=True) == [0, 1, 2, 30, 4]
    assert fluid.io.save_persistables(exe, url, program).written == 0
    ledger.forget()
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(exe, url, program)
        put("v2", 20)
        assert fluid.io.save_persistables(exe, url, program).written <= 2  # the one in a folder may go along
    assert loaded(exe, url, program, verify=True) == [0, 1, 20, 30, 4]


def test_a_file_that_others_replaced_is_written_again(
    exe: fluid.Executor, program: fluid.Program, url: str
) -> None:
    fluid.io.save_persistables(exe, url, program)
    where = remote(url)
    time.sleep(0.01)
    where.store.put(f"{where.root}/v2", where.store.read(f"{where.root}/v3"))
    with pytest.raises(LoadError, match="v2"):
        loaded(exe, url, program, verify=True)
    assert fluid.io.save_persistables(exe, url, program).written == 1
    assert loaded(exe, url, program, verify=True) == [0, 1, 2, 3, 4]


def test_a_base_shares_files(exe: fluid.Executor, program: fluid.Program, url: str) -> None:
    fluid.io.save_persistables(exe, url, program)
    put("v4", 40)
    report = fluid.io.save_persistables(exe, url + "-2", program, base=url)
    assert (report.written, report.kept) == (1, 4)
    assert loaded(exe, url + "-2", program, verify=True) == [0, 1, 2, 3, 40]
    assert loaded(exe, url, program, verify=True) == [0, 1, 2, 3, 4]


def test_a_combined_file_is_saved_and_loaded_remotely(
    exe: fluid.Executor, program: fluid.Program, url: str
) -> None:
    fluid.io.save_persistables(exe, url, program, "all")
    assert sorted(files(url)) == ["all"]
    assert loaded(exe, url, program, filename="all") == [0, 1, 2, 3, 4]


def test_an_uploaded_directory_is_loaded_as_it_is(
    exe: fluid.Executor, program: fluid.Program, url: str, tmp_path: Path
) -> None:
    fluid.io.save_persistables(exe, str(tmp_path / "local"), program)
    where = remote(url)
    where.store.write(where.root, {name: [(tmp_path / "local" / name).read_bytes()] for name in NAMES})
    assert loaded(exe, url, program) == [0, 1, 2, 3, 4]
    put("v3", 30)
    some = [program.global_block().var("v3")]
    fluid.io.save_vars(exe, url, program, some)  # the others stay
    assert loaded(exe, url, program) == [0, 1, 2, 30, 4]


def test_a_missing_remote_directory_is_an_error(
    exe: fluid.Executor, program: fluid.Program, url: str
) -> None:
    with pytest.raises(MissingFileError, match="does not exist"):
        fluid.io.load_persistables(exe, url, program)
    some = [program.global_block().var(name) for name in NAMES[:3]]
    fluid.io.save_vars(exe, url, program, some)
    with pytest.raises(MissingFileError, match="v4"):
        fluid.io.load_persistables(exe, url, program)


def test_exports_and_states_are_saved_and_loaded_remotely(exe: fluid.Executor, url: str) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        out = fluid.layers.fc(fluid.data("x", [None, 2]), 1)
    exe.run(startup)
    fluid.save(main, url + "-net")
    state = fluid.io.load_program_state(url + "-net")
    assert state.keys() == {"fc_0.w_0", "fc_0.b_0"}
    fluid.io.save_inference_model(url, ["x"], [out], exe, main)
    with fluid.scope_guard(fluid.Scope()):
        program, _, fetches = fluid.io.load_inference_model(url, exe)
        x = np.float32([[1, 2], [3, 4]])
        (found,) = exe.run(program, feed={"x": x}, fetch_list=fetches)
    np.testing.assert_allclose(found, x @ state["fc_0.w_0"] + state["fc_0.b_0"], rtol=1e-5)  # float32
    assert fluid.io.verify(url)
    assert fluid.io.verify(url + "-net")


def test_a_remote_save_may_run_in_a_thread(exe: fluid.Executor, program: fluid.Program, url: str) -> None:
    pending = fluid.io.save_persistables(exe, url, program, blocking=False)
    fill(9)
    assert pending.wait(60).written == 5
    assert loaded(exe, url, program, verify=True) == [0, 1, 2, 3, 4]


# All or nothing


class Killed(BaseException):
    """What a test ends a saver with."""


class Dying(fsspec_store.FsspecStore):
    """A store whose process is killed at a given call; each file is a call. After that nothing is done."""

    left = -1  # calls; -1: no end
    calls = 0

    def _call(self) -> None:
        if Dying.left == 0:
            raise Killed
        Dying.left -= 1
        Dying.calls += 1

    def write(self, folder: str, files: Mapping[str, Iterable[Any]]) -> None:
        for name, buffers in files.items():
            self._call()
            super().write(folder, {name: buffers})

    def put(self, path: str, data: bytes) -> None:
        self._call()
        super().put(path, data)

    def create(self, path: str, data: bytes) -> bool:
        self._call()
        return super().create(path, data)

    def copy(self, source: str, target: str, names: Iterable[str]) -> None:
        for name in names:
            self._call()
            super().copy(source, target, [name])

    def remove(self, folder: str, names: Iterable[str]) -> None:
        for name in names:
            self._call()
            super().remove(folder, [name])
        if not names:
            self._call()
            super().remove(folder, [])


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    monkeypatch.setattr(fsspec_store, "FsspecStore", Dying)

    def after(calls: int) -> None:
        Dying.left, Dying.calls = calls, 0

    after(-1)
    return after


@pytest.mark.parametrize("before", ["nothing", "a save", "an upload"])
def test_a_saver_that_is_killed_at_any_call_leaves_the_old_or_the_new_save(
    exe: fluid.Executor, program: fluid.Program, dying: Callable[[int], None], before: str
) -> None:
    outcomes = set()
    for calls in range(100):
        url = f"memory://{uuid.uuid4().hex}/model"
        fill(1)
        dying(-1)
        if before == "a save":
            fluid.io.save_persistables(exe, url, program)
        elif before == "an upload":
            fluid.io.save_persistables(exe, url, program)
            where = remote(url)
            where.store.remove(where.root.rpartition("/")[0], ["model.manifest.json.1", "model/__manifest__"])
        fill(2)
        dying(calls)
        try:
            fluid.io.save_persistables(exe, url, program)
            done = True
        except Killed:
            done = False
        dying(-1)
        ledger.forget()
        try:
            found = set(loaded(exe, url, program))
        except MissingFileError:
            found = set()
        assert len(found) < 2, f"a mix after {calls} calls"
        outcomes.add(next(iter(found), 0.0))
        assert not done or found == {2.0}
        fill(3)  # the next save goes on from there
        fluid.io.save_persistables(exe, url, program)
        assert loaded(exe, url, program, verify=True) == [3] * 5
        assert sorted(files(url)) == NAMES
        assert beside(url)[1:] == []  # of the dead saver
        if done:
            break
    assert calls > 6
    assert outcomes == ({0.0, 2.0} if before == "nothing" else {1.0, 2.0})


SAVER = """
import sys
import numpy as np
import paddlelike as fluid

url, endpoint = sys.argv[1:]
import fsspec
fsspec.config.conf.setdefault("s3", {}).update(endpoint_url=endpoint)
program = fluid.Program()
for name, size in (("big", 3000), ("deep/er", 3), ("v2", 3), ("v3", 3), ("v4", 3)):
    program.global_block().create_var(name=name, shape=[size], dtype="float32", persistable=True)
    fluid.global_scope().var(name).get_tensor().set(np.full(size, 2, "float32"))
exe = fluid.Executor(fluid.CPUPlace())
fluid.io.save_persistables(exe, url + "-warm", program)
print("begin", flush=True)
fluid.io.save_persistables(exe, url, program)
print("end", flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_process_that_is_killed_leaves_the_old_or_the_new_save_in_s3(
    exe: fluid.Executor, program: fluid.Program, s3_url: str
) -> None:
    dice = random.Random(1)
    fill(1)
    fluid.io.save_persistables(exe, s3_url, program)
    seen = set()
    for _ in range(4):
        saver = subprocess.Popen(
            [sys.executable, "-c", SAVER, s3_url, os.environ["FSSPEC_S3_ENDPOINT_URL"]],
            cwd=Path(fluid.__file__).parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert saver.stdout is not None
            assert saver.stdout.readline() == "begin\n"
            time.sleep(dice.uniform(0, 0.3))  # when it is killed is left to chance
        finally:
            saver.kill()
            saver.communicate()
        ledger.forget()
        found = set(loaded(exe, s3_url, program, verify=True))
        assert found in ({1.0}, {2.0})
        seen |= found
        fill(1)
        fluid.io.save_persistables(exe, s3_url, program)
        assert loaded(exe, s3_url, program, verify=True) == [1] * 5
        assert beside(s3_url) == []
    assert seen


@pytest.mark.parametrize("fault", ["comes later", "is read back in part", "may not be read"])
def test_files_are_kept_if_their_marker_may_exist(
    exe: fluid.Executor, program: fluid.Program, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    url = f"memory://{uuid.uuid4().hex}/model"
    fluid.io.save_persistables(exe, url, program)
    later: list[Callable[[], bool]] = []

    def is_late(self: fsspec_store.FsspecStore, path: str, data: bytes) -> bool:
        later.append(lambda: create(self, path, data))
        raise TimeoutError("no answer")

    def read_half(self: fsspec_store.FsspecStore, path: str, *limits: int) -> bytes:
        if path.endswith(".2") and fault == "may not be read":
            raise PermissionError("no answer")
        data = read(self, path, *limits)
        return data[: len(data) // 2] if path.endswith(".2") else data

    create, read = fsspec_store.FsspecStore.create, fsspec_store.FsspecStore.read
    fill(5)
    with monkeypatch.context() as patch:
        name, stand_in = ("create", is_late) if fault == "comes later" else ("read", read_half)
        patch.setattr(fsspec_store.FsspecStore, name, stand_in)
        with pytest.raises(SaveError, match=r"no answer|was read back as"):
            fluid.io.save_persistables(exe, url, program)
    assert all(come() for come in later)
    assert loaded(exe, url, program, verify=True) == [5] * 5
    fill(6)
    fluid.io.save_persistables(exe, url, program)
    assert loaded(exe, url, program, verify=True) == [6] * 5
    assert beside(url) == []


def test_a_failed_remote_save_leaves_the_old_files(
    exe: fluid.Executor, program: fluid.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"memory://{uuid.uuid4().hex}/model"
    fluid.io.save_persistables(exe, url, program)
    was = files(url)

    def refuse(self: object, path: str, data: bytes) -> bool:
        raise PermissionError("Forbidden")

    fill(5)
    with monkeypatch.context() as patch:
        patch.setattr(fsspec_store.FsspecStore, "create", refuse)
        with pytest.raises(SaveError, match=r"(?s)cannot be written.*Forbidden"):
            fluid.io.save_persistables(exe, url, program)
    assert files(url) == was
    where = remote(url)
    assert not [name for name in where.store.find(where.root.rpartition("/")[0]) if ".saving-" in name]
    assert loaded(exe, url, program) == [0, 1, 2, 3, 4]


def test_a_second_saver_detects_the_first(
    exe: fluid.Executor, program: fluid.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"memory://{uuid.uuid4().hex}/model"
    fluid.io.save_persistables(exe, url, program)
    real = remote_transaction.RemoteTransaction._write

    def meanwhile(self: Any, folder: str) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(remote_transaction.RemoteTransaction, "_write", real)
            with fluid.scope_guard(fluid.Scope()):
                fill(8)
                fluid.io.save_persistables(exe, url, program)
        return real(self, folder)

    fill(7)
    monkeypatch.setattr(remote_transaction.RemoteTransaction, "_write", meanwhile)
    with pytest.raises(SaveError, match="somebody else at the same time"):
        fluid.io.save_persistables(exe, url, program)
    assert loaded(exe, url, program, verify=True) == [8] * 5


@pytest.mark.parametrize("before", ["nothing", "a save"])
def test_one_of_two_concurrent_saves_wins_and_the_other_fails(
    exe: fluid.Executor, program: fluid.Program, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """The second saver runs from beginning to end before any one call of the first."""
    monkeypatch.setattr(fsspec_store, "FsspecStore", Interrupted)
    outcomes = []
    for calls in range(100):
        url = f"memory://{uuid.uuid4().hex}/model"
        ledger.forget()
        fill(1)
        Interrupted.after(-1, None)
        if before == "a save":
            fluid.io.save_persistables(exe, url, program)

        def other(url: str = url) -> None:
            with fluid.scope_guard(fluid.Scope()):
                fill(8)
                fluid.io.save_persistables(exe, url, program)

        fill(7)
        Interrupted.after(calls, other)
        said = ""
        try:
            fluid.io.save_persistables(exe, url, program)
        except SaveError as error:
            said = str(error)
        assert not said or "somebody else at the same time" in said
        mine = not said
        left = Interrupted.left
        Interrupted.after(-1, None)
        found = set(loaded(exe, url, program, verify=True))
        assert len(found) == 1, f"a mix: the second came after {calls} calls"
        if left >= 0:  # nobody came between
            assert (mine, found) == (True, {7.0})
            break
        outcomes.append((mine, found.pop()))
        assert mine or outcomes[-1] == (False, 8.0)
        assert sorted(files(url)) == NAMES
        assert beside(url) == []
    # before the first call the second is the older one, up to the commit it wins, then it is the newer one
    order = [key for key, _ in itertools.groupby(outcomes)]
    assert order == [(True, 7.0), (False, 8.0), (True, 8.0)]
    assert outcomes.count((True, 7.0)) <= 2  # until the first one has read the marker
    assert calls > 10


class Interrupted(fsspec_store.FsspecStore):
    """A store that lets somebody else run before one of its calls."""

    left = -1
    somebody: Callable[[], None] | None = None

    @classmethod
    def after(cls, calls: int, somebody: Callable[[], None] | None) -> None:
        cls.left, cls.somebody = calls, somebody

    def _call(self) -> None:
        somebody = Interrupted.somebody
        if somebody is None:
            return
        Interrupted.left -= 1
        if Interrupted.left < 0:
            Interrupted.somebody = None
            somebody()

    def find(self, folder: str) -> dict[str, base.Info]:
        self._call()
        return super().find(folder)

    def list_prefix(self, front: str) -> dict[str, base.Info | None]:
        self._call()
        return super().list_prefix(front)

    def read(self, path: str, start: int = 0, stop: int | None = None) -> bytes:
        self._call()
        return super().read(path, start, stop)

    def write(self, folder: str, files: Mapping[str, Iterable[Any]]) -> None:
        for name, buffers in files.items():
            self._call()
            super().write(folder, {name: buffers})

    def put(self, path: str, data: bytes) -> None:
        self._call()
        super().put(path, data)

    def create(self, path: str, data: bytes) -> bool:
        self._call()
        return super().create(path, data)

    def move(self, source: str, target: str, names: Iterable[str]) -> None:
        for name in names:
            self._call()
            super().copy(source, target, [name])

    def copy(self, source: str, target: str, names: Iterable[str]) -> None:
        self._call()
        super().copy(source, target, names)


def test_only_one_saver_can_create_a_marker(url: str) -> None:
    where = remote(url)
    path = marker.make_path(where.base, 1)
    where.store.write(where.root, {"x": [b"1"]})
    assert where.store.create(path, b"first")
    assert not where.store.create(path, b"second")
    assert where.store.read(path) == b"first"
    assert where.store.list_prefix(path).keys() == {path.rpartition("/")[2]}


def test_leftovers_of_killed_savers_are_removed_by_the_next_one(
    exe: fluid.Executor, program: fluid.Program, url: str
) -> None:
    fluid.io.save_persistables(exe, url, program)
    where = remote(url)
    where.store.put(f"{marker.make_path(where.base, 2)}.0123abcd", b"not made yet")
    for number in (1, 2, 9):
        where.store.write(f"{where.root}.saving-{number}-abcd", {"v2": [b"of somebody who was killed"]})
    fill(5)
    fluid.io.save_persistables(exe, url, program)
    left = [name for name in where.store.list_prefix(where.root) if ".saving-" in name]
    assert left == [where.root.rpartition("/")[2] + ".saving-9-abcd"]  # of a save that may still come
    newest = marker.make_path(where.base, 2)
    assert sorted(where.store.list_prefix(marker.make_path(where.base))) == [newest.rpartition("/")[2]]
    assert loaded(exe, url, program, verify=True) == [5] * 5


def test_stale_files_are_listed_or_removed(
    exe: fluid.Executor, program: fluid.Program, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["paddlelike.io.save.chosen"], "fingerprint", lambda _: "5f")
    fluid.io.save_persistables(exe, url, program)
    where = remote(url)
    where.store.put(f"{where.root}/theirs", b"a file of others")
    smaller = fluid.Program()
    with fluid.scope_guard(fluid.Scope()):
        smaller.global_block().create_var(name="v2", shape=[3], dtype="float32", persistable=True)
        put("v2", 9)
        report = fluid.io.save_persistables(exe, url, smaller)
        assert set(report.stale) == {"big", "deep/er", "v3", "v4"}
        assert sorted(files(url)) == sorted([*NAMES, "theirs"])
        report = fluid.io.save_persistables(exe, url, smaller, remove_stale=True)
    assert set(report.removed) == {"big", "deep/er", "v3", "v4"}
    assert sorted(files(url)) == ["theirs", "v2"]


def test_a_saver_killed_while_removing_files_does_no_harm(
    exe: fluid.Executor,
    program: fluid.Program,
    dying: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.modules["paddlelike.io.save.chosen"], "fingerprint", lambda _: "5f")
    smaller = fluid.Program()
    smaller.global_block().create_var(name="v2", shape=[3], dtype="float32", persistable=True)
    for calls in range(100):
        url = f"memory://{uuid.uuid4().hex}/model"
        dying(-1)
        fluid.io.save_persistables(exe, url, program)
        with fluid.scope_guard(fluid.Scope()):
            put("v2", 9)
            dying(calls)
            try:
                fluid.io.save_persistables(exe, url, smaller, remove_stale=True)
                done = True
            except Killed:
                done = False
            dying(-1)
            seen = locate(url).list_names()
            assert seen in (NAMES, ["v2"])
            put("v2", 10)
            fluid.io.save_persistables(exe, url, smaller, remove_stale=True)
        assert locate(url).list_names() == sorted(files(url)) == ["v2"]
        if done:
            break
    assert calls > 6


# Markers


def test_the_marker_of_a_remote_save_is_a_manifest(exe: fluid.Executor, program: fluid.Program) -> None:
    url = f"memory://{uuid.uuid4().hex}/model"
    fluid.io.save_persistables(exe, url, program)
    where = remote(url)
    assert decode(where.store.read(where.copy)).files == where.read_marker().manifest.files
    found = decode(where.store.read(marker.make_path(where.base, 1)))
    assert sorted(found.files) == NAMES
    assert found.files["big"].facts["shape"] == [3000]
    assert found.files["big"].checksum.startswith("xxh3_128:")
    assert not any("at" in record.facts for record in found.files.values())


def test_a_damaged_marker_is_not_trusted(exe: fluid.Executor, program: fluid.Program) -> None:
    url = f"memory://{uuid.uuid4().hex}/model"
    fluid.io.save_persistables(exe, url, program)
    where = remote(url)
    data = where.store.read(marker.make_path(where.base, 1))
    where.store.put(marker.make_path(where.base, 2), data.replace(b'"big"', b'"bag"', 1))
    with pytest.raises(FormatError, match="damaged"):
        fluid.io.load_persistables(exe, url, program)


def test_a_marker_that_points_outside_is_refused(exe: fluid.Executor, program: fluid.Program) -> None:
    url = f"memory://{uuid.uuid4().hex}/model"
    fluid.io.save_persistables(exe, url, program)
    where = remote(url)
    found = decode(where.store.read(where.copy))
    for folder in ("/etc", where.root + ".saving-1/../..", where.root):
        twisted = {n: r._replace(facts={**r.facts, "at": folder}) for n, r in found.files.items()}
        where.store.put(marker.make_path(where.base, 2), manifest.encode(twisted))
        with pytest.raises(PaddlelikeError, match="not a staging folder"):
            fluid.io.load_persistables(exe, url, program)


# Addresses


def test_invalid_remote_addresses_are_refused(exe: fluid.Executor, program: fluid.Program) -> None:
    with pytest.raises(StorageError, match="not an address that fsspec knows"):
        fluid.io.save_persistables(exe, "nonsense://a/b", program)
    with pytest.raises(StorageError, match="names no directory"):
        fluid.io.save_persistables(exe, "memory://", program)
    with pytest.raises(ValueError, match="durability"):
        fluid.io.save_persistables(exe, "memory://a/b", program, durability="hope")
    with pytest.raises(ValueError, match="checksum"):
        fluid.io.save_persistables(exe, "memory://a/b", program, checksum="md5")


def test_without_fsspec_the_extra_is_named(
    exe: fluid.Executor, program: fluid.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ExtraMissingError, match=r"paddlelike\[remote\]"):
        fluid.io.save_persistables(exe, "memory://a/b", program)


def test_a_file_url_is_a_local_path(exe: fluid.Executor, program: fluid.Program, tmp_path: Path) -> None:
    path = tmp_path / "with space"
    fluid.io.save_persistables(exe, path.as_uri(), program)
    assert (path / "v2").exists()
    assert loaded(exe, path.as_uri(), program, verify=True) == [0, 1, 2, 3, 4]


# HDFS


def test_one_hadoop_call_handles_many_files(
    exe: fluid.Executor, program: fluid.Program, hadoop: Path
) -> None:
    fluid.io.save_persistables(exe, "hdfs:/user/me/model", program)
    log = hadoop.with_suffix(".log")
    saved = len(log.read_text().splitlines())
    assert loaded(exe, "hdfs:/user/me/model", program) == [0, 1, 2, 3, 4]
    assert saved < 20
    assert len(log.read_text().splitlines()) - saved < 16
    assert sorted(p.name for p in (hadoop / "user" / "me").iterdir()) == [
        "model",
        "model.manifest.json.1",
    ]
    assert json.loads((hadoop / "user" / "me" / "model.manifest.json.1").read_text())["format"] == 2
    shutil.copytree(hadoop / "user" / "me" / "model", hadoop.parent / "copy")  # as hadoop fs -get does
    assert fluid.io.verify(hadoop.parent / "copy")


def test_the_user_may_name_the_hadoop_command(
    exe: fluid.Executor, program: fluid.Program, hadoop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = f"{os.environ['HADOOP_HOME']}/bin/hadoop fs"
    monkeypatch.delenv("HADOOP_HOME")
    monkeypatch.setenv("PADDLELIKE_HADOOP", command)
    fluid.io.save_persistables(exe, "hdfs:/a", program)
    assert loaded(exe, "hdfs:/a", program) == [0, 1, 2, 3, 4]


def test_without_hadoop_the_command_is_named(
    exe: fluid.Executor, program: fluid.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PADDLELIKE_HADOOP", "no-such-hadoop fs")
    with pytest.raises(SaveError, match="no-such-hadoop"):
        fluid.io.save_persistables(exe, "hdfs:/a", program)


def test_messages_of_hadoop_are_part_of_the_error(
    exe: fluid.Executor, program: fluid.Program, hadoop: Path
) -> None:
    (hadoop / "a").write_text("a file")
    shutil.rmtree(hadoop / "user", ignore_errors=True)
    with pytest.raises(SaveError, match="hadoop"):
        fluid.io.save_persistables(exe, "hdfs:/a/b/c", program)


def test_names_that_hadoop_would_expand_as_patterns_are_refused(
    exe: fluid.Executor, program: fluid.Program, hadoop: Path
) -> None:
    program.global_block().create_var(name="w[0]", shape=[3], dtype="float32", persistable=True)
    put("w[0]", 1)
    with pytest.raises(SaveError, match="patterns"):
        fluid.io.save_persistables(exe, "hdfs:/a", program)
    fluid.io.save_persistables(exe, "hdfs:/a", program, "all")
