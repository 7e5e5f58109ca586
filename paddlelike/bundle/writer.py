"""Writing a bundle: arrays as NPY members, the rest as one pickle that refers to them."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any, Final

import numpy as np
from numpy.lib import format as npy

from paddlelike.bundle.names import PICKLE, MemberNames
from paddlelike.errors import SaveError
from paddlelike.storage.local.transaction import write_all
from paddlelike.storage.problems import raises_own_errors

PROTOCOL: Final = 2  # every Python since 2.3 reads it; arrays are outside the pickle, so it costs no size
_LARGE: Final = 1 << 26
_SAMPLED: Final = 1 << 16
_DATE: Final = (1980, 1, 1, 0, 0, 0)  # equal values give equal bytes

Array = np.ndarray[Any, Any]
Target = str | os.PathLike[str] | IO[bytes]
PersistentID = Callable[[zipfile.ZipFile], Callable[[Any], str | None]]


@raises_own_errors
def dump(
    obj: object,
    file_handler: Target,
    protocol: int = PROTOCOL,
    persistent_id: PersistentID | None = None,
    *,
    allow_unnamed: bool = True,
    allow_duplicates: bool = True,
) -> None:
    """Write an object as a bundle.

    Parameters
    ----------
    obj
        Anything that pickle takes. Every ``numpy.ndarray`` in it becomes a member, named by the variable,
        dict key or attribute that holds it; an array that occurs twice is stored once.
    file_handler
        A path, or a binary file object that can ``tell``. A path is written as a whole or not at all.
    protocol
        The protocol of the pickle. A higher one saves little space, and old versions of Python cannot read
        it.
    persistent_id
        A function that receives the ZipFile and returns the ``persistent_id`` of a pickler. It replaces the
        naming above, as in ``theano.misc.pkl_utils``.
    allow_unnamed, allow_duplicates
        Whether arrays may lack a name, or share one. If False, such an array is refused (SaveError).

    Raises
    ------
    SaveError
        An array holds objects, the file object takes text, or a name is not allowed. An existing file is
        unchanged.

    >>> import io
    >>> import numpy as np
    >>> from paddlelike import bundle
    >>> file = io.BytesIO()
    >>> bundle.dump({"w": np.ones(3), "epoch": 7}, file)
    >>> np.load(io.BytesIO(file.getvalue()))["w"]
    array([1., 1., 1.])
    """
    names = MemberNames(allow_unnamed=allow_unnamed, allow_duplicates=allow_duplicates)
    if isinstance(file_handler, io.TextIOBase):
        raise SaveError("a bundle is bytes, but the file object takes text", hint="open it with mode 'wb'")
    if not isinstance(file_handler, str | os.PathLike):
        _write(obj, file_handler, protocol, persistent_id, names)
        return
    buffer = io.BytesIO()
    _write(obj, buffer, protocol, persistent_id, names)
    directory, name = os.path.split(os.fspath(file_handler))
    write_all(directory or ".", {name: [buffer.getvalue()]})


def _write(
    obj: object, file: IO[bytes], protocol: int, persistent_id: PersistentID | None, names: MemberNames
) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
        find_id = _NamedArrays(archive, names) if persistent_id is None else persistent_id(archive)
        text = io.BytesIO()
        _Pickler(text, protocol, find_id).dump(obj)
        archive.writestr(_member(PICKLE), _name_as_before(text.getvalue()))


def _name_as_before(data: bytes) -> bytes:
    """Return a pickle with the module names of numpy 1, which Theano needs; both versions can be read."""
    at, parts = 0, []
    for opcode, argument, position in pickletools.genops(data):
        if opcode.name == "GLOBAL" and str(argument).startswith("numpy._core.") and position is not None:
            parts += [data[at : position + 1], b"numpy.core."]
            at = position + 1 + len(b"numpy._core.")
    return b"".join([*parts, data[at:]])


class _Pickler(pickle.Pickler):
    """A pickler that keeps some objects outside of the pickle, as a function decides."""

    def __init__(self, file: IO[bytes], protocol: int, find_id: Callable[[Any], str | None]) -> None:
        super().__init__(file, protocol)
        self._find_id = find_id

    def persistent_id(self, obj: object) -> str | None:
        """Return the id of an object that is kept outside of the pickle, or None for other objects."""
        return self._find_id(obj)


class _NamedArrays:
    """Puts arrays into the archive and returns the ids ``ndarray.NAME`` for them."""

    def __init__(self, archive: zipfile.ZipFile, names: MemberNames) -> None:
        self._archive = archive
        self._names = names
        self._members: dict[int, tuple[str, Array]] = {}  # keeps the arrays, so that an id stays theirs

    def __call__(self, obj: object) -> str | None:
        if type(obj) is not np.ndarray:
            self._names.see(obj)
            return None
        if id(obj) not in self._members:
            if obj.dtype.hasobject:
                raise SaveError(
                    f"an array of shape {obj.shape} holds objects: NPY files keep those as pickles, which "
                    "readers refuse",
                    hint="convert it to a list, or to an array of numbers or texts",
                )
            name = self._names.take(obj)
            info = _member(name, stored=_shrinks_too_well(obj))
            with self._archive.open(info, "w", force_zip64=obj.nbytes >= 1 << 31) as member:
                npy.write_array(member, obj, allow_pickle=False)
            self._members[id(obj)] = (name, obj)
        return "ndarray." + self._members[id(obj)][0]


def _shrinks_too_well(array: Array) -> bool:
    """Return whether a large array compresses so well that readers would suspect a zip bomb."""
    if array.nbytes < _LARGE:
        return False
    sample = np.ascontiguousarray(array.flat[:: max(array.size // _SAMPLED, 1)]).tobytes()
    return len(zlib.compress(sample, 1)) * 16 < len(sample)


def _member(name: str, *, stored: bool = False) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
    info.external_attr = 0o600 << 16
    return info
