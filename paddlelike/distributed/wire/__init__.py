"""Calls between trainers and servers: gRPC for requests, direct connections for the arrays of training.

A call has a verb (a string), a header (a JSON object) and a payload (parts of arrays);
:mod:`paddlelike.distributed.protocol` defines their meaning. :mod:`.frames` describes the encoding,
:mod:`.security` who may connect, :mod:`.idle` the time limits of silent calls, :mod:`.direct` the connections
beside gRPC.
"""

from __future__ import annotations

from paddlelike.distributed.wire.channel import Channel
from paddlelike.distributed.wire.frames import CHUNK, MAX_HEADER, WHOLE, Header
from paddlelike.distributed.wire.parts import FLUSH, Into, Item, Note, Part, Receiver, as_bytes, make_parts
from paddlelike.distributed.wire.ready import wait_for_servers
from paddlelike.distributed.wire.security import Security, Tls, is_loopback, parse_endpoint
from paddlelike.distributed.wire.server import Server, workers_for
from paddlelike.distributed.wire.verbs import Refused, Verb

__all__ = [
    "CHUNK",
    "FLUSH",
    "MAX_HEADER",
    "WHOLE",
    "Channel",
    "Header",
    "Into",
    "Item",
    "Note",
    "Part",
    "Receiver",
    "Refused",
    "Security",
    "Server",
    "Tls",
    "Verb",
    "as_bytes",
    "is_loopback",
    "make_parts",
    "parse_endpoint",
    "wait_for_servers",
    "workers_for",
]
