"""The header of an NPY file, numpy's form of one array.

Specification: the docstring of ``numpy.lib.format``. The header is the text of a Python dict, which numpy
evaluates as a literal; here it is matched against the one form that numpy writes, and nothing is evaluated::

    93 'NUMPY'  major minor  length (2 bytes, 4 from version 2.0 on)
    {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  blanks  newline
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.errors import FormatError
from paddlelike.formats.elements import check_shape

MAGIC: Final = b"\x93NUMPY"
LARGEST_HEADER: Final = 1 << 14  # numpy's own are padded to 64 bytes; dims take 20 bytes each

_FIELDS: Final = re.compile(
    r"\{'descr': '([<>|=][?a-zA-Z]\d{0,9}(?:\[\w{1,8}\])?)', 'fortran_order': (True|False), "
    r"'shape': \(((?:\d{1,15}L?, ?)*(?:\d{1,15}L?)?)\),? ?\}\s*"
)


class Header(NamedTuple):
    """Element type, shape and order of an NPY file's array; the elements begin at ``length``."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran_order: bool
    length: int


def parse_header(head: bytes, name: str) -> Header:
    """Return the header at the beginning of ``head``.

    Raises FormatError without a header, and for arrays of objects and of records; errors name ``name``.
    """
    width = {1: 2, 2: 4, 3: 4}.get(head[6] if len(head) > 6 else 0, 0)
    if head[:6] != MAGIC or not width:
        raise FormatError(f"{name!r:.80} is not an NPY array")
    begin = 8 + width
    end = begin + int.from_bytes(head[8:begin], "little")
    if end > min(len(head), LARGEST_HEADER):
        raise FormatError(f"{name!r:.80}: its NPY header is cut")
    text = head[begin:end].decode("latin1")
    found = _FIELDS.fullmatch(text)
    if found is None:
        objects = "'descr': '|O" in text
        what = (
            "an array of objects, which is a pickle and is not opened"
            if objects
            else "no array of one element type"
        )
        raise FormatError(f"{name!r:.80} is {what}")
    shape = tuple(int(dim) for dim in re.findall(r"\d+", found[3]))
    try:
        dtype = np.dtype(found[1])
    except TypeError:
        raise FormatError(f"{name!r:.80} is an array of {found[1]}, which numpy does not know") from None
    if not dtype.itemsize:
        raise FormatError(f"{name!r:.80} is an array of {dtype}, whose elements have no bytes")
    if dtype.hasobject or dtype.subdtype is not None:
        raise FormatError(f"{name!r:.80} is an array of objects, which is a pickle and is not opened")
    check_shape(f"{name!r:.80}", shape, dtype.itemsize)
    return Header(dtype, shape, found[2] == "True", end)


def find_kind(head: bytes) -> str:
    """Return the letter of the element type of an NPY file that begins with ``head``; "[" for records.

    >>> import numpy as np
    >>> [find_kind(encode_header(np.dtype(code), ())) for code in ("<f4", "O", "<U5")]
    ['f', 'O', 'U']
    """
    found = re.search(rb"'descr': (?:'[<>|=]?(.)|(\[))", head)
    return "" if found is None else (found[1] or found[2]).decode("latin1")


def encode_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of an array in C order, as numpy writes it (version 1.0, padded to 64 bytes).

    >>> import numpy as np
    >>> parse_header(encode_header(np.dtype("<f4"), (2, 3)), "w").shape
    (2, 3)
    """
    dims = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({dims}), }}"
    padding = -(len(MAGIC) + 4 + len(text) + 1) % 64
    return (
        MAGIC
        + b"\x01\x00"
        + (len(text) + padding + 1).to_bytes(2, "little")
        + text.encode()
        + b" " * padding
        + b"\n"
    )
