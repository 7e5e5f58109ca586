"""The launcher's output: lines on standard error, or above a live view in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from paddlelike.distributed.launch.local import die_with_parent
from paddlelike.distributed.launch.processes_plan import ProcessPlan
from paddlelike.distributed.progress.render import MARK


class Viewer:
    """Writes the launcher's report on standard error, above the live view if there is one.

    The live view is another process, so that it cannot delay the job.

    Parameters
    ----------
    live
        Whether :meth:`watch` starts a live view.
    log_dir
        The directory of the workers' logs.
    """

    def __init__(self, *, live: bool, log_dir: Path | None) -> None:
        self._live = live
        self._log_dir = log_dir
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def report(self, line: str) -> None:
        """Show one line."""
        if not self._send(f"launch: {line}"):
            sys.stderr.write(f"launch: {line}\n")
            sys.stderr.flush()

    def notify(self, plan: ProcessPlan, code: int | None) -> None:
        """Report to the live view that a process has started (``code`` None) or ended with an exit code."""
        endpoint = plan.variables.get("PADDLE_CURRENT_ENDPOINT")
        if plan.kind == "server" and endpoint is not None:
            self._send(MARK + json.dumps({"endpoint": endpoint, "code": code}))

    def watch(self, servers: Sequence[str], environment: Mapping[str, str]) -> None:
        """Show these servers in the live view, if the launcher has one."""
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
            start_new_session=True,  # the terminal's signals are for the launcher
            preexec_fn=die_with_parent(),
        )

    def _send(self, line: str) -> bool:
        """Send a line to the live view; return whether there is one."""
        if self._process is None or self._process.stdin is None:
            return False
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        except OSError:  # the live view has ended
            self._end()
            return False
        return True

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            try:
                process.communicate(timeout=5)
            except (subprocess.TimeoutExpired, OSError):
                process.kill()
                process.communicate()
