"""WMT 2014: English and French sentences (http://www.statmt.org/wmt14/, a part of them in a tar file).

A sample is three lists of ids: the source between "<s>" and "<e>", the target after "<s>", the target before
"<e>".
"""

from __future__ import annotations

import itertools
import tarfile
from collections.abc import Callable, Iterator
from typing import Final

from paddlelike.dataset import common, synthetic
from paddlelike.errors import FormatError
from paddlelike.foundation.docstrings import describe_like

__all__ = ["fetch", "gen", "get_dict", "test", "train"]

URL_TRAIN: Final = "http://paddlemodels.bj.bcebos.com/wmt/wmt14.tgz"
MD5_TRAIN: Final = "0791583d57d5beb693b9414c5b36798c"
URL_MODEL: Final = "http://paddlemodels.bj.bcebos.com/wmt%2Fwmt14.tgz"
MD5_MODEL: Final = "0cb4a5366189b6acba876491c8724fa3"

START: Final = "<s>"
END: Final = "<e>"
UNK: Final = "<unk>"
UNK_IDX: Final = 2

_LONGEST: Final = 80
Reader = Callable[[], Iterator[tuple[list[int], list[int], list[int]]]]


def train(dict_size: int) -> Reader:
    """Return the reader of the training set of WMT 2014.

    Parameters
    ----------
    dict_size
        The number of words of either dictionary; others are unknown.

    Returns
    -------
    callable
        A function that yields the samples. Each is the word ids of the source, of the target, and of the
        target one word later.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, gen, get_dict, test

    >>> from paddlelike.dataset import wmt14
    >>> source, target, following = next(wmt14.train(1000)())
    >>> target[1:] == following[:-1]
    True
    """
    return _make_reader("train/train", dict_size, synthetic.Part("wmt14", "train", 2000))


@describe_like(train)
def test(dict_size: int) -> Reader:
    """Return the reader of the test set of WMT 2014.

    Returns
    -------
    callable
        A function that yields the samples. Each is the word ids of the source, of the target, and of the
        target one word later.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, gen, get_dict, train

    >>> from paddlelike.dataset import wmt14
    >>> source, target, following = next(wmt14.test(1000)())
    >>> target[1:] == following[:-1]
    True
    """
    return _make_reader("test/test", dict_size, synthetic.Part("wmt14", "test", 500))


@describe_like(train)
def gen(dict_size: int) -> Reader:
    """Return the reader of the sentences to translate of WMT 2014.

    Returns
    -------
    callable
        A function that yields the samples. Each is the word ids of the source, of the target, and of the
        target one word later.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, get_dict, test, train

    >>> from paddlelike.dataset import wmt14
    >>> source, target, following = next(wmt14.gen(1000)())
    >>> target[1:] == following[:-1]
    True
    """
    return _make_reader("gen/gen", dict_size, synthetic.Part("wmt14", "gen", 100))


def get_dict(dict_size: int, reverse: bool = True) -> tuple[dict[int, str] | dict[str, int], ...]:
    """Return the dictionaries of the source and of the target.

    Parameters
    ----------
    dict_size
        The number of words of either dictionary.
    reverse
        If True, return words by id, otherwise ids by word.

    Returns
    -------
    tuple of two dicts
        The words; "<s>", "<e>" and "<unk>" are 0, 1 and 2.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, gen, test, train

    >>> from paddlelike.dataset import wmt14
    >>> source, target = wmt14.get_dict(1000)
    >>> source[0], len(target)
    ('<s>', 1000)
    """
    dictionaries = _read_dicts(common.find(URL_TRAIN, "wmt14", MD5_TRAIN), dict_size)
    if reverse:
        return tuple({index: word for word, index in ids.items()} for ids in dictionaries)
    return dictionaries


def fetch() -> None:
    """Check that both files are in the cache folder; nothing is downloaded.

    Raises
    ------
    MissingFileError
        An original file is missing; made-up samples do not replace it.

    See Also
    --------
    gen, get_dict, test, train

    >>> from paddlelike.dataset import wmt14
    >>> wmt14.fetch()
    Traceback (most recent call last):
    paddlelike.errors.MissingFileError: paddle.dataset: the file ...
    """
    common.download(URL_TRAIN, "wmt14", MD5_TRAIN)
    common.download(URL_MODEL, "wmt14", MD5_MODEL)


def _read_dicts(path: str | None, size: int) -> tuple[dict[str, int], dict[str, int]]:
    if path is None:
        words = [START, END, UNK, *(f"w{index}" for index in range(3, size))]
        ids = {word: index for index, word in enumerate(words)}
        return ids, dict(ids)
    source, target = (
        {line.decode().strip(): index for index, line in enumerate(itertools.islice(lines, size))}
        for lines in (_read_lines(path, "src.dict"), _read_lines(path, "trg.dict"))
    )
    return source, target


def _make_reader(name: str, dict_size: int, part: synthetic.Part) -> Reader:
    path = common.find(URL_TRAIN, "wmt14", MD5_TRAIN)

    def read() -> Iterator[tuple[list[int], list[int], list[int]]]:
        source, target = _read_dicts(path, dict_size)
        pairs = (
            synthetic.make_translations(part, source=dict_size, target=dict_size)
            if path is None
            else _read_pairs(path, name, source, target)
        )
        for source_ids, target_ids in pairs:
            yield (
                [source.get(START, UNK_IDX), *source_ids, source.get(END, UNK_IDX)],
                [target[START], *target_ids],
                [*target_ids, target[END]],
            )

    return read


def _read_pairs(
    path: str, name: str, source: dict[str, int], target: dict[str, int]
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the ids of both sentences of a line; long ones and lines that are not a pair are left out."""
    for line in _read_lines(path, name):
        sentences = line.decode().strip().split("\t")
        if len(sentences) != 2:
            continue
        source_ids = [source.get(word, UNK_IDX) for word in sentences[0].split()]
        target_ids = [target.get(word, UNK_IDX) for word in sentences[1].split()]
        if len(source_ids) + 2 <= _LONGEST and len(target_ids) <= _LONGEST:
            yield source_ids, target_ids


def _read_lines(path: str, name: str) -> Iterator[bytes]:
    """Yield the lines of the tar's files with this ending. Raises FormatError when there are none."""
    with tarfile.open(path) as tar:
        members = [member for member in tar if member.name.endswith(name)]
        if not members:
            raise FormatError(f"{path} has no file {name}")
        for member in members:
            yield from tar.extractfile(member) or ()
