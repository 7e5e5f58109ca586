"""The other launchers of a job, and the attempts that their servers have reached.

A lost process is first noticed by its own launcher. The other launchers of the job notice it later, when
their trainers find its servers restarted. If each launcher restarted at once, new trainers would find servers
of the previous attempt and end, and the launchers could use up each other's restarts. So attempts are
numbered, and servers report their number (``PADDLELIKE_JOB_ATTEMPT``, verb ``Status``). Every launcher joins
the highest number that it sees; its workers start when the servers of the others have reached it too.

A child process calls the servers, because a process that forks must not have gRPC's threads::

    python -m paddlelike.distributed.launch.peers 10.0.0.2:6174,10.0.0.3:6174
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from paddlelike.distributed.launch.local import die_with_parent
from paddlelike.distributed.wire import Channel
from paddlelike.errors import RemoteError

ATTEMPT: Final = "PADDLELIKE_JOB_ATTEMPT"

_EVERY: Final = 0.3  # seconds between two checks
_PATIENCE: Final = 2.0  # seconds for an answer


class Peers:
    """The latest attempts of other launchers' servers, as far as these have answered.

    >>> peers = Peers(["10.0.0.2:6174", "10.0.0.3:6174"])
    >>> peers.note({"10.0.0.2:6174": 2})
    >>> peers.newest, peers.behind(2)
    (2, ['10.0.0.3:6174'])
    """

    def __init__(self, endpoints: Sequence[str]) -> None:
        self._attempts = dict.fromkeys(endpoints, 0)
        self._news = asyncio.Event()

    @property
    def newest(self) -> int:
        """The highest attempt that any peer has reached."""
        return max(self._attempts.values(), default=0)

    def behind(self, attempt: int) -> list[str]:
        """Return the endpoints that have not reached an attempt."""
        return [endpoint for endpoint, reached in self._attempts.items() if reached < attempt]

    def note(self, attempts: Mapping[str, int]) -> None:
        """Record answers of servers."""
        self._attempts |= attempts
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def wait_until_beyond(self, attempt: int) -> None:
        """Wait until one peer has reached a later attempt."""
        while self.newest <= attempt:
            await self._news.wait()

    async def wait_until_at(self, attempt: int) -> None:
        """Wait until all peers have reached an attempt."""
        while self.behind(attempt):
            await self._news.wait()


@asynccontextmanager
async def watch_peers(endpoints: Sequence[str], environment: Mapping[str, str]) -> AsyncIterator[Peers]:
    """Yield the peers of a launcher, kept up to date by a child process that ends with the context."""
    peers = Peers(endpoints)
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "paddlelike.distributed.launch.peers",
        ",".join(endpoints),
        env=dict(environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # the terminal's signals are for the launcher
        preexec_fn=die_with_parent(),
    )
    stream = child.stdout
    assert stream is not None

    async def read() -> None:
        while line := await stream.readline():
            peers.note(json.loads(line))

    reading = asyncio.ensure_future(read())
    try:
        yield peers
    finally:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()
        await reading


def main(endpoints: Sequence[str]) -> None:
    """Ask servers for their attempts again and again, and print each answer that is new."""
    channels = [Channel(endpoint) for endpoint in endpoints]
    known: dict[str, int] = {}
    while True:
        for channel in channels:
            with suppress(RemoteError):
                attempt = channel.call("Status", {}, timeout=_PATIENCE).get("attempt")
                if isinstance(attempt, int) and known.get(channel.endpoint) != attempt:
                    known[channel.endpoint] = attempt
                    os.write(1, json.dumps({channel.endpoint: attempt}).encode() + b"\n")
        time.sleep(_EVERY)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main(sys.argv[1].split(","))
