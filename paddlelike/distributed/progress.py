"""A live view of a job: rounds and throughput of every server, and what the workers say last.

``launch --progress`` shows it; by hand it is ``python -m paddlelike.distributed.progress --servers
HOST:PORT,...``, beside any running job. It asks servers how they are (which needs the job's token and
certificates, from the same environment variables) and reads the end of the workers' logs: the last line, and
the number behind the word loss or cost in it. It changes nothing and holds nothing up. With ``rich`` (extra
``progress``) and a terminal it is a table that stays in place, otherwise a line every few seconds.
"""

from __future__ import annotations

import argparse
import queue
import re
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from paddlelike.distributed.wire import Channel
from paddlelike.errors import RemoteError

__all__ = ["ServerView", "Watch", "curve", "last_words", "loss_in", "main", "plain_line"]

_END: Final = 4096  # bytes of a log that are looked at
_LOSS: Final = re.compile(r"(?:loss|cost)\b\W{0,10}?(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)", re.IGNORECASE)
_BARS: Final = "▁▂▃▄▅▆▇█"
_PATIENCE: Final = 2.0  # seconds for an answer
_HISTORY: Final = 30  # looks of which losses are drawn


@dataclass(frozen=True, slots=True)
class ServerView:
    """How one server is doing.

    Attributes
    ----------
    endpoint
        Which server.
    answers
        Whether it answered; everything else is 0 if not.
    rounds
        Rounds (in asynchronous modes: updates) applied since it started.
    rate
        Rounds per second since the look before.
    received, sent
        Bytes per second of gradients and parameters since the look before.
    silent
        Trainers of which it has not heard for a while.
    """

    endpoint: str
    answers: bool
    rounds: int = 0
    rate: float = 0.0
    received: float = 0.0
    sent: float = 0.0
    silent: tuple[int, ...] = ()


class Watch:
    """Asks servers how they are; rates are between one look and the next.

    Parameters
    ----------
    endpoints
        All servers of the job.
    clock
        Tells seconds.
    """

    def __init__(self, endpoints: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._channels = [Channel(endpoint) for endpoint in endpoints]
        self._clock = clock
        self._before: dict[str, tuple[float, Mapping[str, Any]]] = {}

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        for channel in self._channels:
            channel.close()

    def look(self) -> list[ServerView]:
        """How every server is doing now."""
        return [self._look_at(channel) for channel in self._channels]

    def _look_at(self, channel: Channel) -> ServerView:
        try:
            said = channel.call("Status", {}, timeout=_PATIENCE)
        except RemoteError:
            self._before.pop(channel.endpoint, None)
            return ServerView(channel.endpoint, answers=False)
        now = self._clock()
        then, before = self._before.get(channel.endpoint, (now, said))
        self._before[channel.endpoint] = now, said

        def rate(name: str) -> float:
            # A server that was started again counts from 0.
            return max(said[name] - before[name], 0) / (now - then) if now > then else 0.0

        return ServerView(
            endpoint=channel.endpoint,
            answers=True,
            rounds=said["rounds"],
            rate=rate("rounds"),
            received=rate("bytes_in"),
            sent=rate("bytes_out"),
            silent=tuple(said["silent"]),
        )


def last_words(log_dir: Path) -> dict[str, str]:
    """By worker the last line of its log: ``{"worker 0": "step 20, loss 0.31"}``."""
    found = {}
    for path in sorted(log_dir.glob("workerlog.*"), key=lambda path: (len(path.name), path.name)):
        with path.open("rb") as log:
            log.seek(max(path.stat().st_size - _END, 0))
            lines = log.read().decode(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        found[f"worker {path.name.rpartition('.')[2]}"] = said[-1] if said else ""
    return found


def loss_in(line: str) -> float | None:
    """The last loss (or cost) that a line names.

    >>> loss_in("step 20: loss 0.31"), loss_in("batch 3: cost: [2.5e-01]"), loss_in("saved 7 variables")
    (0.31, 0.25, None)
    """
    found = _LOSS.findall(line)
    return float(found[-1]) if found else None


def curve(values: Sequence[float]) -> str:
    """Numbers as a row of bars, from the least to the greatest of them.

    >>> curve([4.0, 2.0, 1.0, 0.5])
    '█▄▂▁'
    """
    low, high = min(values, default=0.0), max(values, default=0.0)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((value - low) * scale)] for value in values)


def plain_line(servers: Sequence[ServerView], workers: Mapping[str, str]) -> str:
    """The view as one line.

    >>> server = ServerView("127.0.0.1:6174", True, rounds=340, rate=52.06, received=1.5e6, sent=1.4e6)
    >>> plain_line([server], {"worker 0": "loss 0.31"})
    '127.0.0.1:6174: round 340, 52.1/s, in 1.50 MB/s, out 1.40 MB/s | worker 0: loss 0.31'
    """
    parts = [f"{server.endpoint}: {_in_words(server)}" for server in servers]
    return " | ".join(parts + [f"{name}: {words}" for name, words in workers.items()])


def _in_words(server: ServerView) -> str:
    if not server.answers:
        return "does not answer"
    silent = f", silent: trainers {list(server.silent)}" if server.silent else ""
    return (
        f"round {server.rounds}, {server.rate:.1f}/s, in {server.received / 1e6:.2f} MB/s, "
        f"out {server.sent / 1e6:.2f} MB/s{silent}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Show a job until it is interrupted, or standard input ends where that brings messages."""
    parser = argparse.ArgumentParser(
        prog="python -m paddlelike.distributed.progress",
        description="Show rounds and throughput of every server of a running job, and what its workers say.",
        allow_abbrev=False,
    )
    parser.add_argument("--servers", required=True, metavar="HOST:PORT,...", help="the servers of the job")
    parser.add_argument(
        "--log_dir", type=Path, metavar="DIR", help="where the workers' logs are; default: not shown"
    )
    parser.add_argument(
        "--every", type=float, metavar="SECONDS", help="default: 1 in a terminal, otherwise 5"
    )
    parser.add_argument("--messages", action="store_true", help=argparse.SUPPRESS)  # by the launcher
    options = parser.parse_args(arguments)
    in_place = sys.stderr.isatty() and _has_rich()
    every = options.every or (1.0 if in_place else 5.0)
    messages = _lines_of_stdin() if options.messages else queue.SimpleQueue[str | None]()
    with ExitStack() as stack:
        watch = stack.enter_context(Watch(options.servers.split(",")))
        show, tell = stack.enter_context(_table() if in_place else _lines())
        try:
            while True:
                words = {} if options.log_dir is None else last_words(options.log_dir)
                show(watch.look(), words)
                if not _pass_on(messages, tell, time.monotonic() + every):
                    return 0
        except KeyboardInterrupt:
            return 0


def _pass_on(messages: queue.SimpleQueue[str | None], tell: Callable[[str], None], end: float) -> bool:
    """Show messages until ``end``; False after the last one."""
    while (left := end - time.monotonic()) > 0:
        try:
            message = messages.get(timeout=left)
        except queue.Empty:
            break
        if message is None:
            return False
        tell(message)
    return True


def _lines_of_stdin() -> queue.SimpleQueue[str | None]:
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line.rstrip("\n"))
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


def _has_rich() -> bool:
    try:
        import rich.live  # noqa: F401
    except ImportError:
        return False
    return True


Shower = tuple[Callable[[Sequence[ServerView], Mapping[str, str]], None], Callable[[str], None]]


@contextmanager
def _lines() -> Iterator[Shower]:
    def tell(line: str) -> None:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    yield lambda servers, workers: tell(plain_line(servers, workers)), tell


@contextmanager
def _table() -> Iterator[Shower]:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    losses: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_HISTORY))

    def draw(servers: Sequence[ServerView], workers: Mapping[str, str]) -> None:
        rounds = Table("server", "rounds", "per s", "in MB/s", "out MB/s", "silent trainers", box=None)
        for server in servers:
            numbers = [f"{server.rate:.1f}", f"{server.received / 1e6:.2f}", f"{server.sent / 1e6:.2f}"]
            silent = ", ".join(map(str, server.silent))
            cells = [str(server.rounds), *numbers, silent] if server.answers else ["does not answer"]
            rounds.add_row(server.endpoint, *cells)
        said = Table("worker", "loss", "", "last line of its log", box=None)
        for name, line in workers.items():
            loss = loss_in(line)
            if loss is not None:
                losses[name].append(loss)
            now = f"{losses[name][-1]:.4g}" if losses[name] else ""
            said.add_row(name, now, curve(losses[name]), Text(line, overflow="ellipsis", no_wrap=True))
        live.update(Group(rounds, said), refresh=True)

    console = Console(stderr=True)
    with Live(console=console, auto_refresh=False) as live:
        yield draw, lambda line: console.print(line, markup=False, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
