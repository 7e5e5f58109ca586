"""What trainers and servers say to each other: one dataclass per request and per reply, checked at the door.

A request or reply travels as a *header* (plain JSON types) beside its payload, which this floor never sees.
``to_header`` and ``from_header`` are inverse; ``from_header`` refuses unknown keys, missing keys, wrong
types and numbers out of range, so that whoever holds a message may trust it.

=========  ==================================  ========================  =====================================
verb       asks                                answered by               safe to repeat because
=========  ==================================  ========================  =====================================
Hello      who are you, where do you stand     HelloReply                only raises the caller's own fence
Push       stage one round's gradients (sync)  PushReply                 whole or nothing; overwrites itself
           or apply them (async)                                         (sync), numbered (async)
Commit     I have pushed to every server       CommitReply               marks are a set; then only reads
Pull       parameters, optimizer state         PullReply                 read-only
Prefetch   rows of a table                     PrefetchReply             read-only
Beat       I am alive                          BeatReply                 read-only
Rollback   go back to a checkpoint             RollbackReply             ignored unless newer
Save       write your rows into a directory    SaveReply                 the same save is answered once
Complete   I shall send nothing more           CompleteReply             a set
=========  ==================================  ========================  =====================================

Every verb may also be answered by :class:`Waiting` (not now: ask again) or :class:`Refused`.

``trainer`` is the trainer id. ``process`` orders the processes that bore it (start time in ns): an older one
is *fenced*. ``session`` counts the agreements of one process: what it sent in an earlier session and the
network delivers late is *stale*. ``incarnation`` names the server's process and ``generation`` counts
rollbacks: a call that believes in another one is stale too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

from paddlelike.distributed.protocol.header import (
    Header,
    Message,
    choice,
    flag,
    is_,
    mapping,
    number,
    numbers,
    optional_number,
    optional_numbers,
    pairs,
    seconds,
    text,
)
from paddlelike.errors import FormatError

__all__ = [
    "PROTOCOL",
    "REPLIES",
    "REQUESTS",
    "Beat",
    "BeatReply",
    "Commit",
    "CommitReply",
    "Complete",
    "CompleteReply",
    "Hello",
    "HelloReply",
    "Mode",
    "Prefetch",
    "PrefetchReply",
    "Pull",
    "PullReply",
    "Push",
    "PushReply",
    "Reason",
    "Refused",
    "Reply",
    "Request",
    "Rollback",
    "RollbackReply",
    "Save",
    "SaveReply",
    "Staged",
    "Waiting",
    "reply_from_header",
    "request_from_header",
]

PROTOCOL = 1

Mode = Literal["sync", "async"]  # half-async trainers push sums of several steps, and are async here
Reason = Literal[
    "stale",  # the server, its generation or the caller's session is another one: say Hello
    "fenced",  # a newer process bears this trainer id: end
    "ahead",  # a round the server has not come to: say Hello
    "version",  # parameters of a round that is not the server's: say Hello
    "nopush",  # a commit without its push: say Hello
    "plan",  # the two programs disagree on which rows live where
    "job",  # another job's trainer
    "mode",  # one is synchronous, the other is not; or a verb the mode does not have
    "trainer",  # a trainer id outside 0 .. trainers - 1
    "checkpoint",  # a checkpoint this server cannot read
    "completed",  # this trainer has closed
    "failed",  # the server's own work broke; `text` says how
]

_mode, _reason = choice(*get_args(Mode)), choice(*get_args(Reason))


class Staged(NamedTuple):
    """Which push a server holds of a trainer: two servers hold the same one when all three agree."""

    round: int
    process: int
    session: int


def _staged(value: Any) -> Staged | None:
    if value is None:
        return None
    three = numbers(value)
    if len(three) != 3:
        raise ValueError("wants three integers: round, process, session")
    return Staged(*three)


# --------------------------------------------------------------------------------------------- requests
@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Message):
    """What every request says: which job, and which process of which trainer speaks in which session."""

    verb: ClassVar[str]
    job: str = is_(text)
    trainer: int = is_(number)
    process: int = is_(number)
    session: int = is_(number)

    def to_header(self) -> Header:
        """This request as plain JSON types, with the protocol's version under ``v``."""
        return {"v": PROTOCOL, **self.fields_to_header()}

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Self:
        """The request in a header.

        Raises
        ------
        FormatError
            Another protocol version; an unknown, missing or wrongly typed field.
        """
        if header.get("v") != PROTOCOL:
            raise FormatError(
                f"a request of protocol {str(header.get('v'))[:20]}; this server speaks {PROTOCOL}",
                hint="run the same version of paddlelike on every trainer and server",
            )
        return cls.fields_from_header(header, {"v"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello(Request):
    """The first words of a session; raises the fence for this trainer id to (process, session)."""

    verb = "Hello"
    plan: str = is_(text)
    mode: Mode = is_(_mode)  # noqa: RUF009
    trainers: int = is_(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Addressed(Request):
    """A request to one incarnation and generation of a server."""

    incarnation: str = is_(text)
    generation: int = is_(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Push(_Addressed):
    """Gradients: of one round (sync) or one update (async).

    ``number`` is the round in sync mode; otherwise the update's number, which counts from 1 in every process
    and for every server. ``rows`` lists (slice index, number of rows) of gradients that are selected rows.
    """

    verb = "Push"
    plan: str = is_(text)
    number: int = is_(number)
    rows: tuple[tuple[int, int], ...] = is_(pairs, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(_Addressed):
    """Every server has acknowledged the push of ``round``; waits up to ``poll`` seconds for the others."""

    verb = "Commit"
    round: int = is_(number)
    poll: float = is_(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull(_Addressed):
    """Slices (by index; ``None``: every parameter) as they are in ``version`` (``None``: now)."""

    verb = "Pull"
    version: int | None = is_(optional_number)
    slices: tuple[int, ...] | None = is_(optional_numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefetch(_Addressed):
    """Rows of one table; the payload is ``count`` ids (int64)."""

    verb = "Prefetch"
    table: str = is_(text)
    count: int = is_(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat(Request):
    """A sign of life."""

    verb = "Beat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback(Request):
    """Go back to checkpoint ``to`` and call the new time ``generation``.

    ``completed`` lists (trainer, round) of those that had closed by then; a restarted server cannot know.
    """

    verb = "Rollback"
    to: int = is_(number)
    generation: int = is_(number)
    completed: tuple[tuple[int, int], ...] = is_(pairs, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Save(_Addressed):
    """Write the rows this server owns into ``directory``, as they are in ``version`` (``None``: now).

    ``number`` tells the saves of one process apart; a repeated one is answered from memory.
    """

    verb = "Save"
    number: int = is_(number)
    directory: str = is_(text)
    version: int | None = is_(optional_number)
    options: Mapping[str, Any] = is_(mapping, default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete(_Addressed):
    """This trainer closes; ``round`` is the first one it takes no part in (its update count when async).

    ``last``: every server has acknowledged this; the trainer will not be heard of again. ``left``: others of
    whom it knows that they said so before, which a server that was restarted since does not.
    """

    verb = "Complete"
    round: int = is_(number)
    last: bool = is_(flag, default=False)
    left: tuple[int, ...] = is_(numbers, default=())


# ---------------------------------------------------------------------------------------------- replies
@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Message):
    """What every reply says: where the server stands.

    ``round`` counts the rounds (sync) or updates (async) in the server's parameters.
    """

    kind: ClassVar[str] = "ok"
    incarnation: str = is_(text)
    generation: int = is_(number)
    round: int = is_(number)

    def to_header(self) -> Header:
        """This reply as plain JSON types; ``kind`` tells ok, waiting and refused apart."""
        return {"kind": self.kind, **self.fields_to_header()}

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Self:
        """The reply in a header of this class's kind; :func:`reply_from_header` finds the class.

        Raises
        ------
        FormatError
            Another kind of reply; an unknown, missing or wrongly typed field.
        """
        if header.get("kind") != cls.kind:
            raise FormatError(f"a reply of kind {str(header.get('kind'))[:20]!r}, expected {cls.kind!r}")
        return cls.fields_from_header(header, {"kind"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(Reply):
    """Not now: ask again. ``missing`` trainers have not committed; the ``silent`` of them show no life."""

    kind = "waiting"
    missing: tuple[int, ...] = is_(numbers, default=())
    silent: tuple[int, ...] = is_(numbers, default=())
    why: str = is_(text, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(Reply):
    """No, and why; ``text`` is for people."""

    kind = "refused"
    reason: Reason = is_(_reason)  # noqa: RUF009
    text: str = is_(text, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class HelloReply(Reply):
    """Where the server stands and what it holds of the caller.

    ``base`` is the round this incarnation or generation began with; ``busy``: it goes back to it now;
    ``lost``: it could not, and waits for another rollback; ``staged`` and ``marked``: what it holds of this
    trainer in the current round; ``checkpoints``: the rounds it can go back to; ``completed``: (trainer,
    round) of those that closed, of whom ``left`` have ended; ``applied``: the caller's last update (async).
    """

    base: int = is_(number)
    busy: bool = is_(flag)
    lost: bool = is_(flag)
    staged: Staged | None = is_(_staged)  # noqa: RUF009
    marked: bool = is_(flag)
    checkpoints: tuple[int, ...] = is_(numbers)
    completed: tuple[tuple[int, int], ...] = is_(pairs)
    left: tuple[int, ...] = is_(numbers, default=())
    applied: int = is_(number, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushReply(Reply):
    """All bytes are staged (sync) or queued (async). ``duplicate``: they had been before."""

    duplicate: bool = is_(flag, default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitReply(Reply):
    """The round is applied; the payload holds the parameters of round + 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullReply(Reply):
    """The payload holds the slices asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefetchReply(Reply):
    """The payload holds the rows, in the order of the ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatReply(Reply):
    """Heard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackReply(Reply):
    """The server is at the checkpoint, or was in this generation or a later one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveReply(Reply):
    """The rows are written; ``manifest`` is this server's part of the manifest."""

    manifest: Mapping[str, Any] = is_(mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteReply(Reply):
    """Noted."""


REQUESTS: Mapping[str, type[Request]] = {
    one.verb: one for one in (Hello, Push, Commit, Pull, Prefetch, Beat, Rollback, Save, Complete)
}
REPLIES: Mapping[str, type[Reply]] = {
    "Hello": HelloReply,
    "Push": PushReply,
    "Commit": CommitReply,
    "Pull": PullReply,
    "Prefetch": PrefetchReply,
    "Beat": BeatReply,
    "Rollback": RollbackReply,
    "Save": SaveReply,
    "Complete": CompleteReply,
}


def request_from_header(verb: str, header: Mapping[str, Any]) -> Request:
    """The request that came under ``verb``.

    >>> beat = Beat(job="", trainer=1, process=7, session=0)
    >>> request_from_header("Beat", beat.to_header()) == beat
    True

    Raises
    ------
    FormatError
        An unknown verb, or a header that is not one of this verb.
    """
    if verb not in REQUESTS:
        raise FormatError(f"unknown verb {verb[:40]!r}; known are {', '.join(REQUESTS)}")
    return REQUESTS[verb].from_header(header)


def reply_from_header(verb: str, header: Mapping[str, Any]) -> Reply:
    """The reply to ``verb``: its own kind, :class:`Waiting` or :class:`Refused`.

    >>> reply_from_header("Push", {"kind": "waiting", "incarnation": "a", "generation": 0, "round": 3})
    Waiting(incarnation='a', generation=0, round=3, missing=(), silent=(), why='')

    Raises
    ------
    FormatError
        A header that is none of the three.
    """
    kinds: dict[Any, type[Reply]] = {"waiting": Waiting, "refused": Refused, "ok": REPLIES[verb]}
    kind = header.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise FormatError(f"a reply to {verb} of kind {str(kind)[:20]!r}; known are {', '.join(kinds)}")
    return kinds[kind].from_header(header)
