"""A trainer's heartbeat to its servers, and the exit code that makes the launcher restart a failed job."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from functools import partial
from types import TracebackType

from paddlelike.distributed.protocol.messages import reply_from_header
from paddlelike.distributed.protocol.trainer import TrainerState
from paddlelike.distributed.wire import Channel
from paddlelike.errors import FaultError, FormatError, RemoteError
from paddlelike.foundation.locks import Condition, Event
from paddlelike.foundation.threads import Thread


@functools.cache
def exit_by_code() -> None:
    """Let an uncaught FaultError end this process with its ``exit_code`` instead of 1.

    The traceback is printed as before.
    """
    before = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        before(kind, error, trace)
        if isinstance(error, FaultError):
            raise SystemExit(error.exit_code)

    sys.excepthook = show


_TIMEOUT = 5.0  # seconds for one call


class Heartbeat:
    """The thread that sends a heartbeat to every server in turn.

    Parameters
    ----------
    channels
        The channels by server.
    """

    def __init__(self, channels: Sequence[Channel]) -> None:
        self._channels = channels
        self._ended = Event()
        self._thread: Thread | None = None

    def start(self, state: TrainerState, changed: Condition, interval: float) -> None:
        """Start the thread.

        Parameters
        ----------
        state
            The state of the trainer, guarded by ``changed``.
        interval
            Seconds between two heartbeats.
        """
        self._thread = Thread(partial(self._run, state, changed, interval), "paddlelike-heartbeat")
        self._thread.start()

    def end(self) -> None:
        """Send no further heartbeat; one that is being sent is completed."""
        self._ended.set()

    def join(self) -> None:
        """Wait for the thread, if there is one."""
        if self._thread is not None:
            self._thread.wait()

    def _run(self, state: TrainerState, changed: Condition, interval: float) -> None:
        while not self._ended.wait(interval):
            with changed.hold():
                request = state.make_beat()
            for server, channel in enumerate(self._channels):
                try:
                    head = channel.call("Beat", request.to_header(), timeout=_TIMEOUT)
                    reply = reply_from_header("Beat", head)
                except (RemoteError, FormatError):  # the next call of a goal reports it
                    continue
                with changed.hold():
                    state.take_beat_reply(server, reply)
                    changed.notify_all()
