"""Processes on this machine: each has a log and a process group, and is killed when the launcher ends."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final

from paddlelike.distributed.launch.processes_plan import ProcessPlan
from paddlelike.distributed.settings import Settings
from paddlelike.foundation.locks import close_at_end, open_file

_PR_SET_PDEATHSIG: Final = 1  # <linux/prctl.h>
_TAIL: Final = 10


def die_with_parent() -> Callable[[], None]:
    """Return a function for a child to call between fork and exec: the kernel then kills it with its parent.

    The kernel watches the parent's *thread*: start children from a thread that lives as long as the process.
    """
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
    parent = os.getpid()

    def arm() -> None:
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died before the call
            os._exit(128 + signal.SIGKILL)

    return arm


def _is_stopped(pid: int) -> bool:
    """Return whether a process was stopped by a signal; False where there is no ``/proc``."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].startswith(b"T")
    return False


class LocalSlot:
    """Runs one process on this machine; a ``Slot``.

    Parameters
    ----------
    plan
        The process.
    command
        The command line of the process.
    log_dir
        The directory of the log; with None the process writes where the launcher writes.
    environment
        The environment to which the variables of the process are added.
    directory
        The working directory of the process. None means the launcher's directory.
    """

    def __init__(
        self,
        plan: ProcessPlan,
        command: Sequence[str],
        *,
        log_dir: Path | None,
        environment: Mapping[str, str],
        directory: Path | None = None,
    ) -> None:
        self.plan = plan
        self.command = command
        self.log = None if log_dir is None else (directory or Path()) / log_dir / plan.log
        self.environment = environment
        self.directory = directory
        self.pid: int | None = None
        settings = Settings.from_environment(environment)
        self._patience, self._limit = settings.limits.window, "FLAGS_rpc_deadline"
        if "PADDLE_PSERVERS_NUM" not in plan.variables:  # only other workers, which have lost it by then
            self._patience, self._limit = settings.lease, "PADDLELIKE_LEASE"

    async def run(self, *, attempt: int) -> int:
        """Start the process, wait for its end and return its exit code, or minus the signal that ended it."""
        files: list[int] = []
        with close_at_end(files):
            if self.log is not None:
                self._open_log(files, self.log, attempt)
            log = files[0] if files else None
            process = await asyncio.create_subprocess_exec(
                *self.command,
                env=self.plan.environment(self.environment) | {"PADDLELIKE_JOB_ATTEMPT": str(attempt)},
                cwd=self.directory,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent(),
            )
        self.pid = process.pid
        watch = asyncio.ensure_future(self._kill_if_stopped(process.pid))
        try:
            return await process.wait()
        finally:
            watch.cancel()
            await self.send(signal.SIGKILL)  # children that it left behind
            self.pid = None

    async def _kill_if_stopped(self, pid: int) -> None:
        """Kill the process when it has been stopped (SIGSTOP) for so long that it counts as lost.

        No other part of the program may wait for this process.
        """
        looks, pause = 0, min(1.0, self._patience / 4)
        while looks * pause < self._patience:  # not seconds: the launcher may be stopped as well
            await asyncio.sleep(pause)
            looks = looks + 1 if _is_stopped(pid) else 0
        said = f"stopped (SIGSTOP) for {self._patience:g} s, {self._limit}: killed by the launcher\n"
        with nullcontext(sys.stderr) if self.log is None else self.log.open("a") as log:
            log.write(said)
        await self.send(signal.SIGKILL)

    async def send(self, signum: int) -> None:
        """Send a signal to the process and its children, if it runs."""
        if self.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signum)

    async def tail(self) -> str:
        """Return the last lines of the log; none without a log."""
        if self.log is None:
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_TAIL:])

    @staticmethod
    def _open_log(files: list[int], path: Path, attempt: int) -> None:
        """Open the log: empty for the first attempt, at its end for later ones."""
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = os.O_TRUNC if attempt == 0 else os.O_APPEND
        open_file(files, str(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND | mode, 0o644)
        if attempt:
            os.write(files[0], f"---- restart {attempt} ----\n".encode())
