"""The messages of CNTK's dictionaries, built from the table in ``schema.txt`` at their first use.

The source is CNTK.proto of CNTK 2.7 (proto3). Two declarations differ, with the same bytes: a map is declared
as repeated entries, to control their order, and packed floats as ``bytes``, to convert them to arrays at
once.
"""

from __future__ import annotations

from functools import lru_cache

from paddlelike.errors import FormatError
from paddlelike.foundation.protobuf import Message, MessageClass, make_classes
from paddlelike.foundation.text_tables import read_table


@lru_cache(maxsize=1)
def _dictionary_class() -> MessageClass:
    table = read_table("paddlelike.formats.cntk", "schema.txt")
    return make_classes(table, "paddlelike.cntk", "proto3", {})("Dictionary")


def make_dictionary() -> Message:
    """Return an empty ``Dictionary``."""
    return _dictionary_class()()


def parse_dictionary(data: bytes) -> Message:
    """Return the ``Dictionary`` encoded in ``data``.

    Raises
    ------
    FormatError
        The bytes do not encode one, or are nested deeper than protobuf reads.

    >>> parse_dictionary(bytes.fromhex("08021204 0a026b31")).data[0].key
    'k1'
    """
    from google.protobuf.message import DecodeError

    message = make_dictionary()
    try:
        message.MergeFromString(data)
    except (DecodeError, ValueError, RecursionError) as error:  # ValueError: text that is not UTF-8
        raise FormatError(
            f"{len(data)} bytes are not a dictionary of CNTK: {error!s:.200}",
            hint="copy or save it again",
        ) from error
    return message
