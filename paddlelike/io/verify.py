"""Comparison of files with their manifest: in a whole directory, and during loads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Final, NamedTuple

from paddlelike.errors import FormatError, LoadError, MissingFileError, StorageError
from paddlelike.foundation.warn import warn_user
from paddlelike.io import asynchronous
from paddlelike.io.deltas.chain import parse_path
from paddlelike.storage.local.filesystem.owners import ForeignError
from paddlelike.storage.local.manifest_file import manifest_path
from paddlelike.storage.local.present_manifest import IncompleteError
from paddlelike.storage.location import LocalDirectory, Location, locate
from paddlelike.storage.manifest import Record
from paddlelike.storage.names import relative_path
from paddlelike.storage.problems import is_system_error
from paddlelike.storage.verification import Verification, describes

__all__ = [
    "NO_COMPARISON",
    "Comparison",
    "Verification",
    "check_problems",
    "choose_comparison",
    "count_unlike",
    "get_record",
    "get_records",
    "is_of_another_save",
    "make_refusal",
    "verify",
]


def verify(dirname: str | os.PathLike[str]) -> Verification:
    """Compare every file of the saved directory ``dirname`` with its manifest, ``DIR/__manifest__``.

    The result is true if all files match; else it names every file that is missing, cut, changed or extra. A
    link in place of a file counts as changed, wherever it leads. A directory without a manifest, as Paddle
    saves it, cannot be verified: the result is false and says so.

    Parameters
    ----------
    dirname
        The directory to compare, or its URL.

    Returns
    -------
    Verification
        True when every file has the saved bytes; otherwise it lists the other files.

    >>> import tempfile
    >>> from paddlelike.storage.local.transaction import write_all
    >>> home = tempfile.mkdtemp()
    >>> write_all(f"{home}/model", {"fc_0.w_0": [b"..."]})
    >>> result = verify(f"{home}/model")
    >>> bool(result), result.extra
    (False, ('fc_0.w_0',))
    """
    where = locate(dirname)
    while True:
        asynchronous.wait_for_pending()
        stamp, found = where.stamp(), where.verify()
        # S10, unless it was saved again meanwhile
        if found or where.stamp() == stamp:
            return found


class Comparison(NamedTuple):
    """The records for comparing the files of a load.

    Attributes
    ----------
    records
        The manifest's records by file name; None to compare no file.
    complete
        Whether a file that cannot be compared counts as bad.
    notes
        Lines for the report: why a manifest is not used.
    """

    records: Mapping[str, Record] | None = None
    complete: bool = False
    notes: tuple[str, ...] = ()

    def covers(self, names: Iterable[str]) -> bool:
        """Return whether all of some files are compared."""
        if self.records is None:
            return False
        compared = {name for name, record in self.list_values().items() if record.checksum is not None}
        return compared.issuperset(names)

    def list_values(self) -> dict[str, Record]:
        """Return the records by the names of values; for a chain of deltas, the record of the whole value."""
        found = {}
        for name, record in (self.records or {}).items():
            link = parse_path(name)
            if link is None:
                found[name] = record
            elif not link[2]:
                found[link[0]] = record
        return found


NO_COMPARISON: Final = Comparison()


def choose_comparison(
    where: Location, filename: str | None, *, verify: bool | None, lazy: bool
) -> Comparison:
    """Return the records that a load from a directory, or from one file in it, compares its files with.

    With ``verify=None`` a load compares files if there is a manifest; a ``lazy`` load compares nothing,
    because it reads nothing.

    Raises
    ------
    LoadError
        ``verify`` is true, and there is no manifest that can be used.
    StorageError
        The manifest belongs to another user, who cannot have written the files.
    MissingFileError
        The manifest continues one that is missing, and so perhaps are files that it describes.
    """
    if verify is False or (verify is None and lazy):
        return NO_COMPARISON
    if verify:
        if filename is None:
            return Comparison(get_records(where), complete=True)
        record = get_record(where, filename, needed=True)
        return Comparison({} if record is None else {filename: record}, complete=True)
    try:
        if filename is not None:
            record = get_record(where, filename, needed=True) if _read(where) is not None else None
            return Comparison(None if record is None else {filename: record})
        return Comparison(_read(where))
    except (ForeignError, MissingFileError):
        raise
    except (FormatError, LoadError, StorageError) as error:
        why = error.message.removeprefix("nothing was loaded: ")
        return Comparison(notes=(f"the files were not verified: {why}",))


def is_of_another_save(where: Location, comparison: Comparison, bad: Sequence[str]) -> bool:
    """Return whether the files are from a newer save than the manifest; then the load uses the files."""
    if comparison.records is None or comparison.complete or not isinstance(where, LocalDirectory):
        return False
    return not describes(where.path, comparison.records, bad)


def check_problems(
    where: Location | None, comparison: Comparison, bad: Sequence[str], *, shown: str, count: int
) -> tuple[str, ...]:
    """Warn, and return a line for the report, if files differ from a manifest of another save.

    Warn also of a manifest that cannot be used.

    ``bad`` is a line for each file that differs, ``shown`` the source as errors name it, and ``count`` the
    number of compared files.

    Raises
    ------
    LoadError
        Files differ from their records.
    """
    for note in comparison.notes:
        warn_user(f"{shown}: {note}")
    if not bad:
        return ()
    if where is None or not is_of_another_save(where, comparison, bad):
        raise make_refusal(shown, bad, count)
    note = f"{len(bad)} files differ from the manifest, which belongs to another save: not verified"
    warn_user(f"{shown}: {note}")
    return (note,)


def get_records(directory: Location) -> Mapping[str, Record]:
    """Return the records in the manifest of a directory, by file name.

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
            hint="load without verify=True, or save again to have a manifest",
        )
    return found


def get_record(directory: Location, filename: str, *, needed: bool) -> Record | None:
    """Return the record of one file in the manifest of its directory, or None without one.

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
            found = get_records(directory)  # raises the error
    except (LoadError, StorageError) as error:
        if needed or is_system_error(error):
            raise
        found = None
    name = relative_path(filename)
    return None if found is None else found.get(name, found.get(os.path.basename(name)))


def count_unlike(bad: Sized) -> str:
    """Describe how many files differ from their records."""
    return "1 file is not what was saved" if len(bad) == 1 else f"{len(bad)} files are not what was saved"


def make_refusal(where: str, bad: Sequence[str], count: int) -> LoadError:
    """Return the error for files that differ from what was saved; it names every one."""
    hint = (
        "they were damaged, or replaced by another program after the save; verify=False loads them as they "
        "are, fluid.io.verify compares all files of the directory"
    )
    if len(bad) > 1 and len(bad) >= count:
        hint = (
            f"no file is as it was saved: {manifest_path(where)} probably belongs to another save; "
            "verify=False loads the files as they are"
        )
    lines = "".join(f"\n  {problem}" for problem in sorted(bad))
    return LoadError(f"nothing was loaded from {where}: {count_unlike(bad)}{lines}", hint=hint)


def _read(directory: Location) -> Mapping[str, Record] | None:
    if not isinstance(directory, LocalDirectory):
        found = directory.manifest()
        return None if found is None else found.files
    try:
        found = directory.read_manifest()
    except FormatError as error:
        kind = MissingFileError if isinstance(error, IncompleteError) else LoadError
        raise kind(
            f"nothing was loaded: {manifest_path(directory.base)} cannot be trusted: {error.message}",
            hint=error.hint,
        ) from error
    return None if found is None else found.files
