"""Whether saved files are still what was saved: a directory as a whole, and loads that compare on the way."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from paddlelike.errors import FormatError, LoadError, StorageError
from paddlelike.io.save import asynchronous
from paddlelike.storage.local.manifest_file import manifest_path, read_manifest
from paddlelike.storage.location import LocalDirectory, Location, locate
from paddlelike.storage.manifest import Record
from paddlelike.storage.names import relative_path
from paddlelike.storage.verification import Verification

__all__ = ["Verification", "record_of", "records_of", "refusal", "verify"]


def verify(dirname: str | os.PathLike[str]) -> Verification:
    """Compare every file of a saved directory with its manifest, ``DIR/__manifest__``.

    The result is true when all is well; else it names every file that is missing, cut, changed or extra; a
    link is not the file that was saved, wherever it leads. A directory without a manifest, as Paddle saves
    it, cannot be verified: the result is false and says so.

    >>> import tempfile
    >>> from paddlelike.storage.local.transaction import write_all
    >>> home = tempfile.mkdtemp()
    >>> write_all(f"{home}/model", {"fc_0.w_0": [b"..."]})
    >>> result = verify(f"{home}/model")
    >>> bool(result), result.extra
    (False, ('fc_0.w_0',))
    """
    asynchronous.wait_for_pending()
    where = locate(dirname)
    return where.verify()


def records_of(directory: Location) -> Mapping[str, Record]:
    """What the manifest of a directory says of its files.

    Raises
    ------
    LoadError
        There is none, or it cannot be trusted.
    """
    found = _read(directory)
    path = directory.path
    if found is None:
        raise LoadError(
            f"nothing was loaded from {path}: it has no manifest ({manifest_path(path)}) to compare its "
            "files with",
            hint="load without verify=, and save again to have a manifest",
        )
    return found


def record_of(directory: Location, filename: str, *, needed: bool) -> Record | None:
    """What the manifest of a directory, or of that one file in it, says of the file.

    Raises
    ------
    LoadError
        There is no manifest, or it cannot be trusted, though it is ``needed``.
    """
    try:
        found = _read(directory)
        if found is None and isinstance(directory, LocalDirectory):
            found = _read(LocalDirectory(os.path.join(directory.path, filename)))
        if found is None and needed:
            found = records_of(directory)  # which tells that there is none
    except (LoadError, StorageError):
        if needed:
            raise
        found = None
    name = relative_path(filename)
    return None if found is None else found.get(name, found.get(os.path.basename(name)))


def refusal(where: str, bad: Sequence[str], count: int) -> LoadError:
    """The error for files that are not what was saved; it names every one."""
    hint = "they were damaged or replaced after the save; fluid.io.verify tells of all files"
    if len(bad) > 1 and len(bad) >= count:
        hint = (
            f"not one file is as it was saved: {manifest_path(where)} is most likely of another save; "
            "load without verify= if the files are right"
        )
    lines = "".join(f"\n  {problem}" for problem in sorted(bad))
    return LoadError(
        f"nothing was loaded from {where}: {len(bad)} files are not what was saved{lines}", hint=hint
    )


def _read(directory: Location) -> Mapping[str, Record] | None:
    if not isinstance(directory, LocalDirectory):
        found = directory.manifest()
        return None if found is None else found.files
    try:
        found = read_manifest(directory.path)
    except FormatError as error:
        raise LoadError(
            f"nothing was loaded: {manifest_path(directory.path)} cannot be trusted: {error.message}",
            hint=error.hint,
        ) from error
    return None if found is None else found.files
