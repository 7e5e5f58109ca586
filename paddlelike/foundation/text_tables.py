"""Tables that lie beside the code as text."""

from __future__ import annotations

import pkgutil


def read_table(package: str, name: str) -> str:
    """Return the text of a file in a package. Raises FileNotFoundError where there is none.

    >>> read_table("paddlelike.framework.codec", "schema.txt").splitlines()[0]
    'ProgramDesc'
    """
    data = pkgutil.get_data(package, name)
    assert data is not None  # it would be with a loader that knows no files
    return data.decode()
