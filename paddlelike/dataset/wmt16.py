"""WMT 2016, multimodal task: English and German captions (http://www.statmt.org/wmt16/, texts in a tar file).

A sample is three lists of ids: the source between "<s>" and "<e>", the target after "<s>", the target before
"<e>".
"""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

from paddlelike.dataset import common, synthetic
from paddlelike.errors import FormatError
from paddlelike.foundation.docstrings import describe_like

__all__ = ["fetch", "get_dict", "test", "train", "validation"]

DATA_URL: Final = "http://paddlemodels.bj.bcebos.com/wmt/wmt16.tar.gz"
DATA_MD5: Final = "0c38be43600334966403524a40dcd81e"

TOTAL_EN_WORDS: Final = 11250
TOTAL_DE_WORDS: Final = 19220
START_MARK: Final = "<s>"
END_MARK: Final = "<e>"
UNK_MARK: Final = "<unk>"

_TOTAL: Final = {"en": TOTAL_EN_WORDS, "de": TOTAL_DE_WORDS}
_COLUMN: Final = {"en": 0, "de": 1}
Reader = Callable[[], Iterator[tuple[list[int], list[int], list[int]]]]


def train(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Reader:
    """Return the reader of the training set of WMT 2016.

    Parameters
    ----------
    src_dict_size, trg_dict_size
        The number of words of the dictionary, with its three marks; others are unknown.
    src_lang
        The language of the source: "en" or "de". The target is the other one.

    Returns
    -------
    callable
        A function that yields the samples. Each is the word ids of the source, of the target, and of the
        target one word later.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.
    ValueError
        ``src_lang`` is another text.

    See Also
    --------
    fetch, get_dict, test, validation

    >>> from paddlelike.dataset import wmt16
    >>> source, target, following = next(wmt16.train(1000, 1000)())
    >>> target[1:] == following[:-1]
    True
    """
    return _make_reader("train", src_dict_size, trg_dict_size, src_lang, 2000)


@describe_like(train)
def test(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Reader:
    """Return the reader of the test set of WMT 2016.

    Returns
    -------
    callable
        A function that yields the samples. Each is the word ids of the source, of the target, and of the
        target one word later.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.
    ValueError
        ``src_lang`` is another text.

    See Also
    --------
    fetch, get_dict, train, validation

    >>> from paddlelike.dataset import wmt16
    >>> source, target, following = next(wmt16.test(1000, 1000)())
    >>> target[1:] == following[:-1]
    True
    """
    return _make_reader("test", src_dict_size, trg_dict_size, src_lang, 500)


@describe_like(train)
def validation(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Reader:
    """Return the reader of the validation set of WMT 2016.

    Returns
    -------
    callable
        A function that yields the samples. Each is the word ids of the source, of the target, and of the
        target one word later.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.
    ValueError
        ``src_lang`` is another text.

    See Also
    --------
    fetch, get_dict, test, train

    >>> from paddlelike.dataset import wmt16
    >>> source, target, following = next(wmt16.validation(1000, 1000)())
    >>> target[1:] == following[:-1]
    True
    """
    return _make_reader("val", src_dict_size, trg_dict_size, src_lang, 500)


def get_dict(lang: str, dict_size: int, reverse: bool = False) -> dict[str, int] | dict[int, str]:
    """Return the ids of the most frequent words of a language.

    Parameters
    ----------
    lang
        "en" or "de".
    dict_size
        The number of words, with the three marks.
    reverse
        If True, return words by id, otherwise ids by word.

    Returns
    -------
    dict
        Ids by word, or words by id; "<s>", "<e>" and "<unk>" are 0, 1 and 2.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, test, train, validation

    >>> from paddlelike.dataset import wmt16
    >>> wmt16.get_dict("en", 1000)["<unk>"]
    2
    """
    ids = _build_dict(_find(), min(dict_size, _TOTAL[lang]), lang)
    return {index: word for word, index in ids.items()} if reverse else dict(ids)


def fetch() -> None:
    """Check that the file is in the cache folder; nothing is downloaded.

    Raises
    ------
    MissingFileError
        An original file is missing; made-up samples do not replace it.

    See Also
    --------
    get_dict, test, train, validation

    >>> from paddlelike.dataset import wmt16
    >>> wmt16.fetch()
    Traceback (most recent call last):
    paddlelike.errors.MissingFileError: paddle.dataset: the file ...
    """
    common.download(DATA_URL, "wmt16", DATA_MD5, "wmt16.tar.gz")


def _find() -> str | None:
    return common.find(DATA_URL, "wmt16", DATA_MD5, "wmt16.tar.gz")


@lru_cache(maxsize=8)
def _build_dict(path: str | None, size: int, lang: str) -> dict[str, int]:
    """Return the ids of the marks and of the most frequent words; words of equal frequency keep their
    order.
    """
    marks = [START_MARK, END_MARK, UNK_MARK]
    if path is None:
        words = [f"{lang}{index}" for index in range(3, size)]
    else:
        counts = Counter(word for pair in _read_pairs(path, "train") for word in pair[_COLUMN[lang]].split())
        words = [word for word, _ in counts.most_common(size - len(marks))]
    return {word: index for index, word in enumerate([*marks, *words])}


def _make_reader(split: str, src_size: int, trg_size: int, src_lang: str, count: int) -> Reader:
    if src_lang not in _COLUMN:
        raise ValueError(f"wmt16: src_lang must be 'en' or 'de', got {src_lang!r}")
    trg_lang = "de" if src_lang == "en" else "en"
    src_size, trg_size = min(src_size, _TOTAL[src_lang]), min(trg_size, _TOTAL[trg_lang])
    path = _find()

    def read() -> Iterator[tuple[list[int], list[int], list[int]]]:
        source = _build_dict(path, src_size, src_lang)
        target = _build_dict(path, trg_size, trg_lang)
        start, end, unknown = (source[mark] for mark in (START_MARK, END_MARK, UNK_MARK))
        if path is None:
            part = synthetic.Part("wmt16", split, count)
            pairs = synthetic.make_translations(part, source=src_size, target=trg_size)
        else:
            pairs = (
                (
                    [source.get(word, unknown) for word in pair[_COLUMN[src_lang]].split()],
                    [target.get(word, unknown) for word in pair[_COLUMN[trg_lang]].split()],
                )
                for pair in _read_pairs(path, split)
            )
        for source_ids, target_ids in pairs:
            yield [start, *source_ids, end], [start, *target_ids], [*target_ids, end]

    return read


def _read_pairs(path: str, split: str) -> Iterator[list[str]]:
    """Yield the sentences of each line, English and German; lines that are not a pair are left out."""
    with tarfile.open(path) as tar:
        try:
            file = tar.extractfile(f"wmt16/{split}")
        except KeyError:
            raise FormatError(f"{path} has no file wmt16/{split}") from None
        for line in file or ():
            pair = line.decode().strip().split("\t")
            if len(pair) == 2:
                yield pair
