"""``paddle.distributed.fs_wrapper``: where ``fleet.save_check_point(fs=...)`` keeps checkpoints."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path, PurePosixPath

from paddlelike.errors import StorageError


class FS:
    """The base of file systems: a subclass has the methods of :class:`LocalFS`.

    One whose ``need_upload_download()`` is True also has ``upload(local_path, fs_path)`` and
    ``download(fs_path, local_path)``.
    """


class LocalFS(FS):
    """Files of this machine, including mounted file systems.

    >>> LocalFS().stat("/nowhere"), LocalFS().need_upload_download()
    (False, False)
    """

    def list_dirs(self, fs_path: str) -> list[str]:
        """Return the names of the directories in a directory; [] if it does not exist."""
        return [name for name in self.ls_dir(fs_path) if Path(fs_path, name).is_dir()]

    def ls_dir(self, fs_path: str) -> list[str]:
        """Return the names of all entries of a directory; [] if it does not exist."""
        return [path.name for path in Path(fs_path).iterdir()] if self.stat(fs_path) else []

    def stat(self, fs_path: str) -> bool:
        """Return whether a file or directory exists."""
        return Path(fs_path).exists()

    def mkdir(self, fs_path: str) -> None:
        """Create a directory and its parents."""
        Path(fs_path).mkdir(parents=True, exist_ok=True)

    def mv(self, fs_src_path: str, fs_dst_path: str) -> None:
        """Rename a file or directory."""
        Path(fs_src_path).rename(fs_dst_path)

    def rmr(self, fs_path: str) -> None:
        """Delete a directory with its contents."""
        shutil.rmtree(fs_path)

    def rm(self, fs_path: str) -> None:
        """Delete a file."""
        Path(fs_path).unlink()

    def delete(self, fs_path: str) -> None:
        """Delete a file or directory, if it exists."""
        if Path(fs_path).is_dir():
            self.rmr(fs_path)
        elif self.stat(fs_path):
            self.rm(fs_path)

    def need_upload_download(self) -> bool:
        """Return False."""
        return False


class BDFS(FS):
    """Files in a Hadoop file system, by the command ``hadoop fs``.

    Methods raise StorageError where the command is missing or goes on failing.

    Parameters
    ----------
    hdfs_name, hdfs_ugi
        The values of ``fs.default.name`` and ``hadoop.job.ugi``.
    time_out, sleep_inter
        The milliseconds for which a failing command is repeated, and between two attempts.
    """

    def __init__(
        self, hdfs_name: str, hdfs_ugi: str, time_out: int = 20 * 60 * 1000, sleep_inter: int = 1000
    ) -> None:
        self._command = ["hadoop", "fs", f"-Dfs.default.name={hdfs_name}", f"-Dhadoop.job.ugi={hdfs_ugi}"]
        self._time_out, self._sleep_inter = time_out / 1000, sleep_inter / 1000

    def list_dirs(self, fs_path: str) -> list[str]:
        """Return the names of the directories in a directory; [] if it does not exist."""
        return self.ls_dir(fs_path)[0] if self.stat(fs_path) else []

    def ls_dir(self, fs_path: str) -> tuple[list[str], list[str]]:
        """Return the names of the directories, and of the files, in a directory."""
        rows = [line.split() for line in self._run("-ls", fs_path)[1].splitlines()]
        found = [(row[0][0] == "d", PurePosixPath(row[7]).name) for row in rows if len(row) == 8]
        return [name for is_dir, name in found if is_dir], [name for is_dir, name in found if not is_dir]

    def is_dir(self, fs_path: str) -> bool:
        """Return whether a directory exists."""
        return self._run("-test", "-d", fs_path, codes=(0, 1))[0] == 0

    def stat(self, fs_path: str) -> bool:
        """Return whether a file or directory exists."""
        return self._run("-test", "-e", fs_path, codes=(0, 1))[0] == 0

    def upload(self, local_path: str, fs_path: str) -> None:
        """Copy a local file or directory to a path of this file system."""
        self._run("-put", local_path, fs_path)

    def download(self, fs_path: str, local_path: str) -> None:
        """Copy a file or directory to this machine."""
        self._run("-get", fs_path, local_path)

    def mkdir(self, fs_path: str) -> None:
        """Create a directory and its parents."""
        self._run("-mkdir", "-p", fs_path)

    def mv(self, fs_src_path: str, fs_dst_path: str) -> None:
        """Rename a file or directory."""
        self._run("-mv", fs_src_path, fs_dst_path)

    def rmr(self, fs_path: str) -> None:
        """Delete a directory with its contents, if it exists."""
        self._run("-rm", "-r", "-f", fs_path)

    def rm(self, fs_path: str) -> None:
        """Delete a file, if it exists."""
        self._run("-rm", "-f", fs_path)

    def delete(self, fs_path: str) -> None:
        """Delete a file or directory, if it exists."""
        self.rmr(fs_path)

    def need_upload_download(self) -> bool:
        """Return True."""
        return True

    def _run(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> tuple[int, str]:
        command = [*self._command, *arguments]
        end = time.monotonic() + self._time_out
        while True:
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
            except OSError as error:
                raise StorageError(f"{command[0]} cannot be started: {error}") from error
            if done.returncode in codes:
                return done.returncode, done.stdout
            if time.monotonic() + self._sleep_inter > end:
                said = done.stderr.strip()
                raise StorageError(f"{' '.join(command)} ended with {done.returncode}: {said}")
            time.sleep(self._sleep_inter)
