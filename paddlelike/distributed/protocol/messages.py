"""The messages between trainers and servers: one dataclass per request and per reply.

A request or reply travels as a *header* (plain JSON types) beside its payload, which this package never sees.
``to_header`` and ``from_header`` are inverse; ``from_header`` refuses unknown keys, missing keys, wrong
types and integers out of range, so that a message object is always valid.

=========  ==================================  ========================  =====================================
verb       means                               answered by               safe to repeat because
=========  ==================================  ========================  =====================================
Hello      begin a session; tell your round    HelloReply                only raises the caller's own fence
Push       stage one round's gradients (sync)  PushReply                 whole or nothing; overwrites itself
           or apply them (async)                                         (sync), numbered (async)
Commit     I have pushed to every server       CommitReply               marks are a set; then read-only
Pull       parameters, optimizer state         PullReply                 read-only
Prefetch   rows of a table                     PrefetchReply             read-only
Beat       I am alive                          BeatReply                 read-only
Rollback   go back to a checkpoint             RollbackReply             ignored unless newer
Save       write your rows into a directory    SaveReply                 the same save is answered once
Share      give a text to all trainers         ShareReply                the first text counts
Complete   I leave the job                     CompleteReply             a set
=========  ==================================  ========================  =====================================

Every verb may also be answered by :class:`Waiting` (not now: ask again) or :class:`Refused`.

``trainer`` is the trainer id. ``process`` orders the processes with this id (start time in ns): an older one
is *fenced*. ``session`` counts the agreements of one process: a request of an earlier session that arrives
late is *stale*. ``incarnation`` names the server's process and ``generation`` counts rollbacks: a call to
another one is stale too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddlelike.distributed.protocol.replies import (
    BeatReply,
    CommitReply,
    CompleteReply,
    HelloReply,
    PrefetchReply,
    PullReply,
    PushReply,
    Reason,
    Refused,
    Reply,
    RollbackReply,
    SaveReply,
    ShareReply,
    Staged,
    Waiting,
)
from paddlelike.distributed.protocol.requests import (
    PROTOCOL,
    Beat,
    Commit,
    Complete,
    Hello,
    Mode,
    Prefetch,
    Pull,
    Push,
    Request,
    Rollback,
    Save,
    Share,
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
    "Share",
    "ShareReply",
    "Staged",
    "Waiting",
    "reply_from_header",
    "request_from_header",
]

REQUESTS: Mapping[str, type[Request]] = {
    one.verb: one for one in (Hello, Push, Commit, Pull, Prefetch, Beat, Rollback, Save, Share, Complete)
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
    "Share": ShareReply,
    "Complete": CompleteReply,
}


def request_from_header(verb: str, header: Mapping[str, Any]) -> Request:
    """Return the request in the header of a call to ``verb``.

    >>> beat = Beat(job="", trainer=1, process=7, session=0)
    >>> request_from_header("Beat", beat.to_header()) == beat
    True

    Raises
    ------
    FormatError
        An unknown verb, or a header that is not a request of this verb.
    """
    if verb not in REQUESTS:
        raise FormatError(f"unknown verb {verb[:40]!r}; known are {', '.join(REQUESTS)}")
    return REQUESTS[verb].from_header(header)


def reply_from_header(verb: str, header: Mapping[str, Any]) -> Reply:
    """Return the reply to ``verb`` in a header: its own kind, :class:`Waiting` or :class:`Refused`.

    >>> reply_from_header("Push", {"kind": "waiting", "incarnation": "a", "generation": 0, "round": 3})
    Waiting(incarnation='a', generation=0, round=3, missing=(), silent=(), why='')

    Raises
    ------
    FormatError
        A header that is not such a reply.
    """
    kinds: dict[Any, type[Reply]] = {"waiting": Waiting, "refused": Refused, "ok": REPLIES[verb]}
    kind = header.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise FormatError(f"a reply to {verb} of kind {str(kind)[:20]!r}; known are {', '.join(kinds)}")
    return kinds[kind].from_header(header)
