"""IMDB: film reviews, good or bad (http://ai.stanford.edu/%7Eamaas/data/sentiment/, texts in a tar file).

A sample is a list of word ids and 0 for a good review, 1 for a bad one.
"""

from __future__ import annotations

import re
import string
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from paddlelike.dataset import common, synthetic
from paddlelike.errors import FormatError
from paddlelike.foundation.docstrings import describe_like

__all__ = ["build_dict", "fetch", "test", "tokenize", "train", "word_dict"]

URL: Final = "https://dataset.bj.bcebos.com/imdb%2FaclImdb_v1.tar.gz"
MD5: Final = "7c2ac02c03563afcf9b574c7e56c153a"

_WORDS: Final = 5147  # of the original, with "<unk>"

Reader = Callable[[], Iterator[tuple[list[int], int]]]


def train(word_idx: Mapping[Any, int]) -> Reader:
    """Return the reader of the training set of IMDB's reviews.

    Parameters
    ----------
    word_idx
        Ids by word, as :func:`word_dict` returns them, with one for "<unk>".

    Returns
    -------
    callable
        A function that yields the samples. Each is a list of word ids, and 0 for a good review or 1 for a bad
        one.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    build_dict, fetch, test, tokenize, word_dict

    >>> from paddlelike.dataset import imdb
    >>> words = imdb.word_dict()
    >>> ids, label = next(imdb.train(words)())
    >>> max(ids) < len(words), label in (0, 1)
    (True, True)
    """
    return _make_reader("train", word_idx, 2000)


@describe_like(train)
def test(word_idx: Mapping[Any, int]) -> Reader:
    """Return the reader of the test set of IMDB's reviews.

    Returns
    -------
    callable
        A function that yields the samples. Each is a list of word ids, and 0 for a good review or 1 for a bad
        one.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    build_dict, fetch, tokenize, train, word_dict

    >>> from paddlelike.dataset import imdb
    >>> words = imdb.word_dict()
    >>> ids, label = next(imdb.test(words)())
    >>> max(ids) < len(words), label in (0, 1)
    (True, True)
    """
    return _make_reader("test", word_idx, 500)


def word_dict() -> dict[Any, int]:
    """Return the ids of the words that occur more than 150 times.

    Returns
    -------
    dict
        Ids by word, as bytes, the most frequent first. "<unk>" has the last id.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    build_dict, fetch, test, tokenize, train

    >>> from paddlelike.dataset import imdb
    >>> imdb.word_dict()["<unk>"]
    5146
    """
    if common.find(URL, "imdb", MD5) is None:
        return {b"w%d" % index: index for index in range(_WORDS - 1)} | {"<unk>": _WORDS - 1}
    return build_dict(re.compile(r"aclImdb/((train)|(test))/((pos)|(neg))/.*\.txt$"), 150)


def build_dict(pattern: re.Pattern[str], cutoff: int) -> dict[Any, int]:
    """Return the ids of the words that occur more than ``cutoff`` times.

    Parameters
    ----------
    pattern
        A pattern of the names of the files that are read from the archive.
    cutoff
        The highest count of a word that is left out.

    Returns
    -------
    dict
        Ids by word, as bytes, the most frequent first. "<unk>" has the last id.

    Raises
    ------
    MissingFileError
        An original file is missing; made-up samples do not replace it.
    FormatError
        No word is left.

    See Also
    --------
    fetch, test, tokenize, train, word_dict

    >>> from paddlelike.dataset import imdb
    >>> import re
    >>> imdb.build_dict(re.compile("aclImdb/train/.*txt"), 150)
    Traceback (most recent call last):
    paddlelike.errors.MissingFileError: paddle.dataset: the file imdb%2FaclImdb_v1.tar.gz is not in ...
    """
    counts = Counter(word for document in tokenize(pattern) for word in document)
    words = sorted((word for word, n in counts.items() if n > cutoff), key=lambda word: (-counts[word], word))
    if not words:
        raise FormatError(f"imdb: no word in the files {pattern.pattern} occurs more than {cutoff} times")
    ids: dict[Any, int] = {word: index for index, word in enumerate(words)}
    ids["<unk>"] = len(words)
    return ids


def tokenize(pattern: re.Pattern[str]) -> Iterator[list[bytes]]:
    """Yield the words of each file in the archive, in lower case and without punctuation.

    Parameters
    ----------
    pattern
        A pattern of the names of the files that are read from the archive.

    Returns
    -------
    iterator
        A list of words, as bytes, for each file.

    Raises
    ------
    MissingFileError
        An original file is missing; made-up samples do not replace it.

    See Also
    --------
    build_dict, fetch, test, train, word_dict

    >>> from paddlelike.dataset import imdb
    >>> import re
    >>> next(imdb.tokenize(re.compile("aclImdb/train/.*txt")))
    Traceback (most recent call last):
    paddlelike.errors.MissingFileError: paddle.dataset: the file imdb%2FaclImdb_v1.tar.gz is not in ...
    """
    with tarfile.open(common.download(URL, "imdb", MD5)) as tar:
        for member in tar:
            file = tar.extractfile(member) if pattern.match(member.name) else None
            if file is not None:
                yield file.read().rstrip(b"\n\r").translate(None, string.punctuation.encode()).lower().split()


def fetch() -> None:
    """Check that the file is in the cache folder; nothing is downloaded.

    Raises
    ------
    MissingFileError
        An original file is missing; made-up samples do not replace it.

    See Also
    --------
    build_dict, test, tokenize, train, word_dict

    >>> from paddlelike.dataset import imdb
    >>> imdb.fetch()
    Traceback (most recent call last):
    paddlelike.errors.MissingFileError: paddle.dataset: the file ...
    """
    common.download(URL, "imdb", MD5)


def _make_reader(split: str, word_idx: Mapping[Any, int], count: int) -> Reader:
    unknown = word_idx["<unk>"]
    if common.find(URL, "imdb", MD5) is None:
        part = synthetic.Part("imdb", split, count)
        return lambda: synthetic.make_sentences(part, words=len(word_idx), classes=2)
    samples = [
        ([word_idx.get(word, unknown) for word in document], label)
        for label, kind in enumerate(("pos", "neg"))
        for document in tokenize(re.compile(rf"aclImdb/{split}/{kind}/.*\.txt$"))
    ]
    return lambda: iter(samples)
