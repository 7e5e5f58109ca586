"""The folder of the original files of data sets, and readers over files that several trainers share."""

from __future__ import annotations

import glob
import hashlib
import importlib
import os
import pickle
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn
from urllib.parse import unquote

from paddlelike.errors import ExtraMissingError, MissingFileError
from paddlelike.formats.state import pickles
from paddlelike.foundation.docstrings import describe_like
from paddlelike.foundation.warn import warn_user

__all__ = ["DATA_HOME", "cluster_files_reader", "download", "find", "load_pickle", "md5file", "split"]

#: Paddle's cache folder; each data set has a folder of its own in it.
DATA_HOME = str(Path("~/.cache/paddle/dataset").expanduser())

_SYNTHETIC: Final = "PADDLELIKE_SYNTHETIC_DATA"


def download(url: str, module_name: str, md5sum: str | None, save_name: str | None = None) -> str:
    """Return the path of an original file in the cache folder; nothing is downloaded.

    Parameters
    ----------
    url
        The address; its last part names the file.
    module_name
        The folder of the file in ``DATA_HOME``.
    md5sum
        The MD5 of the original, in hexadecimal digits; another file is used with a warning. None means any
        file.
    save_name
        The name of the file if it is not the last part of ``url``.

    Returns
    -------
    str
        The path.

    Raises
    ------
    MissingFileError
        The file is missing. The error says which file to put where.

    See Also
    --------
    cluster_files_reader, find, load_pickle, md5file, split

    >>> from paddlelike.dataset import common
    >>> common.download("http://host/digits.gz", "mnist", None)
    Traceback (most recent call last):
    paddlelike.errors.MissingFileError: paddle.dataset: the file digits.gz is not in ...
    """
    name = url.rpartition("/")[2] if save_name is None else save_name
    folder = Path(DATA_HOME) / module_name
    for path in (folder / name, folder / unquote(name).rpartition("/")[2]):
        if path.exists():
            _check_md5(str(path), path.stat().st_mtime_ns, md5sum)
            return str(path)
    raise MissingFileError(
        f"paddle.dataset: the file {name} is not in {folder}, and nothing is downloaded here",
        hint=f"get it from {url} and put it there; {_SYNTHETIC}=1 in the environment gives made-up data",
    )


@describe_like(download)
def find(url: str, module_name: str, md5sum: str | None, save_name: str | None = None) -> str | None:
    """Return the path of an original file in the cache folder, or None for made-up samples.

    The first None of a data set comes with a warning.

    Returns
    -------
    str or None
        The path. None if the file is missing and ``PADDLELIKE_SYNTHETIC_DATA`` is 1.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    cluster_files_reader, download, load_pickle, md5file, split

    >>> from paddlelike.dataset import common
    >>> common.find("http://host/digits.gz", "mnist", None) is None
    True
    """
    try:
        return download(url, module_name, md5sum, save_name)
    except MissingFileError:
        if os.environ.get(_SYNTHETIC, "") in ("", "0"):
            raise
        _announce(module_name)
        return None


@lru_cache
def _announce(module_name: str) -> None:
    """Warn, once per data set, that its samples are made up."""
    warn_user(f"{module_name}: these samples are made up ({_SYNTHETIC} is set, files are missing)")


@lru_cache
def _check_md5(path: str, changed: int, md5sum: str | None) -> None:
    """Warn, once per file, that the file is not the original."""
    if md5sum is not None and md5file(path) != md5sum:
        warn_user(f"{path} is not the original file, whose MD5 is {md5sum}; it is read as it is")


def md5file(fname: str) -> str:
    """Return the MD5 of a file.

    Parameters
    ----------
    fname
        The path of the file.

    Returns
    -------
    str
        32 hexadecimal digits.

    See Also
    --------
    cluster_files_reader, download, find, load_pickle, split

    >>> from paddlelike.dataset import common
    >>> open("empty", "w").close()
    >>> common.md5file("empty")
    'd41d8cd98f00b204e9800998ecf8427e'
    """
    with open(fname, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def must_mkdirs(path: str) -> None:
    """Make a folder and its parents, if it does not exist."""
    Path(path).mkdir(parents=True, exist_ok=True)


def fetch_all() -> NoReturn:
    """Raise MissingFileError: nothing is downloaded here."""
    raise MissingFileError(
        "paddle.dataset: nothing is downloaded here",
        hint="each data set says which file it lacks, and where to put it, when it is read",
    )


def load_pickle(data: bytes) -> Any:
    """Return the plain data in a pickle; nothing is executed.

    Byte strings of Python 2 become text by latin1.

    Parameters
    ----------
    data
        The bytes of the pickle.

    Returns
    -------
    object
        Containers, numbers, texts and numpy arrays.

    Raises
    ------
    FormatError
        The pickle holds anything else.

    See Also
    --------
    cluster_files_reader, download, find, md5file, split

    >>> from paddlelike.dataset import common
    >>> import pickle
    >>> common.load_pickle(pickle.dumps({"label": [3, 5]}))
    {'label': [3, 5]}
    """
    return pickles.to_plain(pickles.load(data))


def import_extra(name: str, package: str, what: str) -> ModuleType:
    """Return the module ``name``. Raises ExtraMissingError, which says what needs it, when it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ExtraMissingError(f"{what} needs the package {package}", extra="datasets") from error


def split(
    reader: Callable[[], Any],
    line_count: int,
    suffix: str = "%05d.pickle",
    dumper: Callable[[Any, Any], None] = pickle.dump,
) -> None:
    """Write the samples of a reader into several files.

    As in Fluid, the first file holds one sample more.

    Parameters
    ----------
    reader
        A function that returns an iterator over samples.
    line_count
        The number of samples of a file.
    suffix
        The name of the files: ``%`` puts the number of the file into it.
    dumper
        A function of a list of samples and of an open binary file.

    Raises
    ------
    TypeError
        ``dumper`` cannot be called.

    See Also
    --------
    cluster_files_reader, download, find, load_pickle, md5file

    >>> from paddlelike.dataset import common
    >>> common.split(lambda: iter(range(5)), 2, "part-%d")
    >>> with open("part-0", "rb") as file:
    ...     common.load_pickle(file.read())
    [0, 1, 2]
    """
    if not callable(dumper):
        raise TypeError(f"dumper must be a function of samples and file, got {dumper!r}")
    samples: list[Any] = []
    index = 0

    def write() -> None:
        with open(suffix % index, "wb") as file:
            dumper(samples, file)

    for position, sample in enumerate(reader()):
        samples.append(sample)
        if position >= line_count and position % line_count == 0:
            write()
            samples, index = [], index + 1
    if samples:
        write()


def cluster_files_reader(
    files_pattern: str,
    trainer_count: int,
    trainer_id: int,
    loader: Callable[[Any], Any] = lambda file: load_pickle(file.read()),
) -> Callable[[], Iterator[Any]]:
    """Return a reader of one trainer's share of the files: every ``trainer_count``-th one.

    Parameters
    ----------
    files_pattern
        The paths, as :func:`glob.glob` reads them; they are sorted.
    trainer_count
        The number of trainers.
    trainer_id
        The number of this trainer, from 0 on.
    loader
        A function that returns the samples of an open binary file; by default it reads pickles of plain data.

    Returns
    -------
    callable
        A function that yields the samples of this trainer.

    Raises
    ------
    TypeError
        When reading: ``loader`` cannot be called.

    See Also
    --------
    download, find, load_pickle, md5file, split

    >>> from paddlelike.dataset import common
    >>> common.split(lambda: iter(range(5)), 2, "share-%d")
    >>> list(common.cluster_files_reader("share-*", 2, 1)())
    [3, 4]
    """

    def read_share() -> Iterator[Any]:
        if not callable(loader):
            raise TypeError(f"loader must be a function of a file, got {loader!r}")
        for path in sorted(glob.glob(files_pattern))[trainer_id::trainer_count]:
            with open(path, "rb") as file:
                yield from loader(file)

    return read_share
