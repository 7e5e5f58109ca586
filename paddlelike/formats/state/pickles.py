"""A reader for the part of pickle that holds plain data and numpy arrays. It executes nothing.

Python's own Unpickler, even with a restricted ``find_class``, allocates what the file claims (a memo index of
four bytes makes a table of gigabytes) and passes crafted states to numpy's constructors. This reader is the
standard library's Python unpickler with other steps: a global is looked up in a table of plain functions, and
an array is dtype, shape and a view of its bytes until it is read.

The opcodes of protocols 0 to 5 are described in the standard library's ``pickletools``. Byte
strings of Python 2 become str by latin1, as Paddle reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pickle import UnpicklingError
from types import MappingProxyType
from typing import Any, Final

from paddlelike.errors import FormatError
from paddlelike.formats.sources import Buffer
from paddlelike.formats.state.machine import Machine, Reference
from paddlelike.formats.state.pickled import CONSTRUCTORS, Constructors, Latin1, PickledArray, Text

_DAMAGE: Final = (
    UnpicklingError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)


def load(buffer: Buffer, *, constructors: Constructors | None = None, foreign: bool = False) -> object:
    """Return the object that ``buffer`` holds, arrays as ``PickledArray`` (see :func:`to_plain`).

    ``constructors`` are more globals that may be called, by (module, name). With ``foreign`` an object of an
    unknown class is a ``Foreign`` with its parts.

    Raises
    ------
    FormatError
        For damaged bytes; for every global that is not in the table, or, with ``foreign``, for globals
        of modules that run code: it names the global.

    >>> import pickle
    >>> load(pickle.dumps({"a": [1, 2.5], "b": (None, True)}))
    {'a': [1, 2.5], 'b': (None, True)}
    """
    machine = Machine(buffer, {**CONSTRUCTORS, **(constructors or {})}, foreign=foreign)
    try:
        return machine.run()
    except FormatError as error:
        raise FormatError(f"offset {machine.at}: {error.message}", hint=error.hint) from None
    except _DAMAGE as error:
        raise FormatError(f"offset {machine.at}: the pickle is damaged ({error!r:.200})") from error


def load_all(
    buffer: Buffer,
    references: Mapping[tuple[str, str], Reference] = MappingProxyType({}),
    *,
    constructors: Constructors | None = None,
    persistent: Callable[[Any], Any] | None = None,
    count: int | None = None,
    foreign: bool = False,
) -> tuple[list[Any], int]:
    """Return the objects of several consecutive pickles, and the offset after the last.

    Parameters
    ----------
    references
        Globals, by (module, name), that the pickles may name but not call.
    constructors
        More globals that may be called, by (module, name).
    persistent
        Returns the object that a persistent id stands for. None refuses such ids.
    count
        The number of pickles to read. None means all up to the end.
    foreign
        Take objects of unknown classes as :func:`load` does, and leave arrays and texts in the file.

    Raises
    ------
    FormatError
        For damaged bytes, and for every other global.

    >>> import pickle
    >>> load_all(pickle.dumps((1, "a")) + pickle.dumps(None, protocol=0))[0]
    [(1, 'a'), None]
    """
    values: list[Any] = []
    known = {**CONSTRUCTORS, **(constructors or {})}
    machine = Machine(buffer, known, references, persistent, foreign=foreign)
    try:
        while len(values) < count if count is not None else not machine.is_at_end():
            values.append(machine.run())
    except FormatError as error:
        raise FormatError(f"offset {machine.at}: {error.message}", hint=error.hint) from None
    except _DAMAGE as error:
        raise FormatError(f"offset {machine.at}: the pickle is damaged ({error!r:.200})") from error
    return values if foreign else [to_plain(value) for value in values], machine.at


def to_plain(value: object) -> object:
    """Return ``value`` with every array and long text read; dicts and lists are changed in place.

    Raises
    ------
    FormatError
        An array or a text is damaged, or the value is nested too deeply.
    """
    try:
        return _convert(value, {})
    except (RecursionError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"the pickle is damaged ({error!r:.200})") from error


def _convert(value: object, done: dict[int, Any]) -> object:
    known = id(value)
    if known in done:
        return done[known]
    done[known] = value  # a list may hold itself
    if isinstance(value, PickledArray):
        done[known] = value.read()
    elif isinstance(value, Text):
        done[known] = str(value)
    elif isinstance(value, Latin1 | memoryview):
        done[known] = bytes(value)
    elif isinstance(value, dict):
        value.update([(key, _convert(item, done)) for key, item in value.items()])
    elif isinstance(value, list):
        value[:] = [_convert(item, done) for item in value]
    elif isinstance(value, tuple):
        done[known] = tuple([_convert(item, done) for item in value])
    return done[known]
