"""Files that are not written again: compare a file with the record of its save, and share it."""

from __future__ import annotations

import os
import shutil

from paddlelike.errors import SaveError
from paddlelike.storage import hashing
from paddlelike.storage.local.filesystem.file import File
from paddlelike.storage.local.filesystem.system import reflink
from paddlelike.storage.manifest import Record, make_stamp
from paddlelike.storage.problems import explain, is_system_error
from paddlelike.storage.verification import is_still


def recognize_copy(path: str, record: Record) -> Record | None:
    """Return the record of a copy of a saved file, with the stamp of the copy, or None for another file.

    Raises
    ------
    SaveError
        The file is a link of a chain, which needs its record, and the system refuses to read it.
    """
    if record.algorithm is None:
        return None
    try:
        facts = os.lstat(path)
        if facts.st_size != record.size or os.path.islink(path):
            return None
        with File(path) as file:
            if hashing.hash_file(file, record.algorithm).text != record.checksum:
                return None
    except OSError as error:  # also a StorageError: an unknown file
        if "link" in record.facts and is_system_error(error):
            raise explain(SaveError, f"{path} cannot be read, nothing was saved", error) from error
        return None
    return record._replace(stamp=make_stamp(facts))


def share_file(source: str, target: str, record: Record, *, clone: bool) -> Record:
    """Make ``target`` the same file as ``source``, by the cheapest means of the file system.

    ``clone=False`` says that the file system has no reflinks. For a hard link, return ``record`` itself.

    Raises
    ------
    SaveError
        ``source`` was changed since its save.
    OSError
        The source cannot be read, or the target cannot be written.
    """
    facts = os.stat(source)
    if not (clone and reflink(source, target)):
        try:
            if facts.st_uid != os.geteuid():
                raise PermissionError
            os.link(source, target, follow_symlinks=False)
        except OSError:  # another file system, or one without hard links
            shutil.copyfile(source, target)
    facts = os.lstat(target)
    if record.is_still(facts):
        return record
    if not is_still(source, record):  # it may have been replaced before or after the copy
        os.unlink(target)
        raise SaveError(f"{source} was changed by somebody else during the save", hint="save again")
    return record._replace(stamp=make_stamp(facts))
