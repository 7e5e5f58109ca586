"""Tables stored as text files beside the code."""

from __future__ import annotations

import pkgutil


def read_table(package: str, name: str) -> str:
    """Return the text of a file in a package. Raises FileNotFoundError where there is none.

    >>> read_table("paddlelike.framework.codec", "schema.txt").splitlines()[0]
    'ProgramDesc'
    """
    data = pkgutil.get_data(package, name)
    assert data is not None  # a loader without files
    return data.decode()
