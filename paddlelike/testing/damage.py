"""Damaged files, and a test that they raise FormatError and take no memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator

from paddlelike.errors import FormatError


def cuts(data: bytes) -> Iterator[bytes]:
    """Return the file cut off at every length."""
    for size in range(len(data)):
        yield data[:size]


def flips(data: bytes) -> Iterator[bytes]:
    """Yield the file with one byte changed in three ways, at every offset."""
    for at in range(len(data)):
        for mask in (0x01, 0x80, 0xFF):
            yield data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


def refuses(read: Callable[[bytes], object], data: bytes) -> bool:
    """Return whether ``read`` raises FormatError. Other exceptions propagate."""
    try:
        read(data)
    except FormatError:
        return True
    return False


def peak_memory(call: Callable[[], object]) -> int:
    """Return the peak number of bytes allocated during ``call``."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
