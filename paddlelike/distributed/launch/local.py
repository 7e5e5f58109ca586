"""Processes on this machine: each with a log, in a group of its own, and gone when the launcher is."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from paddlelike.distributed.launch.plan import ProcessPlan

__all__ = ["LocalSlot", "die_with_parent"]

_PR_SET_PDEATHSIG: Final = 1  # <linux/prctl.h>
_TAIL: Final = 10


def die_with_parent() -> Callable[[], None]:
    """What a child does between fork and exec so that the kernel kills it when its parent dies.

    The kernel means the parent's *thread*: start children from one that lives as long as the process.
    """
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
    parent = os.getpid()

    def arm() -> None:
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died meanwhile
            os._exit(128 + signal.SIGKILL)

    return arm


class LocalSlot:
    """The place of one process on this machine; a ``Slot``.

    Parameters
    ----------
    plan
        Which process.
    command
        What it runs.
    log_dir
        Where its log goes, or None to let it write where the launcher writes.
    environment
        What its environment is based on.
    directory
        Where it runs; None: where the launcher does.
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

    async def run(self, *, attempt: int) -> int:
        log = None if self.log is None else self._open_log(self.log, attempt)
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command,
                env=self.plan.environment(self.environment),
                cwd=self.directory,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent(),
            )
        finally:
            if log is not None:
                os.close(log)
        self.pid = process.pid
        try:
            return await process.wait()
        finally:
            await self.send(signal.SIGKILL)  # what it left behind
            self.pid = None

    async def send(self, number: int) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    async def tail(self) -> str:
        if self.log is None:
            return ""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-_TAIL:])

    @staticmethod
    def _open_log(path: Path, attempt: int) -> int:
        """A new log for the first attempt; further ones go on where it ended."""
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = os.O_TRUNC if attempt == 0 else os.O_APPEND
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | mode, 0o644)
        if attempt:
            os.write(log, f"---- restart {attempt} ----\n".encode())
        return log
