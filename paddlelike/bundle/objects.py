"""Several objects in one file, as consecutive pickles.

Any of Python's pickle readers reads them: https://docs.python.org/3/library/pickle.html.
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from paddlelike.bundle.reader import open_binary
from paddlelike.bundle.unpickler import Classes, RestrictedUnpickler, build_class_table
from paddlelike.errors import SaveError
from paddlelike.storage.local.transaction import write_all
from paddlelike.storage.problems import raises_own_errors

Target = str | os.PathLike[str] | IO[bytes]


@raises_own_errors
def dump_all(file: Target, objects: Iterable[Any], protocol: int = pickle.HIGHEST_PROTOCOL) -> None:
    """Write objects into one file, in their order.

    Parameters
    ----------
    file
        A path, written as a whole or not at all, or a binary file object.
    objects
        Objects that pickle can write.
    protocol
        The protocol of the pickles.

    Raises
    ------
    SaveError
        ``file`` is a file object that takes text.

    >>> import io
    >>> from paddlelike import bundle
    >>> file = io.BytesIO()
    >>> bundle.dump_all(file, [1, "two"])
    >>> list(bundle.load_all(io.BytesIO(file.getvalue())))
    [1, 'two']
    """
    if isinstance(file, io.TextIOBase):
        raise SaveError("pickles are bytes, but the file object takes text", hint="open it with mode 'wb'")
    pieces = (pickle.dumps(one, protocol) for one in objects)
    if isinstance(file, str | os.PathLike):
        directory, name = os.path.split(os.fspath(file))
        write_all(directory or ".", {name: list(pieces)})
        return
    for piece in pieces:
        file.write(piece)


@raises_own_errors
def load_all(
    file: Target, *, classes: Classes = (), rename: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """Yield the objects of a file one by one, up to its end.

    Parameters
    ----------
    file
        A path, or a binary file object.
    classes, rename
        The same as in :func:`load`.

    Returns
    -------
    Iterator
        The objects, in the order in which they were written.

    Raises
    ------
    FormatError
        A pickle is damaged or cut, or names a class that is not in ``classes``.

    >>> import io
    >>> from paddlelike import bundle
    >>> file = io.BytesIO()
    >>> bundle.dump_all(file, [1, "two"])
    >>> list(bundle.load_all(io.BytesIO(file.getvalue())))
    [1, 'two']
    """
    with open_binary(file) as opened:
        at = opened.tell()
        size = opened.seek(0, os.SEEK_END)
        opened.seek(at)
        while opened.tell() < size:
            reader = RestrictedUnpickler(
                opened, size, classes=build_class_table(classes), rename=rename or {}
            )
            yield reader.read_object()
