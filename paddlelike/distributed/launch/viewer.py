"""The live view beside a launched job: a process of its own, so that it cannot hold the job up."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from paddlelike.distributed.launch.local import die_with_parent

__all__ = ["Viewer"]


class Viewer:
    """Tells what the launcher has to say: on standard error, or above a live view once there is one.

    Parameters
    ----------
    live
        Whether there is to be a live view.
    log_dir
        Where the workers' logs are.
    """

    def __init__(self, *, live: bool, log_dir: Path | None) -> None:
        self._live = live
        self._log_dir = log_dir
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def tell(self, line: str) -> None:
        """Show one line."""
        line = f"launch: {line}\n"
        try:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.write(line)
                self._process.stdin.flush()
                return
        except OSError:  # the view has ended
            self._end()
        sys.stderr.write(line)
        sys.stderr.flush()

    def watch(self, servers: Sequence[str], environment: Mapping[str, str]) -> None:
        """Begin to show these servers, if there is to be a live view."""
        if not self._live:
            return
        self._end()
        command = [sys.executable, "-m", "paddlelike.distributed.progress", "--messages"]
        command += ["--servers", ",".join(servers)]
        command += [] if self._log_dir is None else ["--log_dir", str(self._log_dir)]
        self._process = subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.PIPE,
            env=dict(environment),
            text=True,
            start_new_session=True,  # signals of the terminal are the launcher's
            preexec_fn=die_with_parent(),
        )

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            try:
                process.communicate(timeout=5)
            except (subprocess.TimeoutExpired, OSError):
                process.kill()
                process.communicate()
