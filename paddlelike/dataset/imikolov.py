"""Penn Treebank as T. Mikolov prepared it (http://www.fit.vutbr.cz/~imikolov/rnnlm/, texts in a tar file).

A sample is the ids of ``n`` consecutive words, or a sentence and the same sentence one word later.
"""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from paddlelike.dataset import common, synthetic
from paddlelike.errors import FormatError
from paddlelike.foundation.docstrings import describe_like

__all__ = ["DataType", "build_dict", "fetch", "test", "train"]

URL: Final = "https://dataset.bj.bcebos.com/imikolov%2Fsimple-examples.tgz"
MD5: Final = "30177ea32e27c525793142b6bf2c8e2d"

_TRAIN: Final = "./simple-examples/data/ptb.train.txt"
_TEST: Final = "./simple-examples/data/ptb.valid.txt"
_WORDS: Final = 2074  # of the original, with "<unk>"

Reader = Callable[[], Iterator[tuple[Any, ...]]]


class DataType:
    """The kind of a sample: ``NGRAM``, words in a row, or ``SEQ``, two sentences.

    See Also
    --------
    build_dict, fetch, test, train

    >>> from paddlelike.dataset import imikolov
    >>> words = imikolov.build_dict()
    >>> seen, following = next(imikolov.train(words, 0, imikolov.DataType.SEQ)())
    >>> seen[1:] == following[:-1]
    True
    """

    NGRAM = 1
    SEQ = 2


def train(word_idx: Mapping[Any, int], n: int, data_type: int = DataType.NGRAM) -> Reader:
    """Return the reader of the training set of the Penn Treebank.

    Parameters
    ----------
    word_idx
        Ids by word, as :func:`build_dict` returns them.
    n
        The number of words of a sample. Sentences of ``n`` words and more are left out; 0 keeps
        all.
    data_type
        ``DataType.NGRAM`` for consecutive words, ``DataType.SEQ`` for a sentence and the same sentence one
        word later.

    Returns
    -------
    callable
        A function that yields the samples. Each is a tuple of ``n`` word ids, or two lists of word ids.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.
    ValueError
        ``data_type`` is another number, or ``n`` is negative.

    See Also
    --------
    DataType, build_dict, fetch, test

    >>> from paddlelike.dataset import imikolov
    >>> words = imikolov.build_dict()
    >>> len(next(imikolov.train(words, 5)()))
    5
    """
    return _make_reader(_TRAIN, word_idx, n, data_type, synthetic.Part("imikolov", "train", 2000))


@describe_like(train)
def test(word_idx: Mapping[Any, int], n: int, data_type: int = DataType.NGRAM) -> Reader:
    """Return the reader of the test set of the Penn Treebank.

    Returns
    -------
    callable
        A function that yields the samples. Each is a tuple of ``n`` word ids, or two lists of word ids.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.
    ValueError
        ``data_type`` is another number, or ``n`` is negative.

    See Also
    --------
    DataType, build_dict, fetch, train

    >>> from paddlelike.dataset import imikolov
    >>> words = imikolov.build_dict()
    >>> len(next(imikolov.test(words, 5)()))
    5
    """
    return _make_reader(_TEST, word_idx, n, data_type, synthetic.Part("imikolov", "test", 500))


def build_dict(min_word_freq: int = 50) -> dict[Any, int]:
    """Return the ids of the words that occur more than ``min_word_freq`` times.

    Parameters
    ----------
    min_word_freq
        The highest count of a word that is left out.

    Returns
    -------
    dict
        Ids by word, as bytes, the most frequent first. "<s>", "<e>" and "<unk>", the last one, are text.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    DataType, fetch, test, train

    >>> from paddlelike.dataset import imikolov
    >>> words = imikolov.build_dict()
    >>> len(words), words["<unk>"]
    (2074, 2073)
    """
    path = common.find(URL, "imikolov", MD5)
    if path is None:
        words: list[Any] = ["<s>", "<e>", *(b"w%d" % index for index in range(_WORDS - 3))]
    else:
        counts: Counter[Any] = Counter()
        for name in (_TRAIN, _TEST):
            for line in _read_lines(path, name):
                counts.update([*line, "<s>", "<e>"])
        words = [word for word, count in counts.items() if count > min_word_freq]
        words.sort(key=lambda word: (-counts[word], word if isinstance(word, bytes) else word.encode()))
    return {word: index for index, word in enumerate([*words, "<unk>"])}


def fetch() -> None:
    """Check that the file is in the cache folder; nothing is downloaded.

    Raises
    ------
    MissingFileError
        An original file is missing; made-up samples do not replace it.

    See Also
    --------
    DataType, build_dict, test, train

    >>> from paddlelike.dataset import imikolov
    >>> imikolov.fetch()
    Traceback (most recent call last):
    paddlelike.errors.MissingFileError: paddle.dataset: the file ...
    """
    common.download(URL, "imikolov", MD5)


def _make_reader(
    name: str, word_idx: Mapping[Any, int], n: int, data_type: int, part: synthetic.Part
) -> Reader:
    if data_type not in (DataType.NGRAM, DataType.SEQ):
        raise ValueError(f"imikolov: data_type must be DataType.NGRAM or DataType.SEQ, got {data_type!r}")
    if data_type == DataType.NGRAM and n < 0:
        raise ValueError(f"imikolov: n, the number of words of a sample, must not be negative, got {n}")

    def read() -> Iterator[tuple[Any, ...]]:
        path = common.find(URL, "imikolov", MD5)
        sentences: Iterable[list[int]] = synthetic.make_walks(part, words=len(word_idx) - 3)
        if path is not None:
            sentences = (
                [word_idx.get(word, word_idx["<unk>"]) for word in line] for line in _read_lines(path, name)
            )
        for ids in sentences:
            # As in Fluid, marks that the dictionary lacks are unknown words in n-grams only.
            if data_type == DataType.SEQ:
                if n <= 0 or len(ids) < n:
                    yield [word_idx["<s>"], *ids], [*ids, word_idx["<e>"]]
                continue
            marked = [_look_up(word_idx, "<s>"), *ids, _look_up(word_idx, "<e>")]
            for end in range(n, len(marked) + 1):
                yield tuple(marked[end - n : end])

    return read


def _look_up(word_idx: Mapping[Any, int], word: str) -> int:
    return word_idx.get(word, word_idx["<unk>"])


def _read_lines(path: str, name: str) -> Iterator[list[bytes]]:
    """Yield the words of each line of a file in the archive. Raises FormatError when it is missing."""
    with tarfile.open(path) as tar:
        try:
            file = tar.extractfile(name)
        except KeyError:
            raise FormatError(f"{path} has no file {name}") from None
        for line in file or ():
            yield line.split()
