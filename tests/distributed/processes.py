"""Jobs of real processes, each with a set of variables: started as a user would, or by the fork server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from tests.distributed.jobs import free_endpoints
from tests.helpers.fork_server import Forked

ROOT = Path(__file__).parents[2]
SCRIPT = "tests.distributed.script"


class Process:
    """One process of a job, and what it says on its output, a JSON object a line."""

    def __init__(self, environment: dict[str, str], fork_server: str | None, script: str = SCRIPT) -> None:
        self.popen: subprocess.Popen[str] | Forked
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed by ``end``)
        if fork_server is not None:
            self.popen = Forked(fork_server, script, os.environ | environment)
        else:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", script],
                cwd=ROOT,
                env=os.environ | environment,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
            )
        self._all_errors: str | None = None  # once it has ended
        self.said: list[dict[str, Any]] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read_output)
        self._reader.start()

    @property
    def errors(self) -> str:
        """Its standard error so far."""
        if self._all_errors is not None:
            return self._all_errors
        if isinstance(self.popen, Forked):
            return self.popen.errors
        # not by seek and read: the process writes at the same position
        return os.pread(self._errors.fileno(), 1 << 20, 0).decode(errors="replace")

    def _read_output(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            with self._news:
                self.said.append(json.loads(line))
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def says(self, **what: Any) -> None:
        """Wait until it has said this."""
        with self._news:
            found = self._news.wait_for(lambda: what in self.said or self.popen.poll() is not None, 60)
        assert found, f"{what} was never said; {self.said[-3:]}"
        assert what in self.said, f"it ended with {self.popen.returncode}: {self.errors[-3000:]}"

    def last(self, key: str) -> Any:
        """The last value it said of ``key``."""
        return [one[key] for one in self.said if key in one][-1]

    def wait(self, timeout: float = 90.0) -> int:
        """Its exit status."""
        code = self.popen.wait(timeout)
        self._reader.join(10)
        return code

    def end(self) -> None:
        """Kill it if it still lives, and close what it had open."""
        self.popen.kill()
        self.wait()
        self._all_errors = self.errors
        if isinstance(self.popen, Forked):
            self.popen.close()
        elif self.popen.stdout is not None:
            self.popen.stdout.close()
        self._errors.close()


class Processes:
    """A job; use it in a ``with`` block, at whose end nothing of it lives.

    ``fork_server``: the address of what starts its processes; None: Python is started for each. ``script``:
    the module that they run.
    """

    def __init__(
        self,
        run: dict[str, Any],
        *,
        servers: int = 2,
        trainers: int = 2,
        fork_server: str | None = None,
        script: str = SCRIPT,
        **more: str,
    ) -> None:
        self._script = script
        self._fork_server = fork_server
        self.endpoints = free_endpoints(servers)
        self.trainers = trainers
        self.run = run
        self._environment = {
            "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(self.endpoints),
            "PADDLE_TRAINERS_NUM": str(trainers),
            "OMP_NUM_THREADS": "1",
            "FLAGS_rpc_deadline": "20000",
            "FLAGS_worker_update_interval_secs": "30",
            "PADDLELIKE_LEASE": "2",
        } | more
        self._all: list[Process] = []

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._all:
            one.end()

    def server(self, number: int) -> Process:
        """Start a server."""
        host, port = self.endpoints[number].split(":")
        return self._start(TRAINING_ROLE="PSERVER", POD_IP=host, PADDLE_PORT=port)

    def trainer(self, number: int) -> Process:
        """Start a trainer."""
        return self._start(TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID=str(number))

    def start(self) -> tuple[list[Process], list[Process]]:
        """Start all servers and, when they are about to serve, all trainers."""
        servers = [self.server(number) for number in range(len(self.endpoints))]
        for server, endpoint in zip(servers, self.endpoints, strict=True):
            server.says(serving=endpoint)  # FLAGS_rpc_deadline is not spent on waiting for their imports
        return servers, [self.trainer(number) for number in range(self.trainers)]

    def _start(self, **environment: str) -> Process:
        given = self._environment | {"RUN": json.dumps(self.run)} | environment
        process = Process(given, self._fork_server, self._script)
        self._all.append(process)
        return process
