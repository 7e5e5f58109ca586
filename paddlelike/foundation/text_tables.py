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


def read_sections(package: str, name: str) -> list[str]:
    """Return the sections of a table, which empty lines separate, without the leading comment.

    >>> read_sections("paddlelike.left_out", "reasons.txt")[0].split()[0]
    'dygraph'
    """
    return read_table(package, name).rstrip().split("\n\n")[1:]
