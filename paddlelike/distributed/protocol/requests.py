"""The requests of trainers: one dataclass per verb."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, get_args

from paddlelike.distributed.protocol.header import (
    Header,
    Message,
    choice_reader,
    header_field,
    read_flag,
    read_integer,
    read_integers,
    read_object,
    read_optional_integer,
    read_optional_integers,
    read_pairs,
    read_seconds,
    read_text,
)
from paddlelike.errors import FormatError

PROTOCOL = 1  # the version, which every request names

Mode = Literal["sync", "async"]  # half-async trainers push sums of several steps, and are async here

_read_mode = choice_reader(*get_args(Mode))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Message):
    """The fields of every request: the job, and the trainer, process and session that send it."""

    verb: ClassVar[str]
    job: str = header_field(read_text)
    trainer: int = header_field(read_integer)
    process: int = header_field(read_integer)
    session: int = header_field(read_integer)

    def to_header(self) -> Header:
        """Return this request as plain JSON types, with the protocol's version under ``v``."""
        return {"v": PROTOCOL, **self.fields_to_header()}

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Self:
        """Return the request in a header.

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
    """Begins a session. From then on the server refuses earlier sessions of this trainer id."""

    verb = "Hello"
    plan: str = header_field(read_text)
    mode: Mode = header_field(_read_mode)  # noqa: RUF009
    trainers: int = header_field(read_integer)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Addressed(Request):
    """A request to one incarnation and generation of a server."""

    incarnation: str = header_field(read_text)
    generation: int = header_field(read_integer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Push(_Addressed):
    """Gradients of one round (sync) or one update (async).

    ``number`` is the round in sync mode; otherwise the id of the update, which counts from 1 in every process
    and for every server. ``rows`` lists (slice index, row count) of gradients that are selected rows.
    """

    verb = "Push"
    plan: str = header_field(read_text)
    number: int = header_field(read_integer)
    rows: tuple[tuple[int, int], ...] = header_field(read_pairs, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(_Addressed):
    """Commits ``round`` after every server has acknowledged its push; waits up to ``poll`` seconds."""

    verb = "Commit"
    round: int = header_field(read_integer)
    poll: float = header_field(read_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull(_Addressed):
    """Requests slices (by index; ``None``: all parameters) of the round ``version`` (``None``: the current
    one).
    """

    verb = "Pull"
    version: int | None = header_field(read_optional_integer)
    slices: tuple[int, ...] | None = header_field(read_optional_integers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefetch(_Addressed):
    """Requests rows of one table; the payload is ``count`` ids (int64)."""

    verb = "Prefetch"
    table: str = header_field(read_text)
    count: int = header_field(read_integer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat(Request):
    """A heartbeat."""

    verb = "Beat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback(Request):
    """Returns the server to checkpoint ``to`` and starts ``generation``.

    ``completed`` lists (trainer, round) of the trainers that had left by then, which a restarted server
    cannot know.
    """

    verb = "Rollback"
    to: int = header_field(read_integer)
    generation: int = header_field(read_integer)
    completed: tuple[tuple[int, int], ...] = header_field(read_pairs, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Save(_Addressed):
    """Writes this server's rows of the round ``version`` (``None``: the current one) into ``directory``.

    ``number`` is the id of the save in its process; a repeated one is answered from memory.
    """

    verb = "Save"
    number: int = header_field(read_integer)
    directory: str = header_field(read_text)
    version: int | None = header_field(read_optional_integer)
    options: Mapping[str, Any] = header_field(read_object, default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share(_Addressed):
    """Sends a text to all trainers, and waits up to ``poll`` seconds for their texts. The payload is ``size``
    bytes.

    ``number`` counts the exchanges of a process; it is equal in all trainers.
    """

    verb = "Share"
    number: int = header_field(read_integer)
    size: int = header_field(read_integer)
    poll: float = header_field(read_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete(_Addressed):
    """Leaves the job; ``round`` is the first one without this trainer (its update count when async).

    ``last`` says that every server has acknowledged this, and that the trainer will send nothing more.
    ``left`` lists other trainers that have left, for servers that were restarted since.
    """

    verb = "Complete"
    round: int = header_field(read_integer)
    last: bool = header_field(read_flag, default=False)
    left: tuple[int, ...] = header_field(read_integers, default=())
