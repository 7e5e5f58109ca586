"""A parent in which others may create files: what another user plants beside a save is never acted on.

The victim and the stranger are two real users, so most of this needs root.
"""

from __future__ import annotations

import difflib  # noqa: F401  (imported late by errors: the folder of the interpreter may be closed to others)
import json
import os
import pwd  # noqa: F401
import shutil
import signal
import stat
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.distributed.wire.token_file import read_or_create_token
from paddlelike.errors import EndpointError, PaddlelikeError
from paddlelike.io.checkpoints.numbered import NumberedCheckpoints
from paddlelike.ops.kernels.fast import late
from paddlelike.storage import hashing
from paddlelike.storage.local.filesystem import owners
from paddlelike.storage.local.filesystem.file import File
from paddlelike.storage.local.layout import Layout
from paddlelike.storage.local.transaction import Transaction
from paddlelike.storage.manifest import decode, encode

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.geteuid() != 0, reason="only root can become two other users"
)
VICTIM, STRANGER, READER, GROUP = 1234, 6666, 5555, 7777
EXE = fluid.Executor()


def build() -> fluid.Program:
    program = fluid.Program()
    for name in ("v", "w"):
        program.global_block().create_parameter(name=name, shape=[4, 3], dtype="float32")
    return program


def put(number: float) -> None:
    for name in ("v", "w"):
        fluid.global_scope().var(name).get_tensor().set(np.full((4, 3), number, "float32"), fluid.CPUPlace())


def get() -> float:
    found = {
        float(value)
        for name in ("v", "w")
        for value in np.array(fluid.global_scope().find_var(name).get_tensor()).ravel()
    }
    assert len(found) == 1, f"a mix: {found}"
    return found.pop()


def save_directory(home: Path) -> None:
    fluid.io.save_persistables(EXE, str(home / "p"), build())


def load_directory(home: Path) -> None:
    fluid.io.load_persistables(EXE, str(home / "p"), build())


def save_combined(home: Path) -> None:
    fluid.io.save_persistables(EXE, str(home / "p"), build(), filename="all")


def load_combined(home: Path) -> None:
    fluid.io.load_persistables(EXE, str(home / "p"), build(), filename="all")


def save_prefix(home: Path) -> None:
    fluid.save(build(), str(home / "p"))


def load_prefix(home: Path) -> None:
    fluid.load(build(), str(home / "p"), EXE)


def save_chain(home: Path) -> None:
    fluid.io.save_persistables(EXE, str(home / "p"), build(), delta=True)


def save_later(home: Path) -> None:
    pending = fluid.io.save_persistables(EXE, str(home / "p"), build(), blocking=False)
    assert isinstance(pending, fluid.io.PendingSave)
    pending.wait()


def save_checkpoint(home: Path) -> None:
    NumberedCheckpoints(home / "p").save_numbered(EXE, build(), step=1)


def load_checkpoint(home: Path) -> None:
    NumberedCheckpoints(home / "p").restore_named(EXE, build())


def build_model() -> tuple[fluid.Program, fluid.Variable]:
    """Build a model that has the two parameters."""
    program = build()
    with fluid.program_guard(program, fluid.Program()), fluid.unique_name.guard():
        block, x = program.global_block(), fluid.data("x", [None, 4])
        return program, fluid.layers.elementwise_add(
            fluid.layers.matmul(x, block.var("v")), fluid.layers.matmul(x, block.var("w"))
        )


def save_export(home: Path) -> None:
    program, out = build_model()
    fluid.io.save_inference_model(str(home / "p"), ["x"], [out], EXE, program)


def load_export(home: Path) -> None:
    fluid.io.load_inference_model(str(home / "p"), EXE)


FORMS = {
    "directory": (save_directory, load_directory),
    "combined": (save_combined, load_combined),
    "prefix": (save_prefix, load_prefix),
    "chain": (save_chain, load_directory),
    "asynchronous": (save_later, load_directory),
    "checkpoint": (save_checkpoint, load_checkpoint),
    "export": (save_export, load_export),
}


def act_as(user: int, work: Callable[[], object]) -> None:
    """Run ``work`` in a fork that belongs to a user without rights."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([GROUP])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def identify(path: Path) -> list[int]:
    facts = os.lstat(path)
    return [facts.st_ino, facts.st_size, facts.st_mtime_ns]


def list_tree(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return everything below a folder: owner, mode and contents."""
    found = {}
    for path in sorted([root, *root.rglob("*")]):
        facts = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(facts.st_mode) else b""
        found[str(path.relative_to(root))] = facts.st_uid, facts.st_mode, data
    return found


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def find_hidden(home: Path, form: str) -> Path:
    return Path(Layout(str(home / "p"), is_prefix=form == "prefix").staging)


def plant_journal(home: Path, form: str) -> None:
    """Plant a journal that would put the files of another save into place."""
    hidden, prefix = find_hidden(home, form), form == "prefix"
    (hidden / "old").mkdir(parents=True)
    shutil.copytree(home / "other", hidden / "new")
    (hidden / "new").chmod(0o777)
    files, where = list_names(hidden / "new"), home if prefix else home / "p"
    targets = [
        [name, identify(where / name) if (where / name).exists() else None, identify(hidden / "new" / name)]
        for name in files
        if (hidden / "new" / name).is_file()
    ]
    held = {"format": 2, "direction": "forward", "targets": targets, "folders": [], "sync": False}
    text = json.dumps(held)[:-1]
    (hidden / "journal").write_text(text + f', "digest": "{hashing.hash_bytes(text.encode())}"}}')


def plant_staged(home: Path, form: str) -> None:
    """Plant what says that the save in place is cut, and the save of somebody else the one before."""
    hidden = find_hidden(home, form)
    hidden.mkdir()
    shutil.copytree(home / "other", hidden / "new")
    (hidden / "new").chmod(0o777)
    manifest = hidden / "new" / ("p.pdmanifest" if form == "prefix" else "__manifest__")
    with File(manifest) as file:
        before = hashing.hash_file(file, "xxh3_128").text
    held = {"token": "0" * 32, "written": {}, "files": dict.fromkeys(list_names(hidden / "new"), 1)}
    (hidden / "staged").write_text(json.dumps(held | {"before": before, "dropped": [], "mount": "other"}))


def plant_link(home: Path, form: str) -> None:
    plant_journal(home, form)
    find_hidden(home, form).rename(home / "elsewhere")
    find_hidden(home, form).symlink_to(home / "elsewhere")


def plant_pipe(home: Path, form: str) -> None:
    """Plant a lock that whoever opened it would wait for, beside a journal."""
    plant_journal(home, form)
    os.mkfifo(find_hidden(home, form) / "lock", 0o666)


PLANTS = [plant_journal, plant_staged, plant_link, plant_pipe]
MODES = {"sticky": 0o1777, "open": 0o777, "group": 0o2775, "sticky group": 0o3775}

#: Every plant beside every form, and each of both in a parent of every mode.
PAIRS = [
    pytest.param(plant, form, [*MODES.values()][(i + j) % len(MODES)], id=f"{plant.__name__}-{form}")
    for i, plant in enumerate(PLANTS)
    for j, form in enumerate(FORMS)
]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Import everything: the folder of the interpreter may be closed to other users."""
    for form, (save, load) in FORMS.items():
        put(1)
        save(tmp_path_factory.mktemp(form))
        save(where := tmp_path_factory.mktemp(form))
        load(where)


@pytest.fixture
def home(imported: None) -> Iterator[Path]:
    """A folder that other users reach; pytest's own are closed to them."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    (place / "shared").mkdir()
    yield place / "shared"
    shutil.rmtree(place)


@pytest.mark.parametrize(("plant", "form", "mode"), PAIRS)
def test_files_planted_by_another_user_are_named_and_never_acted_on(
    home: Path, plant: Callable[[Path, str], None], form: str, mode: int
) -> None:
    """Proves S18."""
    save, load = FORMS[form]
    os.chown(home, 0, GROUP)
    home.chmod(mode)
    put(666)
    (home / "other").mkdir()
    save(home / "other")
    made = home / "made"  # the files of a save, without the folder around them
    if form == "prefix":
        (home / "other").rename(made)
    else:
        (home / "other" / "p").rename(made)
        (home / "other").rmdir()
    made.rename(home / "other")

    def victim_saves() -> None:
        put(1)
        save(home)

    def victim_meets_it() -> None:
        put(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = ""
            try:
                load(home)
            except PaddlelikeError as error:
                said = str(error)
            assert get() == (0 if said else 1)
            assert not said or f"{find_hidden(home, form)} belongs to user 6666" in said
            put(2)
            with pytest.raises(PaddlelikeError) as caught:
                save(home)
            assert str(find_hidden(home, form)) in str(caught.value)
            assert "6666" in str(caught.value)

    act_as(VICTIM, victim_saves)
    os.umask(0)
    try:
        act_as(STRANGER, lambda: plant(home, form))
    finally:
        os.umask(0o022)
    before = list_tree(home)
    act_as(VICTIM, victim_meets_it)
    assert list_tree(home) == before

    hidden = find_hidden(home, form)
    hidden.unlink() if hidden.is_symlink() else shutil.rmtree(hidden)
    home.chmod(0o1777)

    def victim_goes_on() -> None:
        put(0)
        load(home)
        assert get() == 1
        put(3)
        save(home)
        put(0)
        load(home)
        assert get() == 3

    act_as(VICTIM, victim_goes_on)


def test_a_manifest_written_by_another_user_is_not_trusted(home: Path) -> None:
    home.chmod(0o1777)

    def victim_saves() -> None:
        put(1)
        fluid.save(build(), str(home / "p"))
        (home / "p.pdmanifest").unlink()  # as where Paddle has saved
        (home / "p.notes").write_bytes(b"the victim's")

    def stranger_plants() -> None:
        put(666)
        fluid.save(build(), str(home / "q"))
        theirs = decode((home / "q.pdmanifest").read_bytes())
        files = {name.replace("q", "p", 1): record for name, record in theirs.files.items()}
        one = next(iter(files.values()))
        facts = (home / "p.notes").stat()
        with File(home / "p.notes") as file:
            checksum = hashing.hash_file(file, "xxh3_128").text
        files["p.notes"] = one._replace(
            size=facts.st_size, stamp=(facts.st_ino, facts.st_mtime_ns), checksum=checksum
        )
        (home / "p.pdmanifest").write_bytes(encode(files, author=theirs.author, is_prefix=True))

    def victim_meets_it() -> None:
        put(0)
        with pytest.raises(PaddlelikeError, match=r"p\.pdmanifest belongs to user 6666"):
            fluid.load(build(), str(home / "p"), EXE)
        assert get() == 0
        put(2)
        with pytest.raises(PaddlelikeError, match=r"p\.pdmanifest"):
            fluid.save(build(), str(home / "p"))

    act_as(VICTIM, victim_saves)
    act_as(STRANGER, stranger_plants)
    before = list_tree(home)
    act_as(VICTIM, victim_meets_it)
    assert list_tree(home) == before
    (home / "p.pdmanifest").unlink()

    def victim_goes_on() -> None:
        fluid.load(build(), str(home / "p"), EXE)
        assert get() == 1

    act_as(VICTIM, victim_goes_on)


def test_a_checkpoint_of_another_user_is_named_and_not_restored(home: Path) -> None:
    home.chmod(0o1777)

    def save(number: float, step: int) -> None:
        put(number)
        NumberedCheckpoints(home / "p").save_numbered(EXE, build(), step, index=step)

    def victim_restores() -> None:
        put(0)
        with pytest.warns(UserWarning, match=r"p\.9 belongs to user 6666"):
            NumberedCheckpoints(home / "p").restore_newest(EXE, build())
        assert get() == 1
        save(2, 3)

    def reader_meets_both() -> None:
        with pytest.raises(PaddlelikeError, match=r"belongs to user"):
            NumberedCheckpoints(home / "p").restore_newest(EXE, build())

    def reader_restores() -> None:
        put(0)
        NumberedCheckpoints(home / "p").restore_newest(EXE, build())
        assert get() == 2

    act_as(VICTIM, lambda: save(1, 1))
    act_as(STRANGER, lambda: save(666, 9))
    act_as(VICTIM, victim_restores)
    act_as(READER, reader_meets_both)
    shutil.rmtree(home / "p.9")
    act_as(READER, reader_restores)


def test_a_user_with_read_permission_loads_a_save_of_another_user(home: Path) -> None:
    home.chmod(0o1777)

    def victim_saves() -> None:
        put(1)
        for form in ("directory", "prefix"):
            (home / form).mkdir()
            FORMS[form][0](home / form)

    def reader_loads() -> None:
        for form in ("directory", "prefix"):
            put(0)
            FORMS[form][1](home / form)
            assert get() == 1

    act_as(VICTIM, victim_saves)
    act_as(STRANGER, reader_loads)
    reader_loads()


@pytest.mark.parametrize("mask", [0, 0o002, 0o077])
def test_other_users_cannot_write_into_the_hidden_entry_of_a_save(
    home: Path, monkeypatch: pytest.MonkeyPatch, mask: int
) -> None:
    home.chmod(0o1777)
    seen = []
    real = os.rename

    def look(source: str, target: str) -> None:
        for each in home.glob(".p.*"):
            seen.extend(path.stat().st_mode for path in (each, *each.glob("lock")))
        real(source, target)

    old = os.umask(mask)
    try:
        monkeypatch.setattr(os, "rename", look)
        put(1)
        save_directory(home)
    finally:
        os.umask(old)
    assert seen
    assert not any(mode & (stat.S_IWGRP | stat.S_IWOTH) for mode in seen)


def test_the_message_to_a_waiting_user_names_who_saves(home: Path) -> None:
    (home / "p").mkdir()
    home.chmod(0o777)
    (home / "p").chmod(0o777)
    reading, writing = os.pipe()

    def stranger_holds() -> None:
        from paddlelike.storage.local.filesystem.lock import Lock

        remove = os.rmdir

        def remove_late(path: str) -> None:
            time.sleep(0.5)  # the entry is there still, and nobody holds its lock
            remove(path)

        os.rmdir = remove_late  # type: ignore[assignment]
        with Lock(Layout(str(home / "p"), is_prefix=False).lock, "p"):
            os.write(writing, b"held")
            time.sleep(1)

    def victim_saves() -> None:
        assert os.read(reading, 4) == b"held"
        put(2)
        with pytest.raises(PaddlelikeError, match=rf"process \d+ of user {STRANGER}"):
            fluid.io.save_persistables(EXE, str(home / "p"), build(), wait=0.1)
        report = fluid.io.save_persistables(EXE, str(home / "p"), build())
        assert f"of user {STRANGER}" in str(report)
        put(0)
        load_directory(home)
        assert get() == 2

    child = os.fork()
    if child == 0:
        try:
            act_as(STRANGER, stranger_holds)
        finally:
            os._exit(0)
    os.close(writing)
    act_as(VICTIM, victim_saves)
    os.waitpid(child, 0)
    os.close(reading)


# Other files that decide something, or are written, where others may create files


def plant_a_link(path: Path, precious: Path) -> None:
    path.symlink_to(precious)


def plant_a_pipe(path: Path, precious: Path) -> None:
    os.mkfifo(path, 0o666)


def plant_a_file(path: Path, precious: Path) -> None:
    path.touch()
    path.chmod(0o666)


def plant_a_folder(path: Path, precious: Path) -> None:
    path.mkdir(0o777)
    (path / "lock").symlink_to(precious)


@pytest.fixture
def precious(home: Path) -> Path:
    """A file of the victim elsewhere, to which a planted link leads."""
    file = home.parent / "precious"
    file.write_bytes(b"of the victim")
    os.chown(file, VICTIM, VICTIM)
    home.chmod(0o1777)
    return file


def act_on_planted(
    home: Path, precious: Path, plant: Callable[[Path, Path], None], path: Path, victim: Callable[[], object]
) -> None:
    """Have the stranger plant something and the victim meet it: both files stay, and nobody hangs."""

    def limited() -> None:
        signal.alarm(60)  # whoever opens a pipe may wait for ever
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            victim()

    mask = os.umask(0)
    try:
        act_as(STRANGER, lambda: plant(path, precious))
    finally:
        os.umask(mask)
    before = list_tree(path)
    act_as(VICTIM, limited)
    assert precious.read_bytes() == b"of the victim"
    if path.lstat().st_uid == STRANGER:  # else the victim's has replaced it
        assert list_tree(path) == before


@pytest.mark.parametrize("plant", [plant_a_link, plant_a_pipe, plant_a_file])
def test_a_training_log_that_another_user_planted_is_named_and_not_continued(
    home: Path, precious: Path, plant: Callable[[Path, Path], None]
) -> None:
    log = home / "train.jsonl"

    def victim_logs() -> None:
        with pytest.raises(PaddlelikeError, match=r"train\.jsonl"):
            fluid.io.TrainingLog(log).write(1, loss=1.0)

    act_on_planted(home, precious, plant, log, victim_logs)


@pytest.mark.parametrize("plant", [plant_a_link, plant_a_pipe, plant_a_file, plant_a_folder])
@pytest.mark.parametrize("name", ["out.npz", ".out.npz.saving-prefix"])
def test_files_planted_in_a_shared_folder_do_not_redirect_a_conversion(
    home: Path, precious: Path, plant: Callable[[Path, Path], None], name: str
) -> None:
    put(1)
    source = home.parent / "source"
    source.mkdir()
    save_directory(source)

    def victim_converts() -> None:
        said = ""
        try:
            fluid.convert(str(source / "p"), str(home / "out.npz"))
        except PaddlelikeError as error:
            said = str(error)
        assert not said or name in said
        if not said:
            with np.load(home / "out.npz") as found:
                assert {float(one) for array in found.values() for one in array.ravel()} == {1.0}
            assert (home / "out.npz").lstat().st_uid == VICTIM

    act_on_planted(home, precious, plant, home / name, victim_converts)


@pytest.mark.parametrize("plant", [plant_a_link, plant_a_pipe, plant_a_file, plant_a_folder])
@pytest.mark.parametrize("name", ["paddlelike", "paddlelike/kernels"])
def test_compiled_kernels_are_not_kept_where_another_user_planted_the_folder(
    home: Path, precious: Path, plant: Callable[[Path, Path], None], name: str
) -> None:
    if "/" in name:
        (home / "paddlelike").mkdir()
        (home / "paddlelike").chmod(0o777)

    def victim_looks() -> None:
        os.environ.pop("NUMBA_CACHE_DIR", None)
        os.environ["XDG_CACHE_HOME"] = str(home)
        assert late.find_cache() is None

    act_on_planted(home, precious, plant, home / name, victim_looks)


@pytest.mark.parametrize("plant", [plant_a_link, plant_a_pipe, plant_a_file, plant_a_folder])
def test_a_job_token_that_another_user_planted_is_refused(
    home: Path, precious: Path, plant: Callable[[Path, Path], None]
) -> None:
    def victim_reads() -> None:
        with pytest.raises(EndpointError, match="job_token"):
            read_or_create_token([home / "job_token"])

    act_on_planted(home, precious, plant, home / "job_token", victim_reads)


def save_step(home: Path) -> None:
    fluid.io.Checkpoints(home / "p").save(EXE, build(), 1)


@pytest.mark.parametrize("save", [save_directory, save_chain, save_step, save_prefix])
def test_nothing_is_saved_through_a_link_that_another_user_planted(
    home: Path, save: Callable[[Path], None]
) -> None:
    """Linux refuses it too, but not where ``fs.protected_symlinks`` is 0, as in many containers."""
    home.chmod(0o1777)

    def victim_saves_apart() -> None:
        (home / "mine").mkdir()
        put(1)
        save(home / "mine")

    def stranger_plants() -> None:
        (home / "link").symlink_to(home / "mine")

    def victim_saves() -> None:
        put(2)
        with pytest.raises(PaddlelikeError, match=r"belongs to user|Permission denied"):
            save(home / "link")

    act_as(VICTIM, victim_saves_apart)
    files = {path: path.read_bytes() for path in (home / "mine").rglob("*") if path.is_file()}
    act_as(STRANGER, stranger_plants)
    act_as(VICTIM, victim_saves)
    assert {path: path.read_bytes() for path in (home / "mine").rglob("*") if path.is_file()} == files


def test_nothing_is_saved_through_a_link_behind_an_own_link(home: Path) -> None:
    home.chmod(0o1777)
    act_as(VICTIM, lambda: (home / "mine").mkdir())
    act_as(STRANGER, lambda: (home / "planted").symlink_to("mine"))
    act_as(VICTIM, lambda: (home / "mine" / "link").symlink_to("../planted/sub"))

    def victim_saves() -> None:
        put(1)
        with pytest.raises(PaddlelikeError, match=r"planted belongs to user 6666|Permission denied"):
            save_directory(home / "mine" / "link")

    act_as(VICTIM, victim_saves)
    assert not (home / "mine" / "sub").exists()


@pytest.mark.parametrize("then", ["nothing", "a link", "a folder"])
def test_nothing_is_saved_through_a_link_that_changes_during_the_save(tmp_path: Path, then: str) -> None:
    """Whoever planted it could take it away before it is looked at."""
    put(1)
    link, mine, other = (tmp_path / name for name in ("link", "mine", "other"))
    mine.mkdir()
    other.mkdir()
    link.symlink_to("mine")
    transaction, checkpoints = Transaction(link), fluid.io.Checkpoints(link)
    transaction.add("v", [b"new"])
    link.unlink()
    if then == "a link":
        link.symlink_to(other)
    elif then == "a folder":
        link.mkdir()
    for save in (transaction.commit, lambda: checkpoints.save(EXE, build(), 1)):
        with pytest.raises(PaddlelikeError, match=f"leads to .* now, and led to {mine} before"):
            save()
    assert not [path for path in tmp_path.rglob("*") if path.parent != tmp_path]


FOLLOWED = {  # folder's owner and mode, link's owner
    "own link": (0, 0o1777, VICTIM),
    "root's link": (0, 0o1777, 0),
    "link of the folder's owner": (STRANGER, 0o1777, STRANGER),
    "folder without the sticky bit": (0, 0o777, STRANGER),
    "folder of a group": (0, 0o1770, STRANGER),
}


@pytest.mark.parametrize(("owner", "mode", "maker"), FOLLOWED.values(), ids=FOLLOWED)
def test_saves_follow_links_that_protected_symlinks_allows(
    home: Path, owner: int, mode: int, maker: int
) -> None:
    """As with ``fs.protected_symlinks``: only links in folders that are sticky and writable for all count."""
    (home / "data").mkdir()
    os.chown(home / "data", VICTIM, VICTIM)
    (home / "shared").mkdir()
    os.chown(home / "shared", owner, GROUP)
    (home / "shared" / "link").symlink_to(home / "data")
    os.chown(home / "shared" / "link", maker, maker, follow_symlinks=False)
    (home / "shared").chmod(mode)

    def victim_saves() -> None:
        put(3)
        save_directory(home / "shared" / "link")

    act_as(VICTIM, victim_saves)
    load_directory(home / "data")
    assert get() == 3


def test_links_in_a_circle_end_a_save_with_an_error(home: Path) -> None:
    (home / "sub").mkdir()
    (home / "link").symlink_to("sub/../link")
    put(1)
    with pytest.raises(PaddlelikeError, match="link"):
        save_directory(home / "link")


def test_another_user_cannot_add_a_link_to_a_chain(home: Path) -> None:
    """The folder of the links belongs to whoever saved, whatever the mode of the directory."""
    home.chmod(0o1777)
    program = fluid.Program()
    program.global_block().create_parameter(name="v", shape=[4000, 8], dtype="float32")

    def victim_saves() -> None:
        table = fluid.global_scope().var("v").get_tensor()
        rows = np.ones((4000, 8), "float32")
        for number in (1, 2):
            rows[0] = number
            table.set(rows, fluid.CPUPlace())
            fluid.io.save_persistables(EXE, str(home / "p"), program, delta=True)

    def stranger_plants() -> None:
        for name in ("__manifest__.9", "v.00000000.1"):
            with pytest.raises(PermissionError):
                (home / "p" / "__deltas__" / name).touch()
        with pytest.raises(PermissionError):
            (home / "p" / "__deltas__").rename(home / "p" / "mine")

    act_as(VICTIM, victim_saves)
    (home / "p").chmod(0o1777)
    act_as(STRANGER, stranger_plants)
    fluid.io.load_persistables(EXE, str(home / "p"), program)
    assert np.asarray(fluid.global_scope().var("v").get_tensor())[:2, 0].tolist() == [2, 1]


def test_files_owned_by_the_mapped_user_of_a_file_server_belong_to_this_user(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(1)
    save_directory(home)
    hidden = find_hidden(home, "directory")
    hidden.mkdir()
    os.chown(hidden, 65534, 65534)
    put(2)
    with pytest.raises(PaddlelikeError, match="belongs to user"):
        save_directory(home)
    monkeypatch.setattr(owners, "_create_one", lambda folder: 65534)
    owners._shown.clear()
    save_directory(home)
    owners._shown.clear()
    put(0)
    load_directory(home)
    assert get() == 2
