"""The status of every server of a job, with rates since the previous query."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from paddlelike.distributed.wire import Channel
from paddlelike.errors import RemoteError

_PATIENCE: Final = 2.0  # seconds for an answer


@dataclass(frozen=True, slots=True)
class ServerView:
    """The status of one server.

    Attributes
    ----------
    endpoint
        The server's endpoint.
    answers
        Whether it answered; the other attributes are 0 if not.
    rounds
        Rounds (in asynchronous modes: updates) applied since it started.
    rate
        Rounds per second since the last query.
    received, sent
        Bytes per second of gradients and parameters since the last query.
    silent
        Trainers that it has not heard of for longer than the lease.
    state
        The text for a server that does not answer.
    """

    endpoint: str
    answers: bool
    rounds: int = 0
    rate: float = 0.0
    received: float = 0.0
    sent: float = 0.0
    silent: tuple[int, ...] = ()
    state: str = "does not answer"


class Watch:
    """Asks the servers of a job for their status.

    Parameters
    ----------
    endpoints
        All servers of the job.
    clock
        Returns the time in seconds.
    codes
        The exit code of each server by its endpoint, or None while it runs, as a launcher reports it. Such a
        server is shown as starting before its first answer, and as not answering only after two missed
        queries.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
        codes: Mapping[str, int | None] | None = None,
    ) -> None:
        self._channels = [Channel(endpoint) for endpoint in endpoints]
        self._clock = clock
        self._codes: Mapping[str, int | None] = {} if codes is None else codes
        self._last: dict[str, tuple[float, Mapping[str, Any]]] = {}
        self._missed: dict[str, int] = {}  # queries since the last answer, of servers that have answered

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        for channel in self._channels:
            channel.close()

    def look(self) -> list[ServerView]:
        """Return the status of every server now."""
        return [self._look_at(channel) for channel in self._channels]

    def _look_at(self, channel: Channel) -> ServerView:
        endpoint = channel.endpoint
        try:
            status = channel.call("Status", {}, timeout=_PATIENCE)
        except RemoteError:
            self._last.pop(endpoint, None)
            return ServerView(endpoint, answers=False, state=self._explain_silence(endpoint))
        self._missed[endpoint] = 0
        now = self._clock()
        then, last = self._last.get(endpoint, (now, status))
        self._last[endpoint] = now, status

        def rate(name: str) -> float:
            # A server that was restarted counts from 0.
            return max(status[name] - last[name], 0) / (now - then) if now > then else 0.0

        return ServerView(
            endpoint=endpoint,
            answers=True,
            rounds=status["rounds"],
            rate=rate("rounds"),
            received=rate("bytes_in"),
            sent=rate("bytes_out"),
            silent=tuple(status["silent"]),
        )

    def _explain_silence(self, endpoint: str) -> str:
        if endpoint not in self._codes:
            return "does not answer"
        code = self._codes[endpoint]
        if code is not None:
            self._missed.pop(endpoint, None)
            return "has ended" if code == 0 else f"has ended with code {code}"
        if endpoint not in self._missed:
            return "is starting"
        self._missed[endpoint] += 1
        return "has not answered yet" if self._missed[endpoint] == 1 else "does not answer"
