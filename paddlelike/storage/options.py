"""The options of a save, declared once for every function that saves."""

from __future__ import annotations

import os
from typing import Final, Literal, TypedDict

from paddlelike.foundation.keyword_options import KeywordOptions
from paddlelike.lazy import dataclass
from paddlelike.storage.hashing import ALGORITHMS, Algorithm

Durability = Literal["atomic", "process", "power"]


@dataclass(frozen=True, kw_only=True)
class SaveOptions(KeywordOptions):
    """The options that every save takes besides Fluid's own arguments.

    Attributes
    ----------
    base
        Another directory that this process saved or loaded: files of variables that have not changed since
        are shared with it (reflink, else hard link, else a copy) instead of written.
    blocking
        If False, return as soon as the changed values are copied in memory. The save continues in a thread;
        the next save, into any directory, waits for it.
    durability
        With ``"atomic"``, a power cut leaves all files of this save or all of the previous one. With
        ``"process"``, only a killed process does. With ``"power"``, the files are on the disk when the save
        returns.
    checksum
        The algorithm of the manifest's checksums: "xxh3_128", "sha256", "crc32", or None for no checksums.
    wait
        Seconds to wait for another process that saves into this directory; None for no limit.
    keep_generation
        Keep the replaced files beside the directory and overwrite them at the next save: twice the disk
        space for about half the time.
    by_servers
        With parameter servers: let them write their rows of large files themselves, in parallel, instead of
        sending everything to trainer 0. All processes must see the directory under this path.
    manifest
        Write ``__manifest__`` with the files. If False, the directory holds Paddle's files only, and nothing
        can be verified. ``PADDLELIKE_MANIFEST=0`` in the environment makes that the default, for scripts that
        count the files.
    remove_stale
        Delete the files that the same program wrote in an earlier save and that are not part of this one.
        They are kept and listed in the report otherwise.
    delta
        Write only the rows of a large table that changed since the previous save, as a link of a chain; see
        the README of ``paddlelike/io``. ``"base"`` also joins the links since the last base into one, which
        keeps the chain short. If the chain cannot be read, a new one begins.

    >>> SaveOptions(wait=5.0).checksum
    'xxh3_128'
    """

    base: str | os.PathLike[str] | None = None
    blocking: bool = True
    durability: Durability = "atomic"
    checksum: Algorithm | None = "xxh3_128"
    wait: float | None = 60.0
    keep_generation: bool = False
    by_servers: bool = False
    manifest: bool = os.environ.get("PADDLELIKE_MANIFEST") != "0"
    remove_stale: bool = False
    delta: bool | Literal["base"] = False

    def __post_init__(self) -> None:
        """Check the values.

        Raises
        ------
        ValueError
            An option has a value outside its choices.
        """
        if self.durability not in ("atomic", "process", "power"):
            raise ValueError(f'durability is "atomic", "process" or "power", not {self.durability!r}')
        if self.checksum is not None and self.checksum not in ALGORITHMS:
            raise ValueError(f"checksum must be one of {list(ALGORITHMS)} or None, not {self.checksum!r}")
        if self.delta not in (False, True, "base"):
            raise ValueError(f'delta is False, True or "base", not {self.delta!r}')
        if self.delta and (not self.manifest or self.checksum is None):
            raise ValueError(
                "delta= needs the manifest and its checksums, which hold a chain together: "
                "leave out manifest=False and checksum=None"
            )


class BlockingKeywords(TypedDict, total=False):
    """The types of the options except ``blocking``, which determines the type of a save's result."""

    base: str | os.PathLike[str] | None
    durability: Durability
    checksum: Algorithm | None
    wait: float | None
    keep_generation: bool
    by_servers: bool
    manifest: bool
    remove_stale: bool
    delta: bool | Literal["base"]


class SaveKeywords(BlockingKeywords, total=False):
    """The types of the fields of :class:`SaveOptions`, for functions that take them as keywords."""

    blocking: bool


DEFAULT_OPTIONS: Final = SaveOptions()
