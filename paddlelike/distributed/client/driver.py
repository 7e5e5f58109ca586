"""Carries a trainer's side of the protocol to its servers: connections, threads, one goal at a time."""

from __future__ import annotations

import contextlib
import functools
import queue
import select
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from paddlelike.core import memory
from paddlelike.distributed.client.calls import Calls, Payload
from paddlelike.distributed.client.description import common_mode, describe
from paddlelike.distributed.client.gradients import Abandoned
from paddlelike.distributed.client.heartbeat import Heartbeat
from paddlelike.distributed.placement import Kind
from paddlelike.distributed.protocol.messages import Reply
from paddlelike.distributed.protocol.trainer import TrainerState
from paddlelike.distributed.protocol.trainer.retries import Call, Closed, Done, Pause, Resumed, Step
from paddlelike.distributed.settings import Settings
from paddlelike.distributed.wire import Channel
from paddlelike.distributed.wire.direct.connection import Connection
from paddlelike.errors import DeadlineError, FaultError, FormatError, RemoteError, UnreachableError
from paddlelike.foundation.locks import Condition, RLock
from paddlelike.foundation.threads import Pool, Thread

Goal = Callable[[TrainerState, float], None]
_Result = TypeVar("_Result")

SMALL = 64 << 10  # bytes for one server that one thread sends, or receives, for all servers in turn
_POLL = 1.0  # seconds between two checks for work


class _Begun(NamedTuple):
    """A call whose request was sent."""

    call: Call
    direct: Connection
    finish: Callable[[], Reply]


class Driver:
    """Drives the state machine of one trainer: makes its calls and reports their results.

    Only one goal at a time is pursued; threads wait for their turn.

    Attributes
    ----------
    tables, mode
        The tables and the mode in the servers' own descriptions.
    values
        For each server, the newest parameters by index of the entry; every round writes into these
        arrays.
    is_lost
        Whether a fault has ended the job for this trainer.
    was_interrupted
        Whether an interrupt such as Ctrl-C ended it; another driver may then continue.
    """

    def __init__(self, trainer: int, endpoints: Sequence[str], settings: Settings) -> None:
        self.trainer = trainer
        self.endpoints = tuple(endpoints)
        self._settings = settings
        self.is_lost = self.was_interrupted = False
        self._why: Exception | None = None
        self.channels = [Channel(endpoint) for endpoint in endpoints]
        self._pool = Pool(max(len(endpoints), 1), "paddlelike-call")
        self._turn = RLock()
        self._changed = Condition()
        self._heartbeat = Heartbeat(self.channels)
        self._orders: list[queue.SimpleQueue[bool]] = []  # by server, of the thread that pushes; False: end
        self._done: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._begun = 0  # servers to which a goal of begin() is being carried out
        self._abandon: Callable[[], None] = lambda: None

    def join(self) -> None:
        """Connect to the servers and join the job; the caller disconnects, also after an error.

        Raises
        ------
        FaultError
            A server does not answer in time, or the servers are of different jobs; names the endpoints.
        """
        settings = self._settings
        found = self._pool.map(lambda c: describe(c, settings.limits.window), self.channels)
        self.tables = [one.table for one in found]
        self.mode = common_mode(self.endpoints, found)
        self.values = [
            {e.index: memory.empty(e.shape, e.numpy_dtype) for e in table.having(Kind.PARAMETER)}
            for table in self.tables
        ]
        self._calls = Calls(self.channels, self.values)
        self.has_small_values = all(
            sum(array.nbytes for array in arrays.values()) <= SMALL for arrays in self.values
        )
        self.state = TrainerState(
            trainer=self.trainer,
            trainers=found[0].trainers,
            process=time.time_ns(),
            endpoints=self.endpoints,
            plans=[table.digest for table in self.tables],
            mode=self.mode,
            job=settings.job,
            rollback=settings.rollback,
            limits=settings.limits,
        )
        self._heartbeat.start(self.state, self._changed, settings.lease / 3)
        self.reach(lambda state, now: state.join(now))

    @property
    def round(self) -> int:
        """The next round (asynchronous: the next update of this process)."""
        return self.state.round if self.mode == "sync" else self.state.update

    def reach(self, goal: Goal, payload: Payload | None = None, *, is_small: bool = False) -> bool:
        """Set a goal and call all servers concurrently until it is reached.

        ``is_small`` says that at most ``SMALL`` bytes travel to and from one server. Return False if the
        servers went back to a save instead; ``values`` then holds the parameters of that save.

        Raises
        ------
        FaultError
            The job is lost for this trainer; names the endpoint or the trainers.
        RemoteError
            A server refused a call for good.
        """
        with self._turn.hold():
            try:
                if not self.withdraw():
                    return False
                self._set_goal(goal, payload)
                begun = self._start_together() if is_small and len(self.endpoints) > 1 else {}
                self._finish_together(begun)
                if begun or self.state.outcome is None:
                    calls = [(server, begun.get(server)) for server in range(len(self.endpoints))]
                    others = [self._pool.submit(self._drive, *call) for call in calls[1:]]
                    self._drive(*calls[0])
                    for other in others:
                        other.result()
                return self._evaluate()
            except BaseException:
                self._interrupt()
                raise

    def begin(self, goal: Goal, payload: Payload, abandon: Callable[[], None]) -> None:
        """Set a goal whose calls run until :meth:`finish`, while the caller computes the data to send.

        When another goal comes first, ``abandon`` makes ``payload`` end these calls. Raises the errors of
        :meth:`reach`.
        """
        with self._turn.hold():
            assert not self._begun, "a goal is open already"
            try:
                self._set_goal(goal, payload)
                self._abandon = abandon
                if len(self._orders) < len(self.endpoints):
                    self._start_pushers()
                for order in self._orders:
                    self._begun += 1
                    order.put(True)
            except BaseException:
                self._interrupt()
                raise

    def finish(self) -> bool:
        """Wait for the goal of :meth:`begin`; return what :meth:`reach` returns, and raise its errors."""
        with self._turn.hold():
            try:
                self._join()
                return self._evaluate()
            except BaseException:
                self._interrupt()
                raise

    def withdraw(self) -> bool:
        """Abandon the goal of :meth:`begin`, if it is open; return False if the servers rolled back."""
        with self._turn.hold():
            try:
                if not self._begun:
                    return True
                self._end_begun()
                self._join()
                return not isinstance(self.state.outcome, Resumed)
            except BaseException:
                self._interrupt()
                raise

    def _end_begun(self) -> None:
        """End the calls of :meth:`begin`, if there are any."""
        if self._begun:
            with self._changed.hold():
                self.state.withdraw()
                self._changed.notify_all()
            self._abandon()

    def _start_pushers(self) -> None:
        """Start a thread for each server.

        The threads are not in the pool, because a script that fails during a step would wait at its end for
        the pool.
        """
        for server in range(len(self.endpoints)):
            orders: queue.SimpleQueue[bool] = queue.SimpleQueue()
            self._orders.append(orders)
            Thread(functools.partial(self._follow, server, orders), "paddlelike-push").start()

    def _follow(self, server: int, orders: queue.SimpleQueue[bool]) -> None:
        while orders.get():
            self._drive(server)
            self._done.put(server)

    def _join(self) -> None:
        while self._begun:
            self._done.get()
            self._begun -= 1

    def _set_goal(self, goal: Goal, payload: Payload | None) -> None:
        if self._why is not None:
            raise self._why
        self._calls.payload = payload
        with self._changed.hold():
            goal(self.state, time.monotonic())

    def _evaluate(self) -> bool:
        outcome = self.state.outcome
        if isinstance(outcome, Closed):
            outcome = FaultError(f"trainer {self.trainer} had finished this job in an earlier process")
            outcome.exit_code = 0  # training is complete: the launcher must not restart it
        if isinstance(outcome, FaultError):
            self._lose(outcome)
        if self._why is not None:
            raise self._why
        return not isinstance(outcome, Resumed)

    def _interrupt(self) -> None:
        """End the job here after an unrecorded error such as Ctrl-C: the state of open calls is unknown."""
        if self._why is not None:
            return
        self.was_interrupted = True
        self._lose(FaultError("this trainer was interrupted in a call and cannot continue"))

    def disconnect(self) -> None:
        """Close the connections without telling the servers."""
        self._heartbeat.end()
        self._end_begun()
        for orders in self._orders:
            orders.put(False)
        for channel in self.channels:
            channel.close()
        self._pool.close()
        self._heartbeat.join()

    def _start_together(self) -> dict[int, _Begun]:
        """Send the first request of a goal to every server, without waiting for answers; return the requests.

        For small calls this takes half the time of a thread for each server.
        """
        directs: list[Connection] = []
        with contextlib.suppress(RemoteError):  # the threads will get the same error and report it
            for channel in self.channels:
                direct = channel.open_direct()
                if direct is None:
                    break
                directs.append(direct)
        begun: dict[int, _Begun] = {}
        for server, direct in enumerate(directs):
            step: Step = Pause(0.0)
            if len(directs) == len(self.channels):
                with self._changed.hold():
                    step = self.state.next_step(server, time.monotonic())
            if not isinstance(step, Call):
                self.channels[server].give_back(direct)
                continue
            finish = self._attempt(step, functools.partial(self._calls.start_call, step, direct))
            if finish is not None:
                begun[server] = _Begun(step, direct, finish)
        return begun

    def _finish_together(self, begun: dict[int, _Begun]) -> None:
        """Take answers out of ``begun`` as they come, until a server needs a further call."""
        poller = select.poll()
        servers = {one.direct.socket.fileno(): server for server, one in begun.items()}
        for number in servers:
            poller.register(number, select.POLLIN)
        while begun:
            events = poller.poll(1000 * min(one.call.timeout for one in begun.values()))
            if not events:
                for one in begun.values():
                    one.direct.limit_waits(0.001)  # the deadline has passed: waiting for them raises an error
                return
            for number, _ in events:
                poller.unregister(number)
                server = servers[number]
                self._finish_call(begun.pop(server))
                if not self.state.is_done(server):
                    return

    def _finish_call(self, begun: _Begun) -> None:
        reply = self._attempt(begun.call, begun.finish)
        if reply is not None:
            with self._changed.hold():
                self.state.take_reply(begun.call, reply, time.monotonic())
                self._changed.notify_all()

    def _attempt(self, call: Call, act: Callable[[], _Result]) -> _Result | None:
        """Return the result of one stage of a call, or None if it failed; the error is recorded."""
        try:
            return act()
        except (UnreachableError, DeadlineError, FormatError, Abandoned) as error:
            with self._changed.hold():
                self.state.fail_call(call, str(getattr(error, "message", "")), time.monotonic())
                self._changed.notify_all()
        except Exception as error:
            self._lose(error)
        return None

    def _drive(self, server: int, begun: _Begun | None = None) -> None:
        """Make the protocol's calls to one server until it is done; ``begun`` is the first call."""
        if begun is not None:
            self._finish_call(begun)
        while True:
            with self._changed.hold():
                step = self.state.next_step(server, time.monotonic())
                if isinstance(step, Done) or self.is_lost:
                    self._changed.notify_all()
                    return
                if not isinstance(step, Call):
                    self._changed.wait(min(max(step.until - time.monotonic(), 0.001), _POLL))
                    continue
            reply = self._attempt(step, functools.partial(self._calls.make_call, step))
            if reply is not None:
                with self._changed.hold():
                    self.state.take_reply(step, reply, time.monotonic())
                    self._changed.notify_all()

    def _lose(self, why: Exception) -> None:
        """Record an error that repeating the call would not fix."""
        with self._changed.hold():
            self._why, self.is_lost = why, True
            self._changed.notify_all()
