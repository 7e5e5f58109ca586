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

__all__ = ["build_dict", "fetch", "test", "tokenize", "train", "word_dict"]

URL: Final = "https://dataset.bj.bcebos.com/imdb%2FaclImdb_v1.tar.gz"
MD5: Final = "7c2ac02c03563afcf9b574c7e56c153a"

_WORDS: Final = 5147  # of the original, with "<unk>"

Reader = Callable[[], Iterator[tuple[list[int], int]]]


def train(word_idx: Mapping[Any, int]) -> Reader:
    """Return the reader of the training set, ids by ``word_idx``.

    Raises MissingFileError without its file.
    """
    return _make_reader("train", word_idx, 2000)


def test(word_idx: Mapping[Any, int]) -> Reader:
    """Return the reader of the test set, ids by ``word_idx``. Raises MissingFileError without its file."""
    return _make_reader("test", word_idx, 500)


def word_dict() -> dict[Any, int]:
    """Return the ids of the words that occur more than 150 times. Words are bytes; "<unk>" has the last
    id.
    """
    if common.find(URL, "imdb", MD5) is None:
        return {b"w%d" % index: index for index in range(_WORDS - 1)} | {"<unk>": _WORDS - 1}
    return build_dict(re.compile(r"aclImdb/((train)|(test))/((pos)|(neg))/.*\.txt$"), 150)


def build_dict(pattern: re.Pattern[str], cutoff: int) -> dict[Any, int]:
    """Return ids, by falling frequency, of the words that occur more than ``cutoff`` times.

    Counted are the files of the archive whose name fits ``pattern``. Words are bytes; "<unk>" is the last
    one. Raises MissingFileError without the file, FormatError when no word is left.
    """
    counts = Counter(word for document in tokenize(pattern) for word in document)
    words = sorted((word for word, n in counts.items() if n > cutoff), key=lambda word: (-counts[word], word))
    if not words:
        raise FormatError(f"imdb: no word in the files {pattern.pattern} occurs more than {cutoff} times")
    ids: dict[Any, int] = {word: index for index, word in enumerate(words)}
    ids["<unk>"] = len(words)
    return ids


def tokenize(pattern: re.Pattern[str]) -> Iterator[list[bytes]]:
    """Yield the words of each file in the archive whose name fits: lower case, without punctuation."""
    with tarfile.open(common.download(URL, "imdb", MD5)) as tar:
        for member in tar:
            file = tar.extractfile(member) if pattern.match(member.name) else None
            if file is not None:
                yield file.read().rstrip(b"\n\r").translate(None, string.punctuation.encode()).lower().split()


def fetch() -> None:
    """Raise MissingFileError unless the file is there."""
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
