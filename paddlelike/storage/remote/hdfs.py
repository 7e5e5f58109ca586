"""HDFS through the ``hadoop fs`` command, as in Fluid: no Java inside the process, no library.

Starting that command takes seconds, so a call here handles many files at once. The command is ``hadoop fs``,
or ``$HADOOP_HOME/bin/hadoop fs``; PADDLELIKE_HADOOP in the environment is another one, with arguments such as
``hadoop fs -D fs.defaultFS=hdfs://name:9000 -D hadoop.job.ugi=user,password``.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path as LocalPath
from typing import Final

from paddlelike.errors import StorageError
from paddlelike.foundation.locks import Lock
from paddlelike.storage.interfaces import Buffer
from paddlelike.storage.remote.base import Info, Store

_MANY: Final = 200  # paths in one command


def open_url(url: str) -> tuple[Store, str]:
    """Return the store of an ``hdfs:`` URL, and the path in it, which is the URL."""
    return HadoopStore(), url.rstrip("/")


def command() -> list[str]:
    """Return the words of the command line up to its verb."""
    given = os.environ.get("PADDLELIKE_HADOOP")
    if given:
        return shlex.split(given)
    home = os.environ.get("HADOOP_HOME")
    return [os.path.join(home, "bin", "hadoop") if home else "hadoop", "fs"]


class HadoopStore:
    """Files of HDFS, downloaded for reading into a temporary directory that lives as long as this object."""

    def __init__(self) -> None:
        self._command = command()
        self._home: str | None = None
        self._local: dict[str, str] = {}  # downloaded files and their local paths
        self._lock = Lock()  # one download at a time

    def is_same(self, other: Store) -> bool:
        return isinstance(other, HadoopStore) and other._command == self._command

    def find(self, folder: str) -> dict[str, Info]:
        found = self._list_all(folder)
        times = self._times([f"{folder}/{name}" for name in found])
        if len(times) != len(found):
            return found
        return {name: Info(info.size, time) for (name, info), time in zip(found.items(), times, strict=True)}

    def _list_all(self, folder: str) -> dict[str, Info]:
        """Return all files below a folder; their times are exact to the minute."""
        done = self._run(["-ls", "-R", folder], missing_is_fine=True)
        front = _path(folder) + "/"
        found = {}
        for kind, path, info in _lines(done):
            if kind == "-" and path.startswith(front):
                found[path[len(front) :]] = info
        return {name: info for name, info in found.items() if not name.endswith("._COPYING_")}

    def read(self, path: str, start: int = 0, stop: int | None = None) -> bytes:
        if start == 0 and stop is None and path not in self._local:
            return self._run(["-cat", path])
        with self._lock.hold():
            if path not in self._local:
                folder, _, name = path.rpartition("/")
                self._fetch(folder, [name])
        with open(self._local[path], "rb") as file:
            file.seek(start)
            return file.read() if stop is None else file.read(stop - start)

    def fetch(self, folder: str, names: Iterable[str]) -> dict[str, bytes]:
        with self._lock.hold():
            self._fetch(folder, names)
        return {}

    def _fetch(self, folder: str, names: Iterable[str]) -> None:
        if self._home is None:
            self._home = tempfile.mkdtemp(prefix="paddlelike-hdfs-")
            weakref.finalize(self, shutil.rmtree, self._home, ignore_errors=True)
        for some in _by_folder(names).values():
            target = os.path.join(self._home, str(len(self._local)))
            os.makedirs(target)
            paths = [f"{folder}/{name}" for name in some]
            self._run_many(["-get"], paths, [target])
            self._local |= {path: os.path.join(target, os.path.basename(path)) for path in paths}

    def write(self, folder: str, files: Mapping[str, Iterable[Buffer]]) -> None:
        odd = [name for name in files if set(name) & set("*?[]{}\\")]
        if odd:
            raise StorageError(
                f"{odd[0]!r} cannot be a file on HDFS: its command line reads such names as patterns",
                hint="use filename= for one file of all variables",
            )
        with tempfile.TemporaryDirectory(prefix="paddlelike-hdfs-") as local:
            for name, buffers in files.items():
                path = LocalPath(local, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as file:
                    file.writelines(buffers)
            self._run(["-mkdir", "-p", folder])
            top = sorted(os.path.join(local, name) for name in os.listdir(local))
            self._run_many(["-put", "-f"], top, [folder])

    def put(self, path: str, data: bytes) -> None:
        try:
            self._run(["-put", "-f", "-", path], data)
        except FileNotFoundError:
            self._run(["-mkdir", "-p", path.rpartition("/")[0]])
            self._run(["-put", "-f", "-", path], data)

    def create(self, path: str, data: bytes) -> bool:
        aside = f"{path}.{secrets.token_hex(4)}"
        self.put(aside, data)
        try:
            self._run(["-mv", aside, path])  # the name node refuses an existing file
        except StorageError as error:
            self._run_many(["-rm", "-f", "-skipTrash"], [aside])
            if "exists" in error.message:
                return False
            raise
        return True

    def list_prefix(self, front: str) -> dict[str, Info | None]:
        above, _, begin = front.rpartition("/")
        said = self._run(["-ls", above], missing_is_fine=True)
        found = {}
        for kind, path, info in _lines(said):
            name = path.rpartition("/")[2]
            if name.startswith(begin):
                found[name] = info if kind == "-" else None
        return found

    def move(self, source: str, target: str, names: Iterable[str]) -> None:
        """Move files from a folder to another.

        A move does not overwrite a file, and removing the old file first might remove one that another
        process just moved there. So existing files are overwritten by a copy.
        """
        names = list(names)
        there = self._list_all(target)
        new = _by_folder(name for name in names if name not in there)
        if new:
            self._run(["-mkdir", "-p", *[_join(target, inside) for inside in new]])
        for inside, some in new.items():
            with contextlib.suppress(StorageError, FileNotFoundError):  # another process did it
                self._run_many(["-mv"], [f"{source}/{name}" for name in some], [_join(target, inside)])
        with contextlib.suppress(StorageError, FileNotFoundError):
            self.copy(source, target, [name for name in names if name in there])

    def copy(self, source: str, target: str, names: Iterable[str]) -> None:
        for inside, some in _by_folder(names).items():
            self._run(["-mkdir", "-p", _join(target, inside)])
            self._run_many(["-cp", "-f"], [f"{source}/{name}" for name in some], [_join(target, inside)])

    def remove(self, folder: str, names: Iterable[str]) -> None:
        if ".saving-" in os.path.basename(folder):
            self._run(["-rm", "-r", "-f", "-skipTrash", folder])
        else:
            self._run_many(["-rm", "-f", "-skipTrash"], [f"{folder}/{name}" for name in names])

    def _times(self, paths: list[str]) -> list[str]:
        """Return the modification times of files to the millisecond, since listings only have minutes."""
        said = b"".join(
            self._run(["-stat", "%Y", *paths[at : at + _MANY]], missing_is_fine=True)
            for at in range(0, len(paths), _MANY)
        )
        return said.decode().split()

    def _run_many(self, front: Sequence[str], paths: Sequence[str], back: Sequence[str] = ()) -> None:
        for at in range(0, len(paths), _MANY):
            self._run([*front, *paths[at : at + _MANY], *back])

    def _run(
        self, words: Sequence[str], data: bytes | None = None, *, missing_is_fine: bool = False
    ) -> bytes:
        """Run the command and return what it prints.

        Raises
        ------
        FileNotFoundError
            The command reports that a file does not exist.
        StorageError
            The command failed; the message has the end of its output.
        """
        program = shutil.which(self._command[0])
        if program is None:
            raise StorageError(
                f"hdfs: paths need the command {self._command[0]!r}, which is not installed",
                hint="install Hadoop's client, set HADOOP_HOME, or name the command in PADDLELIKE_HADOOP",
            )
        line = [program, *self._command[1:], *words]
        done = subprocess.run(line, input=data, capture_output=True, check=False)  # noqa: S603
        if done.returncode == 0:
            return done.stdout
        said = done.stderr.decode(errors="replace").strip()
        if "No such file or directory" in said:
            if missing_is_fine:
                return b""
            raise FileNotFoundError(said)
        what = " ".join([*self._command, *words[:4]])
        raise StorageError(f"{what} failed ({done.returncode}): {said[-500:]}")


def _lines(said: bytes) -> Iterator[tuple[str, str, Info]]:
    """Yield the lines of a listing: kind (``-`` or ``d``), path, size and time."""
    for line in said.decode("utf-8", "surrogateescape").splitlines():
        # permissions, replication, owner, group, size, date, time, path
        words = line.split(None, 7)
        if len(words) == 8 and words[0][0] in "-d":
            yield words[0][0], _path(words[7]), Info(int(words[4]), f"{words[5]} {words[6]}")


def _by_folder(names: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name.rpartition("/")[0], []).append(name)
    return found


def _join(folder: str, inside: str) -> str:
    return f"{folder}/{inside}" if inside else folder


def _path(url: str) -> str:
    """Return the path in ``hdfs://host:port/path`` or ``hdfs:/path``; listings print either form."""
    rest = url.removeprefix("hdfs:")
    if rest.startswith("//"):
        rest = "/" + rest[2:].partition("/")[2]
    return rest.rstrip("/")
