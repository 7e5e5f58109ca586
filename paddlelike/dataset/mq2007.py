"""MQ2007: documents found for queries, with their relevance (LETOR 4.0, text files in a rar file).

A line is a relevance of 0, 1 or 2, the query, 46 features, and a comment. ``train`` and ``test`` return the
samples themselves: ``format`` is "pairwise" (label [1], features of the better document, features of the
worse one), "listwise" (labels (N, 1), features (N, 46)), "pointwise" or "plain_txt". As in Fluid, the last
two give only the best document of each query.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from paddlelike.dataset import common, synthetic
from paddlelike.errors import FormatError
from paddlelike.foundation.docstrings import describe_like

__all__ = [
    "Query",
    "QueryList",
    "fetch",
    "gen_list",
    "gen_pair",
    "gen_plain_txt",
    "gen_point",
    "load_from_text",
    "query_filter",
    "test",
    "train",
]

URL: Final = (
    "http://www.bigdatalab.ac.cn/benchmark/upload/download_source/"
    "7b6dbbe2-842c-11e4-a536-bcaec51b9163_MQ2007.rar"
)
MD5: Final = "7be1640ae95c6408dab0ae7207bdc706"

_FEATURES: Final = 46


class Query:
    """A document found for a query: its relevance and features.

    Parameters
    ----------
    query_id
        The number of the query.
    relevance_score
        The relevance, from 0 (none) to 2.
    feature_vector
        46 numbers. None means an empty list.
    description
        The comment in the file.

    See Also
    --------
    QueryList, fetch, gen_list, gen_pair, gen_plain_txt, gen_point, load_from_text, query_filter, test, train

    >>> from paddlelike.dataset import mq2007
    >>> print(mq2007.Query(10, 2, [0.5, 1.0]))
    2 10 0.5 1.0
    """

    def __init__(
        self,
        query_id: int = -1,
        relevance_score: int = -1,
        feature_vector: list[float] | None = None,
        description: str = "",
    ) -> None:
        self.query_id = query_id
        self.relevance_score = relevance_score
        self.feature_vector = [] if feature_vector is None else feature_vector
        self.description = description

    def __str__(self) -> str:
        return f"{self.relevance_score} {self.query_id} {' '.join(map(str, self.feature_vector))}"


class QueryList:
    """The documents found for one query.

    Parameters
    ----------
    querylist
        The documents, as :class:`Query`. By default the list is empty.

    Raises
    ------
    ValueError
        The documents are of several queries.

    See Also
    --------
    Query, fetch, gen_list, gen_pair, gen_plain_txt, gen_point, load_from_text, query_filter, test, train

    >>> from paddlelike.dataset import mq2007
    >>> len(mq2007.QueryList([mq2007.Query(10, 2), mq2007.Query(10, 0)]))
    2
    """

    def __init__(self, querylist: list[Query] | None = None) -> None:
        self.query_id = -1
        self.querylist: list[Query] = []
        for query in querylist or ():
            self._add_query(query)

    def __iter__(self) -> Iterator[Query]:
        return iter(self.querylist)

    def __len__(self) -> int:
        return len(self.querylist)

    def __getitem__(self, i: int) -> Query:
        return self.querylist[i]

    def _add_query(self, query: Query) -> None:
        if self.query_id not in (-1, query.query_id):
            raise ValueError(f"query {query.query_id} cannot be added to a list of query {self.query_id}")
        self.query_id = query.query_id
        self.querylist.append(query)

    def _correct_ranking_(self) -> None:
        """Sort the documents by falling relevance."""
        self.querylist.sort(key=lambda query: -query.relevance_score)


def gen_plain_txt(querylist: QueryList | list[Query]) -> Iterator[tuple[int, int, Any]]:
    """Yield the documents of a query, the most relevant first.

    Parameters
    ----------
    querylist
        The documents of one query.

    Returns
    -------
    iterator
        The number of the query, the relevance, and the features (46,), for each document.

    See Also
    --------
    Query, QueryList, fetch, gen_list, gen_pair, gen_point, load_from_text, query_filter, test, train

    >>> from paddlelike.dataset import mq2007
    >>> two = [mq2007.Query(10, score, [score + 0.5]) for score in (0, 2)]
    >>> next(mq2007.gen_plain_txt(two))
    (10, 2, array([2.5]))
    """
    queries = _rank(querylist)
    for query in queries:
        yield queries.query_id, query.relevance_score, np.array(query.feature_vector)


@describe_like(gen_plain_txt)
def gen_point(querylist: QueryList | list[Query]) -> Iterator[tuple[int, Any]]:
    """Yield the relevance and the features of each document, the most relevant first.

    Returns
    -------
    iterator
        The relevance, an int, and the features (46,), for each document.

    See Also
    --------
    Query, QueryList, fetch, gen_list, gen_pair, gen_plain_txt, load_from_text, query_filter, test, train

    >>> from paddlelike.dataset import mq2007
    >>> two = [mq2007.Query(10, score, [score + 0.5]) for score in (0, 2)]
    >>> next(mq2007.gen_point(two))
    (2, array([2.5]))
    """
    for query in _rank(querylist):
        yield query.relevance_score, np.array(query.feature_vector)


@describe_like(gen_plain_txt)
def gen_pair(
    querylist: QueryList | list[Query], partial_order: str = "full"
) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the pairs of documents of unequal relevance.

    Parameters
    ----------
    partial_order
        It has no effect.

    Returns
    -------
    iterator
        [1], the features (46,) of the more relevant document, and the features of the other one, for each
        pair.

    See Also
    --------
    Query, QueryList, fetch, gen_list, gen_plain_txt, gen_point, load_from_text, query_filter, test, train

    >>> from paddlelike.dataset import mq2007
    >>> two = [mq2007.Query(10, score, [score + 0.5]) for score in (0, 2)]
    >>> next(mq2007.gen_pair(two))
    (array([1]), array([2.5]), array([0.5]))
    """
    queries = _rank(querylist)
    for at, better in enumerate(queries):
        for worse in queries.querylist[at + 1 :]:
            if better.relevance_score > worse.relevance_score:
                yield np.array([1]), np.array(better.feature_vector), np.array(worse.feature_vector)


@describe_like(gen_plain_txt)
def gen_list(querylist: QueryList | list[Query]) -> Iterator[tuple[Any, Any]]:
    """Yield, once, all documents of a query, the most relevant first.

    Returns
    -------
    iterator
        The relevances (N, 1) and the features (N, 46).

    See Also
    --------
    Query, QueryList, fetch, gen_pair, gen_plain_txt, gen_point, load_from_text, query_filter, test, train

    >>> from paddlelike.dataset import mq2007
    >>> two = [mq2007.Query(10, score, [score + 0.5]) for score in (0, 2)]
    >>> next(mq2007.gen_list(two))
    (array([[2],
           [0]]), array([[2.5],
           [0.5]]))
    """
    queries = _rank(querylist)
    scores = [[query.relevance_score] for query in queries]
    yield np.array(scores), np.array([query.feature_vector for query in queries])


def query_filter(querylists: list[QueryList]) -> list[QueryList]:
    """Leave out the queries without a relevant document.

    Parameters
    ----------
    querylists
        The documents of each query.

    Returns
    -------
    list of QueryList
        The other queries, in the same order.

    See Also
    --------
    Query, QueryList, fetch, gen_list, gen_pair, gen_plain_txt, gen_point, load_from_text, test, train

    >>> from paddlelike.dataset import mq2007
    >>> lists = [mq2007.QueryList([mq2007.Query(one, one)]) for one in (0, 1)]
    >>> [one.query_id for one in mq2007.query_filter(lists)]
    [1]
    """
    return [queries for queries in querylists if sum(query.relevance_score for query in queries) != 0]


def load_from_text(filepath: str, shuffle: bool = False, fill_missing: float = -1) -> list[QueryList]:
    """Return the queries of a file in the unpacked archive.

    Parameters
    ----------
    filepath
        The path of the file in the archive.
    shuffle, fill_missing
        They have no effect.

    Returns
    -------
    list of QueryList
        The documents of each query.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.
    ExtraMissingError
        ``rarfile``, which unpacks the archive, is not installed.

    See Also
    --------
    Query, QueryList, fetch, gen_list, gen_pair, gen_plain_txt, gen_point, query_filter, test, train

    >>> from paddlelike.dataset import mq2007
    >>> queries = mq2007.load_from_text("MQ2007/MQ2007/Fold1/test.txt")
    >>> len(queries[0][0].feature_vector)
    46
    """
    folder = _unpack(filepath)
    lines = _make_lines(filepath) if folder is None else (folder / filepath).read_text().splitlines()
    lists: list[QueryList] = []
    for line in lines:
        query = _parse(line)
        if not lists or lists[-1].query_id != query.query_id:
            lists.append(QueryList())
        lists[-1]._add_query(query)
    return lists


def _read(
    filepath: str, format: str = "pairwise", shuffle: bool = False, fill_missing: float = -1
) -> Iterator[Any]:
    for queries in query_filter(load_from_text(filepath, shuffle, fill_missing)):
        if format == "plain_txt":
            yield next(gen_plain_txt(queries))
        elif format == "pointwise":
            yield next(gen_point(queries))
        elif format == "pairwise":
            yield from gen_pair(queries)
        elif format == "listwise":
            yield next(gen_list(queries))


train = functools.partial(_read, filepath="MQ2007/MQ2007/Fold1/train.txt")
test = functools.partial(_read, filepath="MQ2007/MQ2007/Fold1/test.txt")


def fetch() -> str:
    """Return the path of the archive in the cache folder; nothing is downloaded.

    Returns
    -------
    str
        The path.

    Raises
    ------
    MissingFileError
        An original file is missing; made-up samples do not replace it.

    See Also
    --------
    Query, QueryList, gen_list, gen_pair, gen_plain_txt, gen_point, load_from_text, query_filter, test, train

    >>> from paddlelike.dataset import mq2007
    >>> mq2007.fetch()
    Traceback (most recent call last):
    paddlelike.errors.MissingFileError: paddle.dataset: the file ...
    """
    return common.download(URL, "MQ2007", MD5)


def _rank(querylist: QueryList | list[Query]) -> QueryList:
    queries = querylist if isinstance(querylist, QueryList) else QueryList(querylist)
    queries._correct_ranking_()
    return queries


def _parse(line: str) -> Query:
    text, _, description = line.partition("#")
    parts = text.split()
    if len(parts) != _FEATURES + 2:
        raise FormatError(f"mq2007: a line has {len(parts)} columns, expected {_FEATURES + 2}: {line[:60]!r}")
    features = [float(part.partition(":")[2]) for part in parts[2:]]
    return Query(int(parts[1].partition(":")[2]), int(parts[0]), features, description.strip())


def _unpack(filepath: str) -> Path | None:
    """Return the folder with the unpacked archive, unpacking it if needed; None for synthetic data."""
    folder = Path(common.DATA_HOME) / "MQ2007"
    if (folder / filepath).exists():
        return folder
    archive = common.find(URL, "MQ2007", MD5)
    if archive is None:
        return None
    common.import_extra("rarfile", "rarfile", "paddle.dataset.mq2007").RarFile(archive).extractall(
        path=folder
    )
    return folder


def _make_lines(filepath: str) -> Iterator[str]:
    """Yield made-up lines, where the relevance follows from the features."""
    part = synthetic.Part("mq2007", filepath, 200)
    weights = part.rules.normal(0, 1, _FEATURES)
    rng = part.samples
    for query in range(part.size):
        for row in rng.uniform(0, 1, (int(rng.integers(5, 20)), _FEATURES)):
            score = int(np.clip((row - 0.5) @ weights + 0.5, 0, 2))
            features = " ".join(f"{index + 1}:{value:.6f}" for index, value in enumerate(row))
            yield f"{score} qid:{query} {features} #made up"
