"""Recognize Paddle's two streams and its programs by their first bytes; they have no magic number.

This distinguishes wrong files from damaged ones. :mod:`~paddlelike.formats.paddle.lod_tensor` and
:mod:`~paddlelike.formats.paddle.selected_rows` decode the streams.
"""

from __future__ import annotations

import re
from typing import Final

from paddlelike.formats.sources import Source

_ENDIAN: Final = "little"
_MAX_DESC: Final = 512  # bytes of a TensorDesc


def find_dense_part(head: bytes) -> int | None:
    """Return the offset of the tensor part of a dense stream that begins with ``head``, or None."""
    if head[:4] != bytes(4) or len(head) < 12:
        return None
    at = 12
    for _ in range(min(int.from_bytes(head[4:12], _ENDIAN), len(head))):
        at += 8 + int.from_bytes(head[at : at + 8], _ENDIAN)
    return at if _is_desc(head, at) else None


def is_selected_rows(head: bytes, source: Source | None = None) -> bool:
    """Return whether a stream of SelectedRows begins with ``head``.

    If the row ids fill ``head``, the tensor part comes after it, and the stream is only recognized with
    ``source``.
    """
    rows = int.from_bytes(head[4:12], _ENDIAN)
    if head[:4] != bytes(4):
        return False
    at = 12 + 8 * rows + 8
    if source is None or at + 9 <= len(head):
        return _is_desc(head, at)
    return at + 9 <= source.size and _is_desc(bytes(source.read_at(at, 9)), 0)


def _is_desc(head: bytes, at: int) -> bool:
    """Return whether a tensor part begins at ``at``: version 0, a small length, an element type."""
    size = int.from_bytes(head[at + 4 : at + 8], _ENDIAN)
    return (
        at + 9 <= len(head)
        and head[at : at + 4] == bytes(4)
        and 2 <= size < _MAX_DESC
        and head[at + 8] == 8  # field 1 of the TensorDesc, a varint
    )


def is_program(head: bytes) -> bool:
    """Return whether a program begins with ``head``: a ProgramDesc (``__model__``, ``.pdmodel``), or PIR."""
    # field 1 (blocks) of some length, in it idx 0 and parent_idx -1
    desc = re.match(rb"\x0a[\x80-\xff]{0,4}[\x00-\x7f]\x08\x00\x10\xff", head, re.DOTALL)
    return desc is not None or is_pir(head)


def is_pir(head: bytes) -> bool:
    """Return whether a program of Paddle 3 (``inference.json``) begins with ``head``."""
    return re.match(rb'\s*\{\s*"base_code"\s*:', head) is not None
