"""Processor time and peak memory of a process, and child processes that report theirs."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from typing import Any

__all__ = ["Child", "Meter", "answer_questions"]


def _status(key: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key + ":"))


class Meter:
    """Processor seconds, the peak of the resident memory and its growth, since the last reset."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # forget the peak
        self._memory, self._cpu = _status("VmRSS"), self._seconds()

    def read(self) -> dict[str, float]:
        high = _status("VmHWM")
        return {"cpu": self._seconds() - self._cpu, "high": high, "peak": high - self._memory}

    @staticmethod
    def _seconds() -> float:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime


class Child:
    """Another process of the same module, asked by lines of JSON on its standard input and output."""

    def __init__(self, module: str, *arguments: str, hello: bool = True) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.hello = self.receive() if hello else None

    def ask(self, question: str) -> Any:
        self.tell(question)
        return self.receive()

    def tell(self, question: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args} ended with {self._process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        """Nothing more will be asked."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def end(self) -> None:
        self.close()
        self._process.wait(30)


def answer_questions(hello: Any) -> None:
    """In a child: say hello, then answer "reset" and "read" until the parent closes the pipe."""
    meter = Meter()
    print(json.dumps(hello), flush=True)
    for line in sys.stdin:
        if line.strip() == "reset":
            meter.reset()
        print(json.dumps(meter.read()), flush=True)
