"""CoNLL-2005: who does what to whom (https://www.cs.upc.edu/~srlconll/). Only its test set is free.

A sample is nine lists as long as the sentence: word ids, the ids of five words around the verb (each
repeated), the verb, a mark for those five words, and the label ids, which number the sorted tags.
"""

from __future__ import annotations

import atexit
import gzip
import shutil
import struct
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from paddlelike.dataset import common, synthetic
from paddlelike.errors import FormatError

__all__ = ["fetch", "get_dict", "get_embedding", "test"]

DATA_URL: Final = "http://paddlemodels.bj.bcebos.com/conll05st/conll05st-tests.tar.gz"
DATA_MD5: Final = "387719152ae52d60422c016e92a742fc"
WORDDICT_URL: Final = "http://paddlemodels.bj.bcebos.com/conll05st%2FwordDict.txt"
WORDDICT_MD5: Final = "ea7fb7d4c75cc6254716f0177a506baa"
VERBDICT_URL: Final = "http://paddlemodels.bj.bcebos.com/conll05st%2FverbDict.txt"
VERBDICT_MD5: Final = "0d2977293bbb6cbefab5b0f97db1e77c"
TRGDICT_URL: Final = "http://paddlemodels.bj.bcebos.com/conll05st%2FtargetDict.txt"
TRGDICT_MD5: Final = "d8c7f03ceb5fc2e5a0fa7503a4353751"
EMB_URL: Final = "http://paddlemodels.bj.bcebos.com/conll05st%2Femb"
EMB_MD5: Final = "bf436eb0faa1f6f9103017f8be57cdb7"

UNK_IDX: Final = 0

_WORDS: Final = "conll05st-release/test.wsj/words/test.wsj.words.gz"
_PROPS: Final = "conll05st-release/test.wsj/props/test.wsj.props.gz"
_WORD_COUNT, _VERB_COUNT, _TAG_COUNT = 44068, 3162, 29  # of the original
Reader = Callable[[], Iterator[tuple[list[Any], ...]]]
Ids = dict[str, int]


def get_dict() -> tuple[Ids, Ids, Ids]:
    """Return the ids of words, of verbs and of labels.

    Returns
    -------
    tuple of three dicts
        Ids by word, by verb and by label: "B-A0", "I-A0", and so on; "O" is the last one.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, get_embedding, test

    >>> from paddlelike.dataset import conll05
    >>> words, verbs, labels = conll05.get_dict()
    >>> len(words), len(verbs), max(labels, key=labels.get)
    (44068, 3162, 'O')
    """
    paths = [
        common.find(url, "conll05st", md5)
        for url, md5 in (
            (WORDDICT_URL, WORDDICT_MD5),
            (VERBDICT_URL, VERBDICT_MD5),
            (TRGDICT_URL, TRGDICT_MD5),
        )
    ]
    made_up = (
        [f"word{index}" for index in range(_WORD_COUNT)],
        [f"verb{index}" for index in range(_VERB_COUNT)],
        ["B-V", *(f"B-A{index}" for index in range(_TAG_COUNT - 1))],
    )
    words, verbs, labels = (
        names if path is None else Path(path).read_text().splitlines()
        for path, names in zip(paths, made_up, strict=True)
    )
    return _number(words), _number(verbs), _number_labels(labels)


def get_embedding() -> str:
    """Return the path of the trained word vectors.

    Returns
    -------
    str
        The path of a file: 16 bytes, then float32 (44068, 32).

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, get_dict, test

    >>> from paddlelike.dataset import conll05
    >>> import numpy as np
    >>> path = conll05.get_embedding()
    >>> np.fromfile(path, "<f4", offset=16).reshape(44068, 32).shape
    (44068, 32)
    """
    return common.find(EMB_URL, "conll05st", EMB_MD5) or _make_embedding()


def test() -> Reader:
    """Return the reader of the test set of CoNLL-2005.

    Returns
    -------
    callable
        A function that yields the samples. Each is nine lists of a sentence's length.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, get_dict, get_embedding

    >>> from paddlelike.dataset import conll05
    >>> sample = next(conll05.test()())
    >>> len(sample), len(sample[0]) == len(sample[8])
    (9, True)
    """
    words, verbs, labels = get_dict()
    path = common.find(DATA_URL, "conll05st", DATA_MD5)

    def read() -> Iterator[tuple[list[Any], ...]]:
        sentences = _make_sentences(words, verbs) if path is None else _read_sentences(path)
        for sentence, verb, tags in sentences:
            yield _encode(sentence, verb, tags, words, verbs, labels)

    return read


def fetch() -> None:
    """Check that the five files are in the cache folder; nothing is downloaded.

    Raises
    ------
    MissingFileError
        An original file is missing; made-up samples do not replace it.

    See Also
    --------
    get_dict, get_embedding, test

    >>> from paddlelike.dataset import conll05
    >>> conll05.fetch()
    Traceback (most recent call last):
    paddlelike.errors.MissingFileError: paddle.dataset: the file ...
    """
    get_embedding()
    common.download(WORDDICT_URL, "conll05st", WORDDICT_MD5)
    common.download(VERBDICT_URL, "conll05st", VERBDICT_MD5)
    common.download(TRGDICT_URL, "conll05st", TRGDICT_MD5)
    common.download(DATA_URL, "conll05st", DATA_MD5)


def _number(lines: list[str]) -> Ids:
    return {line.strip(): index for index, line in enumerate(lines)}


def _number_labels(lines: list[str]) -> Ids:
    tags = sorted({line.strip()[2:] for line in lines if line.strip().startswith(("B-", "I-"))})
    return _number([f"{kind}-{tag}" for tag in tags for kind in "BI"] + ["O"])


def _encode(
    sentence: list[str], verb: str, tags: list[str], words: Ids, verbs: Ids, labels: Ids
) -> tuple[list[Any], ...]:
    """Return the nine lists of a sample."""
    at = tags.index("B-V")
    around = range(at - 2, at + 3)
    mark = [1 if index in around else 0 for index in range(len(tags))]
    context = ["bos" if index < 0 else "eos" if index >= len(tags) else sentence[index] for index in around]
    return (
        [words.get(word, UNK_IDX) for word in sentence],
        *([words.get(word, UNK_IDX)] * len(sentence) for word in context),
        [verbs.get(verb)] * len(sentence),
        mark,
        [labels.get(tag) for tag in tags],
    )


def _read_sentences(path: str) -> Iterator[tuple[list[str], str, list[str]]]:
    """Yield words, a verb and its labels; a sentence with several verbs is repeated, once for each verb."""
    with tarfile.open(path) as tar:
        files = [tar.extractfile(name) for name in (_WORDS, _PROPS)]
        assert files[0] is not None
        assert files[1] is not None
        with gzip.open(files[0]) as words, gzip.open(files[1]) as props:
            sentence: list[str] = []
            rows: list[list[str]] = []
            for word, prop in zip(words, props, strict=False):
                row = prop.decode().split()
                if row:
                    sentence.append(word.decode().strip())
                    rows.append(row)
                elif rows:
                    yield from _split_by_verb(sentence, rows)
                    sentence, rows = [], []


def _split_by_verb(sentence: list[str], rows: list[list[str]]) -> Iterator[tuple[list[str], str, list[str]]]:
    """Yield a sentence once per verb: its rows hold the verb, or "-", and one column of brackets per verb."""
    first, *columns = zip(*rows, strict=True)
    verbs: Mapping[int, str] = dict(enumerate(verb for verb in first if verb != "-"))
    for index, column in enumerate(columns):
        yield sentence, verbs[index], _read_brackets(column)


def _read_brackets(column: tuple[str, ...]) -> list[str]:
    """Convert brackets to labels: ``(A0*``, ``*``, ``*)`` gives B-A0, I-A0, I-A0.

    Raises FormatError for others.
    """
    labels, tag, inside = [], "O", False
    for part in column:
        if "(" in part:
            tag, inside = part[1 : part.index("*")], ")" not in part
            labels.append(f"B-{tag}")
        elif part in ("*", "*)"):
            labels.append(f"I-{tag}" if inside or part == "*)" else "O")
            inside = inside and part == "*"
        else:
            raise FormatError(f"conll05: {part!r} is not a part of a bracket like (A0*")
    return labels


@lru_cache
def _make_embedding() -> str:
    """Return the path of made-up word vectors, which are deleted when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="paddlelike-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    vectors = synthetic.Part("conll05", "embedding", 0).samples.normal(0, 0.1, (_WORD_COUNT, 32))
    header = struct.pack(
        "<iIq", 0, 4, vectors.size
    )  # version, bytes a number, count: parameters before Fluid
    (folder / "emb").write_bytes(header + vectors.astype("<f4").tobytes())
    return str(folder / "emb")


def _make_sentences(words: Ids, verbs: Ids) -> Iterator[tuple[list[str], str, list[str]]]:
    """Yield made-up sentences; the labels follow from the distance to the verb."""
    part = synthetic.Part("conll05", "test", 1000)
    names, acts = list(words), list(verbs)
    rng = part.samples
    for walk in synthetic.make_walks(part, words=len(names), longest=20):
        at = int(rng.integers(len(walk)))
        tags = ["B-A0" if index < at else "B-V" if index == at else "B-A1" for index in range(len(walk))]
        yield [names[one] for one in walk], acts[walk[at] % len(acts)], tags
