"""The options of a save, declared once for every function that saves."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, Self, TypedDict, TypeVar

from paddlelike.foundation.near_names import suggest_names
from paddlelike.storage.hashing import ALGORITHMS, Algorithm

__all__ = [
    "DEFAULT_OPTIONS",
    "BlockingKeywords",
    "Durability",
    "SaveKeywords",
    "SaveOptions",
    "show_options",
]

F = TypeVar("F", bound=Callable[..., object])
Durability = Literal["process", "power"]


@dataclass(frozen=True, kw_only=True)
class SaveOptions:
    """The options that every save takes besides Fluid's own arguments.

    Attributes
    ----------
    base
        Another directory that this process saved or loaded: files of variables that have not changed since
        are shared with it (reflink, else hard link, else a copy) instead of written.
    blocking
        False: return as soon as the changed values are copied in memory. The save continues in a thread; the
        next save, into any directory, waits for it.
    durability
        ``"process"``: the save survives the death of the process; ``"power"``: also a power cut.
    checksum
        The algorithm of the manifest's checksums: "xxh3_128", "sha256", "crc32", or None for no checksums.
    wait
        Seconds to wait for another process that saves into this directory; None: without limit.
    keep_generation
        Keep the replaced files beside the directory and overwrite them at the next save: twice the disk
        space for about half the time.
    by_servers
        With parameter servers: let them write their rows of large files themselves, in parallel, instead of
        sending everything to trainer 0. All processes must see the directory under this path.
    manifest
        Write ``__manifest__`` with the files. False: the directory holds Paddle's files only, and nothing
        can be verified.
    remove_stale
        Delete the files that the same program wrote in an earlier save and that are not part of this one.
        They are kept and listed in the report otherwise.

    >>> SaveOptions(wait=5.0).checksum
    'xxh3_128'
    """

    base: str | os.PathLike[str] | None = None
    blocking: bool = True
    durability: Durability = "process"
    checksum: Algorithm | None = "xxh3_128"
    wait: float | None = 60.0
    keep_generation: bool = False
    by_servers: bool = False
    manifest: bool = True
    remove_stale: bool = False

    def __post_init__(self) -> None:
        """Check the values.

        Raises
        ------
        ValueError
            An option has a value outside its choices.
        """
        if self.durability not in ("process", "power"):
            raise ValueError(f'durability is "process" or "power", not {self.durability!r}')
        if self.checksum is not None and self.checksum not in ALGORITHMS:
            raise ValueError(f"checksum is one of {list(ALGORITHMS)} or None, not {self.checksum!r}")

    @classmethod
    def from_keywords(cls, given: Mapping[str, Any], function: str) -> Self:
        """Return the options given to ``function`` as keyword arguments.

        Raises
        ------
        TypeError
            A keyword is not an option; the message names near ones.
        ValueError
            An option has a value outside its choices.
        """
        names = [field.name for field in fields(cls)]
        for name in given:
            if name not in names:
                near = suggest_names(name, names) or f"the options are {', '.join(names)}"
                raise TypeError(f"{function}() got an unexpected keyword argument {name!r}; {near}")
        return cls(**given)


class BlockingKeywords(TypedDict, total=False):
    """The types of the options besides ``blocking``, on which the type of what a save returns depends."""

    base: str | os.PathLike[str] | None
    durability: Durability
    checksum: Algorithm | None
    wait: float | None
    keep_generation: bool
    by_servers: bool
    manifest: bool
    remove_stale: bool


class SaveKeywords(BlockingKeywords, total=False):
    """The types of the fields of :class:`SaveOptions`, for the signatures that take them as keywords."""

    blocking: bool


def show_options(function: F) -> F:
    """Replace ``**options`` in the signature of a function by the options, with their defaults, for ``help``.

    >>> @show_options
    ... def save(path: str, **options: bool) -> None: ...
    >>> list(inspect.signature(save).parameters)[:4]
    ['path', 'base', 'blocking', 'durability']
    """
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    options = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
        )
        for field in fields(SaveOptions)
    ]
    function.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    return function


DEFAULT_OPTIONS: Final = SaveOptions()
