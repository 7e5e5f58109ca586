"""Verbs for tests: each does one thing that a real one may do."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from paddlelike.distributed.wire import Into, Part, Refused, as_bytes

Head = dict[str, Any]
Answer = tuple[Head, Iterable[Part]]


class Verb:
    """Answers with the header it got."""

    def begin(self, head: Head) -> Any:
        return None

    def end(self, head: Head, receiver: Any) -> Answer:
        return head, ()


class Store(Verb):
    """Takes whole arrays of the sizes in the header; sends them back under index + 100."""

    def begin(self, head: Head) -> Into:
        return Into({int(index): np.zeros(size, np.uint8) for index, size in head["sizes"].items()})

    def end(self, head: Head, receiver: Any) -> Answer:
        receiver.check()
        arrays = receiver.arrays
        return {"kept": sorted(arrays)}, [Part(index + 100, 0, as_bytes(a)) for index, a in arrays.items()]


class Count(Verb):
    """Counts what it is asked, and how often a call came to its end."""

    def __init__(self) -> None:
        self.begun = self.ended = 0

    def begin(self, head: Head) -> Any:
        self.begun += 1
        return Into({0: np.zeros(head.get("size", 0), np.uint8)})

    def end(self, head: Head, receiver: Any) -> Answer:
        self.ended += 1
        return {"ended": self.ended}, ()


class Refuse(Verb):
    """Refuses, before or after the records."""

    def begin(self, head: Head) -> Any:
        if head["when"] == "begin":
            raise Refused({"err": "stale"})
        return Into({0: np.zeros(head["size"], np.uint8)})

    def end(self, head: Head, receiver: Any) -> Answer:
        raise Refused({"err": "late"})


class Fail(Verb):
    """Fails with an ordinary error."""

    def end(self, head: Head, receiver: Any) -> Answer:
        raise ZeroDivisionError("no trainers")


class Wait(Verb):
    """Waits until the test lets go."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.go = threading.Event()

    def end(self, head: Head, receiver: Any) -> Answer:
        self.entered.release()
        self.go.wait(30)
        return {}, ()


class Source(Verb):
    """Sends ``size`` bytes of ones, in parts of ``part`` bytes."""

    def end(self, head: Head, receiver: Any) -> Answer:
        data = memoryview(b"\1" * head["size"])
        step = head.get("part", head["size"]) or 1
        return {}, (Part(0, at, data[at : at + step]) for at in range(0, head["size"], step))
