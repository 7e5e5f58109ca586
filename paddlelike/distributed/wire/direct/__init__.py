"""Calls over a plain TCP connection beside gRPC, for the arrays of training.

A client learns the port and ticket of a server's direct listener by a gRPC call (:data:`VERB`). So every
connection has passed the checks of gRPC's endpoint: the job's token, and no clear text beyond one machine.
With certificates, direct connections are TLS with the same certificates. If the port cannot be reached, calls
go over gRPC.

A connection carries one call at a time. Request and answer are each a sequence of frames::

    frame    u8 kind | u32 text length | u32 n | u64 payload length | text | n records | payload
    record   u32 array index, u64 byte offset, u32 byte length
    kind     0: more frames follow, 1: the last one, 2: the last one, of an answer that is an error

Integers are little-endian. The text of the first frame is a JSON object: the verb and the header of a
request, the header of an answer. Later texts are notes to the receiver. The first frame of a connection has
the ticket as its text. Over TLS the server answers it by an empty last frame, since a TLS 1.3 handshake does
not tell a client whether its certificate was accepted. An empty frame says that its sender is alive and has
nothing to send yet.
"""

from __future__ import annotations

from paddlelike.distributed.wire.direct.client import DirectClient
from paddlelike.distributed.wire.direct.server import VERB, DirectServer

__all__ = ["VERB", "DirectClient", "DirectServer"]
