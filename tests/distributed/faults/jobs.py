"""Jobs of real processes for fault injection: started, watched by their output, killed, restarted."""

from __future__ import annotations

import json
import os
import queue
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.distributed.jobs import free_endpoints
from tests.helpers.fork_server import fork_process

__all__ = ["Job", "Process"]

ROLE = "tests.distributed.faults.role"  # the script of every process
LIMIT = 90.0  # seconds that anything here may take on a busy machine


class Process:
    """One process of a job; ``said`` holds the JSON objects of its output so far."""

    def __init__(
        self, name: str, environment: dict[str, str], fork_server: str, heard: queue.Queue[Any], log: Path
    ) -> None:
        self.name = name
        self.said: list[dict[str, Any]] = []
        self.log = log
        self._line, self._pid, said = fork_process(fork_server, ROLE, environment, log)
        self._code: int | None = None
        self._reader = threading.Thread(target=self._read, args=(said, heard))
        self._reader.start()

    def _read(self, said: Any, heard: queue.Queue[Any]) -> None:
        with said as lines:
            for line in lines:
                if line.startswith("{"):
                    self.said.append(json.loads(line))
                    heard.put((self, self.said[-1]))
        with self._line:
            self._code = int.from_bytes(self._line.recv(4), "big", signed=True)
        self.said.append({"exit": self._code})
        heard.put((self, self.said[-1]))

    @property
    def code(self) -> int | None:
        return self._code

    @property
    def errors(self) -> str:
        """Its standard error."""
        return self.log.read_text(errors="replace")

    def send(self, signum: int) -> None:
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signum)

    def was_asked_to_end(self) -> bool:
        """Return whether this is a server that has ended in order before its trainers, as after SIGTERM."""
        return self.last("finished") is False

    def is_stopped(self) -> bool:
        with suppress(OSError):
            return Path(f"/proc/{self._pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
        return False

    def wait(self, limit: float) -> bool:
        """Wait until it has ended; return whether it has."""
        self._reader.join(limit)
        return self._code is not None

    def end(self) -> None:
        """Kill it and wait for its end."""
        self.send(signal.SIGKILL)
        self._reader.join(LIMIT)

    def last(self, key: str) -> Any:
        return next((one[key] for one in reversed(self.said) if key in one), None)


class Job:
    """Servers and trainers of one job.

    Parameters
    ----------
    fork_server
        The address of the fork server.
    faults
        By name of a process (``server 0``, ``trainer 1``) the fault of the first one with this name.
    settings
        Environment variables in addition to the defaults of this class.
    restart
        Whether a process that ends in a fault is restarted.
    job
        See ``role``: steps, every, mode, network, think, together (no trainer begins before all have joined).
    """

    def __init__(
        self,
        home: Path,
        fork_server: str,
        *,
        servers: int = 2,
        trainers: int = 2,
        faults: dict[str, dict[str, Any]] | None = None,
        settings: dict[str, str] | None = None,
        restart: bool = True,
        late: tuple[str, ...] = (),
        hosts: tuple[str, ...] = (),
        **job: Any,
    ) -> None:
        self.home, self.trainers, self._fork_server = home, trainers, fork_server
        self.endpoints = free_endpoints(servers)
        if hosts:
            self.endpoints = [
                f"{host}:{one.rsplit(':')[-1]}" for host, one in zip(hosts, self.endpoints, strict=True)
            ]
        self.faults, self.settings, self.restart = dict(faults or {}), dict(settings or {}), restart
        self.job = {"steps": 10, "every": 3, "mode": "sync", "network": "dense", "together": False} | job
        self.processes: dict[str, Process] = {}
        self.everyone: list[Process] = []
        self.restarts = 0
        self._heard: queue.Queue[Any] = queue.Queue()
        self._begin = time.monotonic()
        self.names = [f"server {i}" for i in range(servers)] + [f"trainer {i}" for i in range(trainers)]
        for name in self.names:
            if name == "trainer 0" and "FLAGS_rpc_deadline" in self.settings:  # they wait no longer than that
                self._until_served(servers)
            if name not in late:
                self.start(name)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.everyone:
            process.end()

    @property
    def saves(self) -> Path:
        return self.home / "saves"

    def start(self, name: str) -> Process:
        """Start a process of this name; the faults planned for the name apply to the first one."""
        role, index = name.split()
        environment = os.environ | {
            "TRAINING_ROLE": "PSERVER" if role == "server" else "TRAINER",
            "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(self.endpoints),
            "PADDLE_TRAINERS_NUM": str(self.trainers),
            "PADDLE_TRAINER_ID": index if role == "trainer" else "0",
            "PADDLELIKE_CHECKPOINT_DIR": str(self.saves),
            "PADDLELIKE_RESUME_POLICY": "rollback",
            "PADDLELIKE_LEASE": "2",
            "FLAGS_rpc_deadline": "30000",
            "FLAGS_worker_update_interval_secs": "60",
            "JOB": json.dumps(self.job),
            "FAULT": json.dumps(self.faults.pop(name, {})),
        }
        if role == "server":
            host, port = self.endpoints[int(index)].rsplit(":", 1)
            environment |= {"POD_IP": host, "PADDLE_PORT": port}
        log = self.home / f"{name.replace(' ', '')}.{len(self.everyone)}.log"
        process = Process(name, environment | self.settings, self._fork_server, self._heard, log)
        self.processes[name] = process
        self.everyone.append(process)
        return process

    def until(self, holds: Callable[[Process, dict[str, Any]], bool], limit: float = LIMIT) -> dict[str, Any]:
        """Wait until ``holds`` is true of some process's output; restart processes that end in a fault."""
        end = time.monotonic() + limit
        while (left := end - time.monotonic()) > 0:
            try:
                process, said = self._heard.get(timeout=left)
            except queue.Empty:
                break
            has_failed = said.get("exit", 0) != 0 or ("exit" in said and process.was_asked_to_end())
            if has_failed and self.restart and self._is_newest(process):
                self.restarts += 1
                assert self.restarts < 20, self.describe()
                self.start(process.name)
            if holds(process, said):
                return said
        raise AssertionError(f"not seen within {limit:.0f} s:\n{self.describe()}")

    def until_said(self, name: str, key: str, value: Any = None, limit: float = LIMIT) -> dict[str, Any]:
        """Wait until a process reports ``key`` (with a value)."""
        return self.until(
            lambda process, said: process.name == name and key in said and value in (None, said[key]), limit
        )

    def until_stopped(self, name: str) -> Process:
        """Wait until a process has stopped itself."""
        process, end = self.processes[name], time.monotonic() + LIMIT
        while not process.is_stopped():
            assert time.monotonic() < end, f"{name} did not stop:\n{self.describe()}"
            time.sleep(0.02)
        return process

    def _until_served(self, servers: int) -> None:
        serving: set[str] = set()

        def all_serve(process: Process, said: dict[str, Any]) -> bool:
            serving.update({process.name} if "serving" in said else ())
            return len(serving) == servers

        self.until(all_serve)

    def finish(self, limit: float = LIMIT) -> dict[str, dict[str, Any]]:
        """Wait until the newest process of every name has ended with code 0; return their last reports."""
        ended = {name for name in self.names if self._has_ended(self.processes[name])}

        def over(process: Process, said: dict[str, Any]) -> bool:
            if said.get("exit") == 0 and self._is_newest(process) and not process.was_asked_to_end():
                ended.add(process.name)
            return len(ended) == len(self.names)

        if len(ended) < len(self.names):
            self.until(over, limit)
        return self.ends()

    def ends(self) -> dict[str, dict[str, Any]]:
        """Return the last report of each process that ended by itself."""
        said = {name: process.last("end") for name, process in self.processes.items()}
        return {
            name: next(one for one in reversed(self.processes[name].said) if "end" in one)
            for name, end in said.items()
            if end is not None
        }

    def codes(self, names: list[str]) -> list[int]:
        """Wait until these processes have ended; return their exit codes."""
        return [self.code_of(self.processes[name]) for name in names]

    def code_of(self, process: Process) -> int:
        """Wait until a process has ended; return its exit code."""
        assert process.wait(LIMIT), f"{process.name} did not end:\n{self.describe()}"
        return process.code or 0

    def kill(self, *names: str) -> None:
        for name in names:
            self.processes[name].send(signal.SIGKILL)

    def _has_ended(self, process: Process) -> bool:
        is_over = process.code == 0 and any("exit" in one for one in process.said)
        return is_over and not process.was_asked_to_end()

    def _is_newest(self, process: Process) -> bool:
        return self.processes[process.name] is process

    def describe(self) -> str:
        """Return the last reports of all processes and the ends of their logs."""
        lines = [f"restarts: {self.restarts}"]
        for process in self.everyone[-8:]:
            lines.append(f"{process.name}: code {process.code}, said {process.said[-3:]}")
            lines += [f"    {line}" for line in process.errors.splitlines()[-6:]]
        return "\n".join(lines)
