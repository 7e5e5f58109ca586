"""Read bundles, and plain pickles of the same objects, without executing code from the file."""

from __future__ import annotations

import errno
import io
import math
import os
import pickle
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import IO, Any, Final

import numpy as np

from paddlelike.bundle.names import PICKLE
from paddlelike.bundle.theano import Placeholder, make_stand_in
from paddlelike.bundle.unpickler import Classes, RestrictedUnpickler, build_class_table
from paddlelike.errors import FormatError, LoadError, MissingFileError, StorageError
from paddlelike.formats import npy
from paddlelike.formats.explain import HEAD, explain as explain_file
from paddlelike.formats.zips import check_sizes
from paddlelike.foundation.warn import warn_user
from paddlelike.storage.local.filesystem.opening import open_regular
from paddlelike.storage.location import find_near_file
from paddlelike.storage.problems import explain, raises_own_errors

Array = np.ndarray[Any, Any]
Source = str | os.PathLike[str] | IO[bytes]
PersistentLoad = Callable[[zipfile.ZipFile], Callable[[str], Any]]

_PREFIX: Final = 4096  # a GPU array begins with a small pickle


@raises_own_errors
def load(
    f: Source,
    persistent_load: PersistentLoad | None = None,
    *,
    classes: Classes = (),
    rename: Mapping[str, str] | None = None,
    trusted: bool = False,
) -> object:
    """Load the object of a bundle, or of a plain pickle.

    Shared variables of Theano come back as :class:`~paddlelike.bundle.SharedVariable`.

    Parameters
    ----------
    f
        A path, or a binary file object.
    persistent_load
        A function that receives the ZipFile and returns another function, which returns the array of an id;
        see ``theano.misc.pkl_utils``.
    classes
        Classes and functions of the caller that the pickle may use: a list, compared by module and name, or a
        mapping from the name in the file (``"old_module.Net"``). Apart from them, only classes of this
        package are used: programs, scopes, tensors, optimizers, readers.
    rename
        New names of attributes by their old names, ``{"W": "weights"}``. Only states that are dicts are
        changed.
    trusted
        Let an Executor run operators of a loaded program that reach files, other processes or Python
        functions, and let datasets run their shell commands. Do not set it for a file from a stranger.

    Returns
    -------
    object
        The object that was dumped, with the same types; its arrays have the same shapes and dtypes.

    Raises
    ------
    FormatError
        The file is damaged, is neither a bundle nor a pickle, or names a class that is not in ``classes``.
    MissingFileError
        There is no such file, or the files of a dataset are gone.

    >>> import io
    >>> from paddlelike import bundle
    >>> file = io.BytesIO()
    >>> bundle.dump({"epoch": 7}, file)
    >>> bundle.load(io.BytesIO(file.getvalue()))
    {'epoch': 7}
    """
    with open_binary(f) as file:
        if not _is_archive(file):
            at, head = file.tell(), file.read(HEAD)
            file.seek(at)
            try:
                return _unpickle(file, classes, rename, None, trusted=trusted)
            except FormatError as error:
                known = explain_file(head, _measure(file) - at) if head[:1] != pickle.PROTO else None
                if known is None:
                    raise
                why = (
                    "" if error.__cause__ is not None else f": {error.message}"
                )  # damage is what the hint explains
                raise FormatError(f"this is not a pickle{why}", hint=known) from error
        with _open_archive(file) as archive:
            members = _Members(archive)
            find = members.find_by_id if persistent_load is None else persistent_load(archive)
            return _unpickle(io.BytesIO(members.pickle()), classes, rename, find, trusted=trusted)


def arrays(f: Source) -> dict[str, Array]:
    """Return the arrays of a bundle by name; the pickle is not opened, so its classes need not exist.

    Arrays of objects and of records are left out, with a warning that names them.

    Parameters
    ----------
    f
        The path of a bundle, or an open file.

    Returns
    -------
    dict
        The arrays by name, with their shapes and dtypes.

    Raises
    ------
    FormatError
        The file is not a bundle, or an array in it is damaged.

    >>> import io
    >>> import numpy as np
    >>> from paddlelike import bundle
    >>> file = io.BytesIO()
    >>> bundle.dump({"w": np.ones(3)}, file)
    >>> bundle.arrays(io.BytesIO(file.getvalue()))
    {'w': array([1., 1., 1.])}
    """
    with open_binary(f) as file:
        if not _is_archive(file):
            raise FormatError("this is not a bundle: a bundle is a ZIP file of arrays and a pickle")
        with _open_archive(file) as archive:
            return _Members(archive).all_arrays()


@contextmanager
def open_binary(f: Source) -> Iterator[IO[bytes]]:
    """Yield a binary file object for a path or a file object. Raises LoadError for a text file object, and
    StorageError for a pipe, which would be waited for.
    """
    if isinstance(f, str | os.PathLike):
        if not FilePath(f).exists():
            raise MissingFileError(f"no such file: {os.fspath(f)}", hint=find_near_file(f))
        opened, _ = open_regular(os.fspath(f))
        with opened as (fd, _), open(fd, "rb", closefd=False) as file:
            yield file
        return
    if isinstance(f, io.TextIOBase):
        raise LoadError("a bundle is bytes, but the file object returns text", hint="open it with mode 'rb'")
    yield f


def _is_archive(file: IO[bytes]) -> bool:
    """Return whether a file is a ZIP file. Its position is unchanged."""
    at = file.tell()
    found = zipfile.is_zipfile(file)
    file.seek(at)
    return found


def _unpickle(
    file: IO[bytes],
    classes: Classes,
    rename: Mapping[str, str] | None,
    find_array: Callable[[str], Any] | None,
    *,
    trusted: bool,
) -> object:
    unpickler = RestrictedUnpickler(
        file,
        _measure(file),
        classes=build_class_table(classes),
        rename=rename or {},
        find_array=find_array,
        trusted=trusted,
    )
    return unpickler.read_object()


def _measure(file: IO[bytes]) -> int:
    at = file.tell()
    end = file.seek(0, os.SEEK_END)
    file.seek(at)
    return end


@contextmanager
def _open_archive(file: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Yield the archive. Raises FormatError when it is damaged."""
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, EOFError) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):  # EINVAL: a cut archive
            raise explain(StorageError, "the ZIP file cannot be read", error) from error
        raise FormatError(f"the ZIP file is damaged ({error})") from error
    with archive:
        check_sizes(archive.infolist(), _measure(file))
        yield archive


class _Members:
    """The members of an archive: arrays, and the pickle (the last member of that name)."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._arrays: dict[int, Array | Placeholder] = {}
        pickles = [info for info in archive.infolist() if info.filename == PICKLE]
        self._pickle = pickles[-1] if pickles else None
        self._infos: dict[str, list[zipfile.ZipInfo]] = {}
        for info in archive.infolist():
            if info is not self._pickle:
                self._infos.setdefault(info.filename, []).append(info)

    def pickle(self) -> bytes:
        """Return the bytes of the pickle. Raises FormatError when there is none."""
        if self._pickle is None:
            names = ", ".join(list(self._infos)[:5])
            raise FormatError(
                f"this ZIP file has no member {PICKLE!r}, it has {names or 'none'}",
                hint="numpy.load opens a file of arrays alone; paddlelike.bundle.arrays does too",
            )
        return self._read(self._pickle)

    def find_by_id(self, identifier: str) -> Array | Placeholder:
        """Return the array of an id ``ndarray.NAME``; a name may contain dots.

        Raises FormatError when the file has no such member.
        """
        kind, _, name = identifier.partition(".")
        infos = self._infos.get(name, [])
        if kind not in ("ndarray", "gpuarray") or not infos:
            raise FormatError(f"the pickle refers to {identifier!r:.80}, which is not a member of the file")
        if len(infos) > 1:
            warn_user(
                f"{len(infos)} members are called {name!r}, a fault of Theano's numbering; the file does not "
                "say which is meant; the last is taken, and paddlelike.bundle.arrays(file) returns all"
            )
        return self._array(infos[-1])

    def all_arrays(self) -> dict[str, Array]:
        """Return every array; the second of one name gets `` (2)``."""
        found: dict[str, Array] = {}
        left_out = []
        for name, infos in self._infos.items():
            for index, info in enumerate(infos):
                array = self._array(info)
                if isinstance(array, Placeholder):
                    left_out.append(info.filename)
                else:
                    found[name if index == 0 else f"{name} ({index + 1})"] = array
        if left_out:
            warn_user(
                f"left out: {', '.join(left_out[:5])}: arrays of objects or records; objects are pickles, "
                "which are not opened"
            )
        return found

    def _array(self, info: zipfile.ZipInfo) -> Array | Placeholder:
        known = self._arrays.get(info.header_offset)
        if known is None:
            known = self._arrays[info.header_offset] = _decode(self._read(info), info.filename)
        return known

    def _read(self, info: zipfile.ZipInfo) -> bytes:
        try:
            return self._archive.read(info)
        except Exception as error:  # zlib's, struct's and zipfile's own
            raise FormatError(f"member {info.filename!r} is damaged ({error!r})") from error


def _decode(data: bytes, name: str) -> Array | Placeholder:
    """Return the array of a member, which is an NPY file; for arrays of a GPU, a small pickle comes
    before it.

    Arrays of objects or records become placeholders.
    """
    at = data.find(npy.MAGIC, 0, _PREFIX)
    if at < 0:
        raise FormatError(f"member {name!r} is not an NPY file")
    if npy.find_kind(data[at : at + npy.LARGEST_HEADER]) in ("O", "[", "V"):
        return make_stand_in("numpy.ndarray of objects or records")()
    dtype, shape, fortran, length = npy.parse_header(data[at : at + npy.LARGEST_HEADER], f"member {name}")
    raw = memoryview(data)[at + length :]
    if len(raw) != math.prod(shape) * dtype.itemsize:
        raise FormatError(f"member {name!r}: {dtype} {shape} does not take {len(raw)} bytes")
    return np.frombuffer(raw, dtype).reshape(shape, order="F" if fortran else "C").copy(order="A")
