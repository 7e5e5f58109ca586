"""Numbers, sizes and values as text for messages; plurals and units are formatted only here."""

from __future__ import annotations


def format_count(count: int, noun: str) -> str:
    """Return a number and a noun, in the plural if needed.

    >>> format_count(1, "file"), format_count(2, "file"), format_count(0, "directory")
    ('1 file', '2 files', '0 directories')
    """
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count} {noun if count == 1 else many}"


def format_size(nbytes: int) -> str:
    """Return a number of bytes, in powers of 1,000 as disks and progress bars count them.

    >>> [format_size(one) for one in (0, 999, 1000, 3 << 20, 10**10)]
    ['0 B', '999 B', '1.0 kB', '3.1 MB', '10.0 GB']
    """
    if nbytes < 1000:
        return f"{nbytes} B"
    size = float(nbytes)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 999.95:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} TB"


def describe(value: object) -> str:
    """Return a description of a value for an error, arrays by their shape.

    >>> import numpy as np
    >>> describe(np.ones([2, 4])), describe("10")
    ('a numpy array of shape [2, 4]', "'10' (str)")
    """
    import numpy as np  # late: help and completion of commands need none

    if isinstance(value, np.ndarray):
        return f"a numpy array of shape {list(value.shape)}"
    return f"{value!r} ({type(value).__name__})"
