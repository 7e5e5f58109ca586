"""The replies of servers: one dataclass per verb, Waiting and Refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

from paddlelike.distributed.protocol.header import (
    Header,
    Message,
    choice_reader,
    header_field,
    read_flag,
    read_integer,
    read_integers,
    read_object,
    read_pairs,
    read_text,
)
from paddlelike.errors import FormatError

Reason = Literal[
    "stale",  # the server, its generation or the caller's session is another one: say Hello
    "fenced",  # a newer process has this trainer id: end
    "ahead",  # a round that the server has not reached: say Hello
    "version",  # parameters of a round that is not the server's: say Hello
    "nopush",  # a commit without its push: say Hello
    "plan",  # the two programs disagree on the placement of rows
    "job",  # another job's trainer
    "mode",  # one is synchronous, the other is not; or a verb the mode does not have
    "trainer",  # a trainer id outside 0 .. trainers - 1
    "checkpoint",  # a checkpoint this server cannot read
    "completed",  # this trainer has left the job
    "failed",  # the server's own work failed; `text` says how
]

_read_reason = choice_reader(*get_args(Reason))


class Staged(NamedTuple):
    """The identity of a staged push: two servers hold the same push when all three fields agree."""

    round: int
    process: int
    session: int


def _read_staged(value: object) -> Staged | None:
    if value is None:
        return None
    three = read_integers(value)
    if len(three) != 3:
        raise ValueError("expected three integers: round, process, session")
    return Staged(*three)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Message):
    """The fields of every reply: the server's incarnation, generation and round.

    ``round`` counts the rounds (sync) or updates (async) in the server's parameters.
    """

    kind: ClassVar[str] = "ok"
    incarnation: str = header_field(read_text)
    generation: int = header_field(read_integer)
    round: int = header_field(read_integer)

    def to_header(self) -> Header:
        """Return this reply as plain JSON types; ``kind`` is ok, waiting or refused."""
        return {"kind": self.kind, **self.fields_to_header()}

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Self:
        """Return the reply in a header of this class's kind; :func:`.reply_from_header` finds the class.

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
    """The server is not ready. ``missing`` trainers have not committed; ``silent`` ones send nothing."""

    kind = "waiting"
    missing: tuple[int, ...] = header_field(read_integers, default=())
    silent: tuple[int, ...] = header_field(read_integers, default=())
    why: str = header_field(read_text, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(Reply):
    """A refusal: ``reason`` is for the trainer's state machine, ``text`` for people."""

    kind = "refused"
    reason: Reason = header_field(_read_reason)  # noqa: RUF009
    text: str = header_field(read_text, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class HelloReply(Reply):
    """The position of the server, and what it has received from the caller.

    ``base`` is the round this incarnation or generation began with. ``busy`` says that the server is rolling
    back to it, ``lost`` that this failed and it waits for another rollback. ``staged`` and ``marked`` are the
    push and commit of this trainer in the current round; ``checkpoints`` are the rounds the server can return
    to. ``completed`` lists (trainer, round) of trainers that left; ``left`` counts those that ended.
    ``applied`` is the caller's last update (async). ``adopts`` says that the server loaded a directory
    without a recorded round, and takes the round of the other servers.
    """

    base: int = header_field(read_integer)
    busy: bool = header_field(read_flag)
    lost: bool = header_field(read_flag)
    staged: Staged | None = header_field(_read_staged)  # noqa: RUF009
    marked: bool = header_field(read_flag)
    checkpoints: tuple[int, ...] = header_field(read_integers)
    completed: tuple[tuple[int, int], ...] = header_field(read_pairs)
    left: tuple[int, ...] = header_field(read_integers, default=())
    applied: int = header_field(read_integer, default=0)
    adopts: bool = header_field(read_flag, default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushReply(Reply):
    """All bytes are staged (sync) or queued (async). ``duplicate``: the server already had the push."""

    duplicate: bool = header_field(read_flag, default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitReply(Reply):
    """The round is applied; the payload holds the parameters of round + 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullReply(Reply):
    """The payload holds the requested slices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefetchReply(Reply):
    """The payload holds the rows, in the order of the ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatReply(Reply):
    """The heartbeat was received."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackReply(Reply):
    """The server has the values of the checkpoint, or had them earlier in this or a later generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveReply(Reply):
    """The rows are written; ``manifest`` is this server's part of the manifest."""

    manifest: Mapping[str, Any] = header_field(read_object)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareReply(Reply):
    """Every trainer has sent its text; the payload is a JSON list of the texts, by trainer id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteReply(Reply):
    """The server has recorded that the trainer has left."""
