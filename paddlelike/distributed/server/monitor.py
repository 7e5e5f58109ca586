"""Monitoring of a server: counts, a log line every minute, and the end when all trainers are gone."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Collection
from typing import Any

from paddlelike.distributed.server.presence import Presence
from paddlelike.distributed.settings import Settings
from paddlelike.errors import FaultError

_log = logging.getLogger("paddlelike.distributed.server")


class Monitor:
    """Counts what one server does and watches for its trainers.

    Parameters
    ----------
    endpoint
        The server's endpoint, for texts.
    trainers
        The number of trainers.
    settings
        The time to wait for trainers, and the time between two lines of the log.

    Attributes
    ----------
    rounds
        Rounds (asynchronous: updates) applied since the start.
    bytes_in, bytes_out
        Bytes of gradients received and of parameters sent.
    """

    def __init__(
        self, endpoint: str, trainers: int, settings: Settings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.presence = Presence(trainers, lease=settings.lease, clock=clock)
        self.rounds = self.bytes_in = self.bytes_out = 0
        self._endpoint = endpoint
        self._trainers = trainers
        self._patience = max(settings.limits.barrier, settings.lease)
        self._log_every = settings.log_every
        self._attempt = settings.attempt
        self._clock = clock
        self._logged_at, self._logged_rounds = clock(), 0

    def check(self, round: int, remaining: Collection[int]) -> None:
        """Write a line to the log when it is due. The ``remaining`` trainers have not finished.

        Raises
        ------
        FaultError
            No trainer has given a sign of life for FLAGS_worker_update_interval_secs.
        """
        alone = self.presence.seconds_alone(remaining)
        if alone > self._patience:
            raise FaultError(
                f"the server at {self._endpoint} ends at round {round}: no sign of life for {alone:.0f} s "
                f"from {self.presence.describe(remaining)}",
                hint="start the job again from its last save; see FLAGS_worker_update_interval_secs",
            )
        now = self._clock()
        if now - self._logged_at < self._log_every:
            return
        rate = (self.rounds - self._logged_rounds) / (now - self._logged_at)
        self._logged_at, self._logged_rounds = now, self.rounds
        silent = self.presence.silent(remaining)
        waiting = f"; waits for {self.presence.describe(silent)}" if silent else ""
        write_log(f"server {self._endpoint}: round {round}, {rate:.1f} rounds/s{waiting}")

    def status(self, mode: str, remaining: Collection[int]) -> dict[str, Any]:
        """Return counts and the silent trainers as plain values."""
        return {
            "endpoint": self._endpoint,
            "mode": mode,
            "rounds": self.rounds,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "trainers": self._trainers,
            "silent": self.presence.silent(remaining),
            "attempt": self._attempt,
        }


def write_log(line: str) -> None:
    """Write a line to the server's log: to the logger, or to stderr where logging is not configured."""
    if _log.hasHandlers():
        _log.info(line)
        return
    sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
    sys.stderr.flush()
