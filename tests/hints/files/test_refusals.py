"""The advice of errors of the system, of other savers and of stores, followed to the letter.

The refusals are made in this process: a call of the system fails below one folder, as on a full disk.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer
from typing import Any
from unittest import mock

import pytest

import paddlelike as fluid
from paddlelike.errors import SaveError
from paddlelike.io.incremental import ledger
from paddlelike.storage.local.files import recover
from paddlelike.storage.local.filesystem import owners
from paddlelike.storage.local.filesystem.lock import Lock
from paddlelike.storage.local.transaction import Transaction
from paddlelike.storage.remote.fsspec_store import FsspecStore
from paddlelike.storage.remote.transaction import RemoteTransaction
from tests.hints.advice import Advice, each
from tests.hints.files.test_files import build, load, save
from tests.hints.files.test_storage import save_names, save_to
from tests.io.conftest import STANDIN
from tests.io.deltas.tables import Training
from tests.storage.faults.test_leftovers import NEW, OLD, killed_at_move, save as save_files

HIDDEN = Path(".m.saving-directory")


@contextlib.contextmanager
def refuse(
    call: str, code: int, below: str = "disk", while_true: Callable[[], object] = lambda: True
) -> Iterator[None]:
    """Refuse a call of the system below a folder, as long as a condition holds."""
    real, folder = getattr(os, call), os.path.abspath(below)

    def name(one: Any) -> str:
        try:
            return os.readlink(f"/proc/self/fd/{one}") if isinstance(one, int) else os.path.abspath(one)
        except (TypeError, ValueError, OSError):
            return ""

    def refused(*args: Any, **options: Any) -> Any:
        at = [name(one) for one in (*args, options.get("dir_fd"))]
        if any(one.startswith(folder) for one in at) and while_true():
            raise OSError(code, os.strerror(code))
        return real(*args, **options)

    with mock.patch.object(os, call, refused):
        yield


def use_disk(call: str, code: int, path: str = "disk/m") -> Any:
    """Save to a disk that refuses a call, or to another one."""
    os.mkdir("disk")
    with refuse(call, code):
        return float(save_to(path).sum())


def save_full(code: int, *then: str) -> Any:
    """Save to a disk that is full as long as a file is on it; ``then``: remove the file, or another disk."""
    os.mkdir("disk")
    Path("disk/large").write_text("large")
    found = []
    with refuse("mkdir", code, while_true=Path("disk/large").exists):
        for path in then or ("disk/m",):
            if path == "disk/m" and then:
                os.remove("disk/large")
            found.append(float(save_to(path).sum()))
    return found


def read_refused(mode: int) -> Any:
    save()
    os.chmod("m/fc_0.w_0", mode)
    with refuse("open", errno.EACCES, "m/fc_0.w_0", lambda: not os.stat("m/fc_0.w_0").st_mode & 0o400):
        return float(load().sum())


def limit_files(more: bool) -> Any:
    """Save with as many files as are open, or with more."""
    save_to("before")  # imports what it needs
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open(".", os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft if more else free, hard))
    try:
        return float(save_to("m").sum())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def save_while_locked(path: str, wait: float) -> Any:
    """Save while another saver holds the lock of ``m``, which it releases soon if the save waits."""
    save()
    HIDDEN.mkdir(exist_ok=True)
    lock = Lock(os.path.abspath(HIDDEN / "lock"), "m")
    assert lock.acquire()
    timer = Timer(0.2, lock.release)
    if wait:
        timer.start()
    try:
        build()
        fluid.io.save_persistables(fluid.Executor(), path, wait=wait)
        return float(load(dirname=path).sum())
    finally:
        timer.cancel()
        lock.release()


def plant(what: str) -> None:
    """Leave something of another kind where a save expects its hidden folder, or the lock in it."""
    save()
    if what == "file":
        HIDDEN.write_text("mine")
        return
    HIDDEN.mkdir()
    if what == "link":
        os.link("m/fc_0.w_0", HIDDEN / "lock")
    elif what == "folder":
        (HIDDEN / "lock").mkdir()
    elif what == "pipe":
        os.mkfifo(HIDDEN / "lock")


def save_again(remove: str = "") -> float:
    if remove:
        path = HIDDEN / "lock"
        path.rmdir() if remove == "folder" else path.unlink()
    save()
    return float(load().sum())


def meet_other_user(then: str) -> Any:
    """Meet the hidden entry of another user, who then saves once, or remove it."""
    save()
    HIDDEN.mkdir()
    other = 4321
    os.chown(HIDDEN, other, -1)
    if then == "save":
        shown = {(os.stat(".").st_dev, other): os.geteuid()}  # the owner of files that this process creates
        with (
            mock.patch.object(owners, "_get_user", return_value=other),
            mock.patch.object(owners, "_shown", shown),
        ):
            save()
    elif then == "remove":
        HIDDEN.rmdir()
    return save_again()


def change_link(again: bool) -> Any:
    """Save where a link leads that somebody changes before the commit, and once more."""
    for name in ("a", "b"):
        os.mkdir(name)
    os.symlink("a", "m")
    transaction = Transaction("m")
    transaction.add("w", [b"w"])
    os.remove("m")
    os.symlink("b", "m")
    if again:
        transaction = Transaction("m")
        transaction.add("w", [b"w"])
    transaction.commit()
    return Path("b/w").read_text()


def kill() -> Path:
    """Kill a save when it has moved one file of three."""
    where = Path("m").resolve()
    save_files(where, OLD)
    killed_at_move(where, 2)
    return where


def finish(may_write: bool) -> Any:
    """Finish a save that was killed, by a process that may write there or not."""
    where = kill()
    with contextlib.ExitStack() as stack:
        for call in () if may_write else ("rename", "replace"):
            stack.enter_context(refuse(call, errno.EACCES, "m"))
        recover(where)
    return {name: (where / name).read_bytes() for name in OLD}


def start_chain(then: str) -> Any:
    """Save a chain of deltas beside a file that no manifest describes."""
    training = Training()
    training.save("m")
    os.remove("m/__manifest__")
    ledger.forget()
    if then == "remove":
        for path in Path("m").iterdir():
            path.unlink()
    training.save("m", **({} if then == "without" else {"delta": True}))
    return training.loaded("m") == training.values()


def replace_chain(is_readable: bool) -> Any:
    """Save files into the directory of a chain, whose manifest cannot be read at first."""
    training = Training()
    for _ in range(3):
        training.save("m", delta=True)
        training.step(3)
    with (
        refuse("open", errno.EIO, "m/__manifest__", lambda: not is_readable),
        Transaction("m", program="another") as transaction,
    ):
        transaction.add("w", [b"w"])
    return bool(fluid.io.verify("m"))


def lose_locks(path: str) -> Any:
    """Save where no new file of a lock is found again, or elsewhere."""
    real = os.open

    def lose(name: Any, *args: Any, **options: Any) -> int:
        if name == "lock" and str(HIDDEN) in os.readlink(f"/proc/self/fd/{options['dir_fd']}"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return real(name, *args, **options)

    with mock.patch.object(os, "open", lose):
        return float(save_to(path).sum())


ADVICE: dict[str, Advice] = {
    "a full disk": Advice(
        lambda: save_full(errno.ENOSPC),
        "the disk is full: remove something or choose another disk",
        lambda: save_full(errno.ENOSPC, "other/m", "disk/m"),
        [8.0, 8.0],
    ),
    "a full quota": Advice(
        lambda: save_full(errno.EDQUOT),
        "the quota of the disk is used up: remove something or choose another disk",
        lambda: save_full(errno.EDQUOT, "other/m", "disk/m"),
        [8.0, 8.0],
    ),
    "a file system that is only read": Advice(
        lambda: use_disk("mkdir", errno.EROFS),
        "the file system is mounted read-only: choose another directory",
        lambda: use_disk("mkdir", errno.EROFS, "other/m"),
        8.0,
    ),
    "a folder of another user": Advice(
        lambda: use_disk("mkdir", errno.EACCES),
        "the user that runs this may not do that there: choose another directory",
        lambda: use_disk("mkdir", errno.EACCES, "other/m"),
        8.0,
    ),
    "a path through a file": Advice(
        lambda: [Path("file").write_text("mine"), save_to("file/folder/m")],
        "a part of the path is a file, not a directory: choose another directory",
        lambda: [Path("file").write_text("mine"), float(save_to("other/m").sum())][1],
        8.0,
    ),
    "a path below a file": Advice(
        lambda: [Path("file").write_text("mine"), save_to("file/m")],
        "there is a file of that name: choose another directory",
        lambda: [Path("file").write_text("mine"), float(save_to("other/m").sum())][1],
        8.0,
    ),
    "a file that is a folder": Advice(
        lambda: use_disk("rename", errno.EISDIR),
        "there is a directory of that name: choose another name",
        lambda: use_disk("rename", errno.EISDIR, "other/m"),
        8.0,
    ),
    "a name that is too long": Advice(
        lambda: save_names("w" * 300),
        "use filename= to put all variables into one file, or shorter names",
        lambda: each(lambda: save_names("w" * 300, filename="all"), lambda: save_names("w" * 200)),
        [[1.0], [1.0]],
    ),
    "too many files": Advice(
        lambda: limit_files(more=False),
        "too many files are open in this process: raise the limit (ulimit -n)",
        lambda: limit_files(more=True),
        8.0,
    ),
    "a file that may not be read": Advice(
        lambda: read_refused(0),
        "the user that runs this may not read it: change its permissions, or run this as its owner",
        lambda: read_refused(0o600),
        8.0,
    ),
    "a directory that is being saved": Advice(
        lambda: save_while_locked("m", wait=0.0),
        "save into another directory or later; save_persistables(wait=seconds) waits longer",
        lambda: each(lambda: save_while_locked("other", wait=0.0), lambda: save_while_locked("m", wait=60.0)),
        [8.0, 8.0],
    ),
    **{
        f"a lock that is a {what}": Advice(
            lambda what=what: [plant(what), save_again()],
            "remove it, if nobody saves there at this moment",
            lambda what=what: [plant(what), save_again(remove=what)][1],
            8.0,
        )
        for what in ("link", "folder", "pipe")
    },
    "a file where a folder belongs": Advice(
        lambda: [plant("file"), save_again()],
        "remove or rename it",
        lambda: [
            plant("file"),
            HIDDEN.unlink(),
            save_again(),
            plant("file"),
            HIDDEN.rename("mine"),
            save_again(),
        ][2::3],
        [8.0, 8.0],
    ),
    "a link that changes": Advice(
        lambda: change_link(again=False),
        "somebody changed a link: try again",
        lambda: change_link(again=True),
        "w",
    ),
    "a chain beside a file of another program": Advice(
        lambda: start_chain("nothing"),
        "remove that file, or save without delta=",
        lambda: each(lambda: start_chain("remove"), lambda: [shutil.rmtree("m"), start_chain("without")][1]),
        [True, True],
    ),
    "a manifest that cannot be read": Advice(
        lambda: replace_chain(is_readable=False),
        "save again; the manifest names the links of its chains",
        lambda: replace_chain(is_readable=True),
        True,
    ),
    "locks that are lost": Advice(
        lambda: lose_locks("m"),
        "choose another directory: this file system loses new files, or changes their type",
        lambda: lose_locks("other"),
        8.0,
    ),
    "a killed save that this user may not finish": Advice(
        lambda: finish(may_write=False),
        "load or save it once as a user who may write there",
        lambda: finish(may_write=True),
        NEW,
    ),
}


def save_url(url: str) -> float:
    return float(save_to(url).sum())


@contextlib.contextmanager
def fail_once(name: str, error: Exception, when: Callable[..., bool]) -> Iterator[None]:
    """Let one call of the stores of fsspec fail, the first one with arguments of a kind."""
    real, failed = getattr(FsspecStore, name), []

    def call(self: Any, *args: Any, **options: Any) -> Any:
        if not failed and when(*args):
            failed.append(args)
            raise error
        return real(self, *args, **options)

    with mock.patch.object(FsspecStore, name, call):
        yield


def save_after(name: str, when: Callable[..., bool], again: bool, error: type[Exception] = OSError) -> Any:
    """Save to a store of which one call fails, and load, or save again."""
    url = f"memory://{uuid.uuid4().hex}/m"
    save_url(url)
    with fail_once(name, error("no answer"), when), fail_once("read", error("no answer"), when):
        if not again:
            return save_url(url)
        with contextlib.suppress(SaveError):
            save_url(url)
    return [float(load(dirname=url).sum()), save_url(url)]


def save_beside(other: str) -> Any:
    """Save while somebody else saves into the same address, then again, or into another one."""
    place = f"memory://{uuid.uuid4().hex}/"
    save_url(place + "m")
    real, come = RemoteTransaction._write, []

    def write(self: Any, folder: str) -> Any:
        if not come:
            come.append(folder)
            save_url(place + "m")
        return real(self, folder)

    with mock.patch.object(RemoteTransaction, "_write", write):
        if not other:
            return save_url(place + "m")
        with contextlib.suppress(SaveError):
            save_url(place + "m")
        return save_url(place + other)


def use_hadoop(command: bool, *arguments: Any, **options: Any) -> Any:
    """Save to a directory of HDFS with a stand-in of Hadoop's command."""
    words = f"{sys.executable} -S {STANDIN} fs" if command else "no-such-hadoop fs"
    Path("cluster").mkdir()
    settings = {"PADDLELIKE_HADOOP": words, "STANDIN_ROOT": str(Path("cluster").resolve())}
    with mock.patch.dict(os.environ, settings):
        return save_names(*arguments, directory="hdfs:/m", **options)


REMOTE: dict[str, Advice] = {
    "an address without a directory": Advice(
        lambda: save_url("memory://"),
        "such as s3://bucket/model",
        lambda: save_url("memory://bucket/model"),
        8.0,
    ),
    "a store that refuses": Advice(
        lambda: save_after("find", lambda *_: True, again=False, error=PermissionError),
        "check the address and the credentials",
        lambda: save_after("find", lambda *_: True, again=True, error=PermissionError),
        [8.0, 8.0],
    ),
    "a store that fails at a commit": Advice(
        lambda: save_after("create", lambda path, *_: path.endswith(".2"), again=False),
        "load it to see, or save again",
        lambda: save_after("create", lambda path, *_: path.endswith(".2"), again=True),
        [8.0, 8.0],
    ),
    "two savers": Advice(
        lambda: save_beside(""),
        "save again, or into another directory",
        lambda: [save_beside("m"), save_beside("other")],
        [8.0, 8.0],
    ),
}


HDFS: dict[str, Advice] = {
    "HDFS without its command": Advice(
        lambda: use_hadoop(False, "w"),
        "install Hadoop's client, set HADOOP_HOME, or name the command in PADDLELIKE_HADOOP",
        lambda: use_hadoop(True, "w"),
        [1.0],
    ),
    "names that HDFS reads as patterns": Advice(
        lambda: use_hadoop(True, "w[0]"),
        "use filename= for one file of all variables",
        lambda: use_hadoop(True, "w[0]", filename="all"),
        [1.0],
    ),
}


@pytest.mark.slow  # a process for each call of the stand-in
@pytest.mark.parametrize("advice", HDFS.values(), ids=HDFS)
def test_following_a_hint_of_hdfs_gives_the_right_result(advice: Advice) -> None:
    advice.follow()


@pytest.mark.parametrize("advice", REMOTE.values(), ids=REMOTE)
def test_following_a_hint_of_a_store_gives_the_right_result(advice: Advice) -> None:
    pytest.importorskip("fsspec", reason="fsspec is the extra 'remote'")
    advice.follow()


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
def test_following_a_hint_of_a_refusal_gives_the_right_result(advice: Advice) -> None:
    advice.follow()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_following_the_hint_about_another_user_gives_the_right_result() -> None:
    Advice(
        lambda: meet_other_user("nothing"),
        "let {} save there once; remove it only if {} never saved there",
        lambda: [meet_other_user("save"), meet_other_user("remove")],
        [8.0, 8.0],
    ).follow()
