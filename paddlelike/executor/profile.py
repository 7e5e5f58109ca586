"""Time spent by operators during runs: a table by operator type, and a trace for Chrome's viewer."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from paddlelike.executor.plans.frame import Frame, Step
from paddlelike.framework import Operator

ORDERS: Final = ("default", "calls", "total", "max", "min", "ave")
_TITLES: Final = {"calls": "number of calls", "ave": "average time", **{k: f"{k} time" for k in ORDERS[2:5]}}
_WIDTH: Final = 12


class Event(NamedTuple):
    """One operator that ran, or one whole run: seconds of :func:`time.perf_counter`."""

    name: str
    begin: float
    end: float
    thread: int
    op: Operator | None


class Profile:
    """The times of operators that ran between :func:`start` and :func:`stop`."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}  # in seconds, by operator type
        self.events: list[Event] = []
        self.seconds_of_runs = 0.0  # whole runs, including the executor's own work

    def run_step(self, frame: Frame, step: Step) -> None:
        """Run one step and measure its time, also when it fails."""
        begin = time.perf_counter()
        try:
            step.run(frame)
        finally:
            end = time.perf_counter()
            self.times.setdefault(step.op.type, []).append(end - begin)
            self.events.append(Event(step.op.type, begin, end, threading.get_ident(), step.op))

    @contextmanager
    def measure_run(self) -> Iterator[None]:
        """Measure a whole run, including its operators."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            end = time.perf_counter()
            self.seconds_of_runs += end - begin
            self.events.append(Event("run", begin, end, threading.get_ident(), None))

    def format_table(self, sorted_key: str = "default") -> str:
        """Return the times as text, in Fluid's form: one line per operator type, in milliseconds.

        Raises KeyError for a ``sorted_key`` that is not in ORDERS.
        """
        computed = sum(map(sum, self.times.values()))
        whole = max(self.seconds_of_runs, computed)
        rows = [
            (name, len(t), sum(t), min(t), max(t), sum(t) / len(t), sum(t) / (computed or 1.0))
            for name, t in self.times.items()
        ]
        order = "order of first execution"
        if sorted_key != "default":
            column = {"calls": 1, "total": 2, "min": 3, "max": 4, "ave": 5}[sorted_key]
            rows.sort(key=lambda row: row[column], reverse=True)
            order = f"{_TITLES[sorted_key]} in descending order"
        name_width = max(len(name) for name in ("Event", *self.times)) + 4
        heads = ("Calls", "Total", "Min.", "Max.", "Ave.", "Ratio.")
        lines = [f"{'Event':{name_width}}" + "".join(f"{head:{_WIDTH}}" for head in heads)]
        lines += [
            f"{name:{name_width}}{calls:<{_WIDTH}}"
            + "".join(f"{1e3 * seconds:<{_WIDTH}.6g}" for seconds in figures)
            + f"{ratio:<{_WIDTH}.6g}"
            for name, calls, *figures, ratio in rows
        ]
        parts = [("Computation time", computed), ("Framework overhead", whole - computed)]
        return "\n".join(
            [
                "",
                f"{'-' * 25}>     Profiling Report     <{'-' * 25}",
                "",
                "Place: CPU",
                "Time unit: ms",
                f"Sorted by {order}",
                "",
                f"Total time: {1e3 * whole:.6g}",
                *(
                    f"  {title:22} Total: {1e3 * seconds:<11.6g} Ratio: {100 * seconds / (whole or 1.0):.6g}%"
                    for title, seconds in parts
                ),
                "",
                f"{'-' * 25}       Event Summary       {'-' * 25}",
                "",
                *(line.rstrip() for line in lines),
            ]
        )

    def format_trace(self) -> str:
        """Return the events as a trace in JSON, which chrome://tracing and ui.perfetto.dev show.

        The format is the Trace Event Format of Chrome: complete events, times in microseconds.
        """
        import json  # late: it takes long

        first = min((event.begin for event in self.events), default=0.0)
        threads = {ident: index for index, ident in enumerate(dict.fromkeys(e.thread for e in self.events))}
        return json.dumps(
            {
                "displayTimeUnit": "ms",
                "traceEvents": [
                    {
                        "name": event.name,
                        "ph": "X",
                        "ts": round(1e6 * (event.begin - first), 3),
                        "dur": round(1e6 * (event.end - event.begin), 3),
                        "pid": os.getpid(),
                        "tid": threads[event.thread],
                        "cat": "run" if event.op is None else "operator",
                        "args": {} if event.op is None else _describe(event.op),
                    }
                    for event in sorted(self.events, key=lambda event: event.begin)
                ],
            }
        )


def _describe(op: Operator) -> dict[str, Any]:
    """Describe an operator for the trace: its variables, and the line that created it."""
    slots = {"inputs": op.inputs, "outputs": op.outputs}
    named = {title: {slot: names for slot, names in of.items() if names} for title, of in slots.items()}
    return named if op.line is None else {**named, "created at": str(op.line)}


current: Profile | None = None  # the profile that runs report to


def start() -> None:
    """Start collecting times."""
    global current
    current = Profile()


def stop() -> Profile:
    """Stop collecting times. Return the profile, an empty one without a :func:`start`."""
    global current
    finished, current = current, None
    return Profile() if finished is None else finished
