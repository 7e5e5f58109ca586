"""The live view as text: the launcher's messages, and one line, or a table of ``rich`` that is redrawn."""

from __future__ import annotations

import json
import queue
import re
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TextIO

from paddlelike.distributed.progress.watch import ServerView
from paddlelike.foundation.threads import Thread

_END: Final = 4096  # bytes at the end of a log that are read
_LOSS: Final = re.compile(r"(?:loss|cost)\b\W{0,10}?(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)", re.IGNORECASE)
_BARS: Final = "▁▂▃▄▅▆▇█"
_HISTORY: Final = 30  # losses that are drawn

#: Two functions: show servers and the last lines of workers; show one line of the launcher.
View = tuple[Callable[[Sequence[ServerView], Mapping[str, str]], None], Callable[[str], None]]


def last_lines(log_dir: Path) -> dict[str, str]:
    """Return the last line of each worker's log by worker: ``{"worker 0": "step 20, loss 0.31"}``."""
    found = {}
    for path in sorted(log_dir.glob("workerlog.*"), key=lambda path: (len(path.name), path.name)):
        with path.open("rb") as log:
            log.seek(max(path.stat().st_size - _END, 0))
            lines = log.read().decode(errors="replace").split("\n")
        filled = [line.strip() for line in lines if line.strip()]
        found[f"worker {path.name.rpartition('.')[2]}"] = filled[-1] if filled else ""
    return found


def loss_in(line: str) -> float | None:
    """Return the last loss (or cost) in a line, None if there is none.

    >>> loss_in("step 20: loss 0.31"), loss_in("batch 3: cost: [2.5e-01]"), loss_in("saved 7 variables")
    (0.31, 0.25, None)
    """
    found = _LOSS.findall(line)
    return float(found[-1]) if found else None


def curve(values: Sequence[float]) -> str:
    """Return numbers as a row of bars, scaled from the least to the greatest of them.

    >>> curve([4.0, 2.0, 1.0, 0.5])
    '█▄▂▁'
    """
    low, high = min(values, default=0.0), max(values, default=0.0)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((value - low) * scale)] for value in values)


def plain_line(servers: Sequence[ServerView], workers: Mapping[str, str]) -> str:
    """Return the view as one line.

    >>> server = ServerView("127.0.0.1:6174", True, rounds=340, rate=52.06, received=1.5e6, sent=1.4e6)
    >>> plain_line([server], {"worker 0": "loss 0.31"})
    '127.0.0.1:6174: round 340, 52.1/s, in 1.50 MB/s, out 1.40 MB/s | worker 0: loss 0.31'
    """
    parts = [f"{server.endpoint}: {_describe(server)}" for server in servers]
    return " | ".join(parts + [f"{name}: {line}" for name, line in workers.items()])


def _describe(server: ServerView) -> str:
    if not server.answers:
        return server.state
    silent = f", silent: trainers {list(server.silent)}" if server.silent else ""
    return (
        f"round {server.rounds}, {server.rate:.1f}/s, in {server.received / 1e6:.2f} MB/s, "
        f"out {server.sent / 1e6:.2f} MB/s{silent}"
    )


def has_rich() -> bool:
    """Return whether ``rich`` is installed."""
    try:
        import rich.live  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def show_lines() -> Iterator[View]:
    """Yield a view that writes lines on standard error."""

    def write(line: str) -> None:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    yield lambda servers, workers: write(plain_line(servers, workers)), write


@contextmanager
def show_table() -> Iterator[View]:
    """Yield a view that redraws a table on standard error. Raises ImportError without ``rich``."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    losses: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_HISTORY))

    def draw(servers: Sequence[ServerView], workers: Mapping[str, str]) -> None:
        rounds = Table("server", "rounds", "per s", "in MB/s", "out MB/s", "silent trainers", box=None)
        for server in servers:
            rates = [f"{server.rate:.1f}", f"{server.received / 1e6:.2f}", f"{server.sent / 1e6:.2f}"]
            silent = ", ".join(map(str, server.silent))
            cells = [str(server.rounds), *rates, silent] if server.answers else [server.state]
            rounds.add_row(server.endpoint, *cells)
        logs = Table("worker", "loss", "", "last line of its log", box=None)
        for name, line in workers.items():
            loss = loss_in(line)
            if loss is not None:
                losses[name].append(loss)
            now = f"{losses[name][-1]:.4g}" if losses[name] else ""
            logs.add_row(name, now, curve(losses[name]), Text(line, overflow="ellipsis", no_wrap=True))
        live.update(Group(rounds, logs), refresh=True)

    console = Console(stderr=True)
    with Live(console=console, auto_refresh=False) as live:
        yield draw, lambda line: console.print(line, markup=False, highlight=False)


MARK: Final = "\x1e"  # begins a line of JSON: {"endpoint": "HOST:PORT", "code": exit code, or null: started}


class Messages:
    """Reads messages in a thread.

    Parameters
    ----------
    source
        A source with a message on every line, or None without messages.

    Attributes
    ----------
    codes
        The exit code of each server by its endpoint, or None while its process runs.
    """

    def __init__(self, source: TextIO | None) -> None:
        self.codes: dict[str, int | None] = {}
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        if source is not None:
            Thread(partial(self._read, source), "paddlelike-messages").start()

    def get(self, timeout: float) -> str | None:
        """Return the next line to show, or None after the last one.

        Raises
        ------
        queue.Empty
            There is none within ``timeout`` seconds.
        """
        return self._lines.get(timeout=timeout)

    def _read(self, source: TextIO) -> None:
        for line in source:
            if line.startswith(MARK):
                message = json.loads(line.removeprefix(MARK))
                self.codes[message["endpoint"]] = message["code"]
            else:
                self._lines.put(line.rstrip("\n"))
        self._lines.put(None)
