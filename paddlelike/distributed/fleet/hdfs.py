"""``fluid.incubate.fleet.utils.hdfs``: files in a Hadoop file system, through the command ``hadoop fs``."""

from __future__ import annotations

import logging
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_logger = logging.getLogger(__name__)
_PAUSE = 3.0  # seconds before a command is tried again


class HDFSClient:
    """Runs ``<hadoop_home>/bin/hadoop fs -Dname=value ...`` for each call.

    As in Fluid, methods return False, "" or [] when the command fails, and log its output.

    Parameters
    ----------
    hadoop_home
        The folder of Hadoop, with ``bin/hadoop``; ``$NAME`` is read from the environment.
    configs
        Options by name, such as ``{"fs.default.name": "hdfs://host:9000"}``.

    See Also
    --------
    fluid.io.save_persistables

    >>> HDFSClient("/opt/hadoop", {"fs.default.name": "hdfs://host:9000"}).pre_commands[1:]
    ['fs', '-Dfs.default.name=hdfs://host:9000']
    """

    def __init__(self, hadoop_home: str, configs: Mapping[str, str]) -> None:
        options = [f"-D{name}={value}" for name, value in configs.items()]
        self.pre_commands = [os.path.expandvars(f"{hadoop_home}/bin/hadoop"), "fs", *options]

    def cat(self, hdfs_path: str) -> str:
        """Return the text of a file without spaces around it; "" if there is none."""
        ok, said = self._run("-cat", hdfs_path) if self.is_file(hdfs_path) else (False, "")
        return said.strip() if ok else ""

    def is_exist(self, hdfs_path: str) -> bool:
        """Return whether a file or directory exists."""
        return self._run("-test", "-e", hdfs_path)[0]

    def is_dir(self, hdfs_path: str) -> bool:
        """Return whether a directory exists."""
        return self._run("-test", "-d", hdfs_path)[0]

    def is_file(self, hdfs_path: str) -> bool:
        """Return whether a file exists."""
        return self.is_exist(hdfs_path) and not self.is_dir(hdfs_path)

    def delete(self, hdfs_path: str) -> bool:
        """Delete a file, or a directory with its contents; return whether it is gone."""
        return not self.is_exist(hdfs_path) or self._run("-rm", "-r", hdfs_path)[0]

    def rename(self, hdfs_src_path: str, hdfs_dst_path: str, overwrite: bool = False) -> bool:
        """Rename a file or directory; return whether that worked. ``overwrite`` replaces a target."""
        if self.is_exist(hdfs_dst_path):
            if not overwrite:
                _logger.error("rename: %s exists already", hdfs_dst_path)
                return False
            self.delete(hdfs_dst_path)
        return self._run("-mv", hdfs_src_path, hdfs_dst_path)[0]

    @staticmethod
    def make_local_dirs(local_path: str) -> None:
        """Create a directory of this machine and its parents."""
        Path(local_path).mkdir(parents=True, exist_ok=True)

    def makedirs(self, hdfs_path: str) -> bool:
        """Create a directory and its parents; return whether it exists."""
        return self.is_exist(hdfs_path) or self._run("-mkdir", "-p", hdfs_path)[0]

    def ls(self, hdfs_path: str) -> list[str]:
        """Return the paths of the entries of a directory."""
        return self._list("-ls", hdfs_path)

    def lsr(self, hdfs_path: str, excludes: Sequence[str] = ()) -> list[str]:
        """Return the paths of all files below a directory, except names in ``excludes``."""
        found = self._list("-ls", "-R", hdfs_path, files_only=True)
        return [path for path in found if path.rpartition("/")[2] not in excludes]

    @staticmethod
    def split_files(files: Sequence[str], trainer_id: int, trainers: int) -> list[str]:
        """Return the share of one trainer: consecutive files; the first trainers take one more if uneven."""
        share, more = divmod(len(files), trainers)
        start = share * trainer_id + min(trainer_id, more)
        return list(files[start : start + share + (trainer_id < more)])

    def download(
        self,
        hdfs_path: str,
        local_path: str,
        multi_processes: int = 5,
        overwrite: bool = False,
        retry_times: int = 5,
    ) -> bool:
        """Copy a file or directory to this machine; return whether that worked."""
        force = ["-f"] if overwrite else []
        self.make_local_dirs(str(Path(local_path).parent))
        return self._run("-get", *force, hdfs_path, local_path, retry_times=retry_times)[0]

    def upload(
        self,
        hdfs_path: str,
        local_path: str,
        multi_processes: int = 5,
        overwrite: bool = False,
        retry_times: int = 5,
    ) -> bool:
        """Copy a file, or the contents of a directory, into ``hdfs_path``; return whether that worked."""
        paths = [local_path]
        if os.path.isdir(local_path):  # noqa: PTH112
            paths = sorted(str(path) for path in Path(local_path).iterdir())
        force = ["-f"] if overwrite else []
        return self._run("-put", *force, *paths, hdfs_path, retry_times=retry_times)[0]

    def upload_dir(self, dest_dir: str, local_dir: str, overwrite: bool = False) -> bool:
        """Copy a directory into another one; return whether that worked."""
        force = ["-f"] if overwrite else []
        return self._run("-put", *force, local_dir, dest_dir)[0]

    def _list(self, *command: str, files_only: bool = False) -> list[str]:
        """Return the paths in the output of ``-ls`` and whether each is a directory."""
        _, said = self._run(*command)
        rows = [line.split(maxsplit=7) for line in said.splitlines()]
        return [row[7] for row in rows if len(row) == 8 and not (files_only and row[0].startswith("d"))]

    def _run(self, *command: str, retry_times: int = 1) -> tuple[bool, str]:
        """Return whether a command succeeded, and what it printed."""
        tries = 1 if command[0] == "-test" else retry_times + 1
        for attempt in range(tries):
            done = subprocess.run(  # noqa: S603  (the user's own hadoop)
                [*self.pre_commands, *command], capture_output=True, text=True, check=False
            )
            if done.returncode == 0:
                return True, done.stdout
            _logger.info("%s ended with %d: %s", " ".join(command), done.returncode, done.stderr.strip())
            if attempt + 1 < tries:
                time.sleep(_PAUSE)
        return False, ""
