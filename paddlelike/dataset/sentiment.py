"""Film reviews of the NLTK corpus movie_reviews (http://www.nltk.org/nltk_data/, texts in a zip file).

A sample is a list of word ids and 0 for a bad review, 1 for a good one. As in Fluid, ``train`` and ``test``
return the samples themselves, not a reader.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from paddlelike.dataset import common, synthetic

__all__ = ["fetch", "get_word_dict", "test", "train"]

URL: Final = "https://corpora.bj.bcebos.com/movie_reviews%2Fmovie_reviews.zip"
MD5: Final = "155de2b77c6834dd8eea7cbe88e93acb"

NUM_TRAINING_INSTANCES: Final = 1600
NUM_TOTAL_INSTANCES: Final = 2000

_TOKEN: Final = re.compile(r"\w+|[^\w\s]+")  # NLTK's WordPunctTokenizer
_WORDS: Final = 39768  # of the original


def train() -> Iterator[tuple[list[int], int]]:
    """Return the first 1,600 reviews, bad and good ones in turn.

    Returns
    -------
    iterator
        A list of word ids, and 0 for a bad review or 1 for a good one, for each review.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, get_word_dict, test

    >>> from paddlelike.dataset import sentiment
    >>> ids, label = next(sentiment.train())
    >>> ids[0] < len(sentiment.get_word_dict()), label in (0, 1)
    (True, True)
    """
    path = _find()
    if path is None:
        return synthetic.make_sentences(synthetic.Part("sentiment", "train", 1600), words=_WORDS, classes=2)
    return iter(_load(path)[:NUM_TRAINING_INSTANCES])


def test() -> Iterator[tuple[list[int], int]]:
    """Return the reviews after the first 1,600, bad and good ones in turn.

    Returns
    -------
    iterator
        A list of word ids, and 0 for a bad review or 1 for a good one, for each review.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, get_word_dict, train

    >>> from paddlelike.dataset import sentiment
    >>> ids, label = next(sentiment.test())
    >>> ids[0] < len(sentiment.get_word_dict()), label in (0, 1)
    (True, True)
    """
    path = _find()
    if path is None:
        return synthetic.make_sentences(synthetic.Part("sentiment", "test", 400), words=_WORDS, classes=2)
    return iter(_load(path)[NUM_TRAINING_INSTANCES:])


def get_word_dict() -> list[tuple[str, int]]:
    """Return the words and their ids, the most frequent first.

    Words of equal frequency keep their order in the texts.

    Returns
    -------
    list
        Pairs of a word and its id.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, test, train

    >>> from paddlelike.dataset import sentiment
    >>> len(sentiment.get_word_dict())
    39768
    """
    path = _find()
    if path is None:
        return [(f"w{index}", index) for index in range(_WORDS)]
    counts = Counter(word for words in _read(path).values() for word in words)
    return [(word, index) for index, (word, _) in enumerate(counts.most_common())]


def fetch() -> None:
    """Check that the file is in the cache folder; nothing is downloaded.

    Raises
    ------
    MissingFileError
        An original file is missing; made-up samples do not replace it.

    See Also
    --------
    get_word_dict, test, train

    >>> from paddlelike.dataset import sentiment
    >>> sentiment.fetch()
    Traceback (most recent call last):
    paddlelike.errors.MissingFileError: paddle.dataset: the file ...
    """
    common.download(URL, "corpora", MD5, "movie_reviews.zip")


def _find() -> str | None:
    return common.find(URL, "corpora", MD5, "movie_reviews.zip")


@lru_cache(maxsize=1)
def _read(path: str) -> dict[str, list[str]]:
    """Return the words of each file in the archive, by its name, bad reviews first."""
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".txt"))
        return {name: _TOKEN.findall(archive.read(name).decode("latin1")) for name in names}


def _load(path: str) -> list[tuple[list[int], int]]:
    ids = dict(get_word_dict())
    documents = _read(path)
    bad = [name for name in documents if "/neg/" in name]
    good = [name for name in documents if "/pos/" in name]
    names = [name for pair in zip(bad, good, strict=False) for name in pair]
    return [([ids[word.lower()] for word in documents[name]], int(name in set(good))) for name in names]
