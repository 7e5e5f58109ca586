"""The verbs of a server: they fill staging, wait for bounded times and send arrays, but never compute."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from paddlelike.distributed.placement import Kind, values_at
from paddlelike.distributed.protocol.messages import (
    Beat,
    Commit,
    CommitReply,
    Complete,
    Hello,
    Prefetch,
    PrefetchReply,
    Pull,
    PullReply,
    Push,
    Reply,
    Request,
    Rollback,
    Save,
    Share,
    ShareReply,
)
from paddlelike.distributed.server.service import Service
from paddlelike.distributed.server.staging import Contribution
from paddlelike.distributed.wire import CHUNK, Header, Into, Part, Refused, as_bytes
from paddlelike.errors import FormatError, FrameError

Asked = TypeVar("Asked", bound=Request)
Answer = tuple[Header, Iterable[Part]]

_LONGEST_TURN = 30.0  # seconds that one call may wait for something on this server
_MOST_IDS = 1 << 24  # ids of one prefetch
_LONGEST_TEXT = 1 << 28  # bytes of one trainer's text in an exchange


def make_verbs(service: Service) -> dict[str, Any]:
    """Return the verbs of a server by name."""
    return {
        "Describe": _Describe(service),
        "Status": _Status(service),
        "Hello": _Plain(service, Hello),
        "Beat": _Plain(service, Beat),
        "Complete": _Plain(service, Complete),
        "Rollback": _Patient(service, Rollback),
        "Save": _Patient(service, Save),
        "Push": _PushVerb(service),
        "Commit": _CommitVerb(service),
        "Pull": _PullVerb(service),
        "Prefetch": _PrefetchVerb(service),
        "Share": _ShareVerb(service),
    }


class _Verb:
    def __init__(self, service: Service) -> None:
        self.service = service

    def begin(self, head: Header) -> Any:
        return None

    def read(self, kind: type[Asked], head: Header) -> Asked:
        """Return the request in a header. Raises FrameError, an error of the caller, for a malformed one."""
        try:
            request = kind.from_header(head)
        except FormatError as error:
            raise FrameError(error.message, hint=error.hint) from None
        self.service.hear(request)
        return request


class _Describe(_Verb):
    """Sends the table, which a trainer compares with its own program before anything else."""

    def end(self, head: Header, receiver: None) -> Answer:
        served = self.service.served
        header = {"mode": self.service.mode, "trainers": served.trainers}
        return header, [Part(0, 0, memoryview(served.table.to_bytes()))]


class _Status(_Verb):
    """The state of the server for monitoring; not a part of the protocol."""

    def end(self, head: Header, receiver: None) -> Answer:
        return self.service.status(), ()


class _Plain(_Verb):
    """A verb that is answered at once."""

    def __init__(self, service: Service, kind: type[Request]) -> None:
        super().__init__(service)
        self.kind = kind

    def end(self, head: Header, receiver: None) -> Answer:
        request = self.read(self.kind, head)
        return self.service.ask(request).to_header(), ()


class _Patient(_Plain):
    """A verb answered after the thread that owns the parameters has done the work."""

    def end(self, head: Header, receiver: None) -> Answer:
        request = self.read(self.kind, head)
        return self.service.ask_until(request, _LONGEST_TURN).to_header(), ()


class _PushVerb(_Verb):
    def begin(self, head: Header) -> Contribution:
        request = self.read(Push, head)
        service = self.service
        with service.changed.hold():
            reply = service.state.begin_push(request, time.monotonic())
        found = service.take_memory(request, _LONGEST_TURN) if reply is None else reply
        if isinstance(found, Reply):
            raise Refused(found.to_header())
        found.request = request
        return found

    def end(self, head: Header, receiver: Contribution) -> Answer:
        request = receiver.request
        assert request is not None
        service = self.service
        receiver.finish(whole=service.mode == "sync")
        service.monitor.bytes_in += receiver.size
        with service.changed.hold():
            reply = service.state.end_push(request, receiver, time.monotonic())
            service.wake()
        return reply.to_header(), ()


class _CommitVerb(_Verb):
    def end(self, head: Header, receiver: None) -> Answer:
        request = self.read(Commit, head)
        reply = self.service.ask_until(request, min(request.poll, _LONGEST_TURN))
        parts: Iterable[Part] = ()
        if isinstance(reply, CommitReply):
            parts = _values(self.service, self.service.served.parameter_indexes)
        return reply.to_header(), parts


class _PullVerb(_Verb):
    def end(self, head: Header, receiver: None) -> Answer:
        request = self.read(Pull, head)
        service = self.service
        reply = service.ask_until(request, _LONGEST_TURN)
        if not isinstance(reply, PullReply):
            return reply.to_header(), ()
        if request.slices is None:
            return reply.to_header(), _values(service, service.served.parameter_indexes)
        return reply.to_header(), _yield_asked(service, request.slices)


class _PrefetchVerb(_Verb):
    def begin(self, head: Header) -> Into:
        request = self.read(Prefetch, head)
        entry = self.service.served.table.get(request.table)
        if entry is None or entry.kind not in (Kind.REMOTE, Kind.TABLE, Kind.PARAMETER, Kind.GROWING):
            raise FrameError(f"{request.table!r} is not a table of this server")
        if request.count > _MOST_IDS:
            raise FrameError(f"the prefetch has {request.count} ids; the limit of one call is {_MOST_IDS}")
        return _Ids(np.empty(request.count, np.int64))

    def end(self, head: Header, receiver: Any) -> Answer:
        request = Prefetch.from_header(head)
        receiver.check()
        service = self.service
        reply = service.ask_until(request, _LONGEST_TURN)
        if not isinstance(reply, PrefetchReply):
            return reply.to_header(), ()
        rows = service.lookup(request.table, receiver.ids)
        service.monitor.bytes_out += rows.nbytes
        return reply.to_header(), [Part(0, 0, as_bytes(rows))]


class _ShareVerb(_Verb):
    def begin(self, head: Header) -> Into:
        request = self.read(Share, head)
        if request.size > _LONGEST_TEXT:
            raise FrameError(
                f"the text has {request.size} bytes; the limit of one trainer is {_LONGEST_TEXT}"
            )
        return Into({0: np.empty(request.size, np.uint8)})

    def end(self, head: Header, receiver: Into) -> Answer:
        request = Share.from_header(head)
        receiver.check()
        service = self.service
        with service.changed.hold():
            service.state.take_share(request, receiver.arrays[0].tobytes(), time.monotonic())
            service.changed.notify_all()
        reply = service.ask_until(request, min(request.poll, _LONGEST_TURN))
        if not isinstance(reply, ShareReply):
            return reply.to_header(), ()
        with service.changed.hold():
            texts = [text.decode() for text in service.state.shared_texts(request.number)]
        return reply.to_header(), [Part(0, 0, memoryview(json.dumps(texts).encode()))]


class _Ids(Into):
    """The receiver for the ids of a prefetch."""

    def __init__(self, ids: np.ndarray[Any, Any]) -> None:
        super().__init__({0: ids})
        self.ids = ids


def _yield_asked(service: Service, indexes: Iterable[int]) -> Iterator[Part]:
    """Return the requested values of entries. Index ``len(table) + i`` requests the row ids of table
    ``i``.
    """
    table = service.served.table
    for asked in indexes:
        index = asked % len(table)
        entry = table.entries[index]
        if entry.kind in (Kind.TABLE, Kind.GROWING) and asked < 2 * len(table):
            rows, values = service.variables.shard(entry)
            yield Part(0, 0, as_bytes(rows if asked >= len(table) else values))
        elif entry.kind == Kind.GRADIENT or asked >= len(table):
            raise FrameError(f"{service.served.endpoint} has no value of index {asked}, which was requested")
        else:
            yield from _values(service, [index])


def _values(service: Service, indexes: Iterable[int]) -> Iterator[Part]:
    """Return the current values of entries, copied in pieces if another thread may write them."""
    for index in indexes:
        entry = service.served.table.entries[index]
        view = service.variables.bytes_of(entry)
        service.monitor.bytes_out += len(view)
        guard = service.variables.guards.get(entry.name)
        if guard is None:
            yield Part(values_at(index), 0, view)
            continue
        for start in range(0, len(view), CHUNK):
            with guard.hold():
                piece = bytes(view[start : start + CHUNK])
            yield Part(values_at(index), start, memoryview(piece))
