"""MovieLens 1-M: ratings of films by users (http://files.grouplens.org/datasets/movielens/ml-1m.zip).

A sample is a list: user id, gender (0 male, 1 female), index of the age, job; film id, ids of its categories,
ids of the words of its title; and the rating, [2 * stars - 5]. Ids of categories and words number the sorted
names.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.dataset import common, synthetic
from paddlelike.errors import FormatError
from paddlelike.foundation.docstrings import describe_like

__all__ = [
    "age_table",
    "fetch",
    "get_movie_title_dict",
    "max_job_id",
    "max_movie_id",
    "max_user_id",
    "movie_categories",
    "movie_info",
    "test",
    "train",
    "user_info",
]

URL: Final = "https://dataset.bj.bcebos.com/movielens%2Fml-1m.zip"
MD5: Final = "c4d9eecfca2ab87c1945afe126590906"

#: The lower ends of the ranges of ages.
age_table: Final = [1, 18, 25, 35, 45, 50, 56]

_TITLE: Final = re.compile(r"^(.*)\((\d+)\)$")  # the year in parentheses
Reader = Callable[[], Iterator[list[Any]]]


class MovieInfo:
    """A film: its id, the names of its categories, and its title."""

    def __init__(self, index: int | str, categories: list[str], title: str) -> None:
        self.index = int(index)
        self.categories = categories
        self.title = title

    def value(self) -> list[Any]:
        """Return the ids of the film, of its categories, and of the words of its title."""
        meta = _load()
        words = [meta.title_words[word.lower()] for word in self.title.split()]
        return [self.index, [meta.categories[name] for name in self.categories], words]

    def __repr__(self) -> str:
        return f"<MovieInfo id({self.index}), title({self.title}), categories({self.categories})>"


class UserInfo:
    """A user: id, whether male, index of the age in :data:`age_table`, id of the job."""

    def __init__(self, index: int | str, gender: str, age: int | str, job_id: int | str) -> None:
        self.index = int(index)
        self.is_male = gender == "M"
        self.age = age_table.index(int(age))
        self.job_id = int(job_id)

    def value(self) -> list[int]:
        """Return id, 0 for male and 1 for female, index of the age, id of the job."""
        return [self.index, 0 if self.is_male else 1, self.age, self.job_id]

    def __repr__(self) -> str:
        gender = "M" if self.is_male else "F"
        return (
            f"<UserInfo id({self.index}), gender({gender}), age({age_table[self.age]}), job({self.job_id})>"
        )


class _Meta(NamedTuple):
    """The films and users of the archive; made-up ones if the archive is missing."""

    path: str | None
    movies: dict[int, MovieInfo]
    users: dict[int, UserInfo]
    categories: dict[str, int]
    title_words: dict[str, int]


def train(rand_seed: int = 0, test_ratio: float = 0.1) -> Reader:
    """Return the reader of the ratings that are not for testing.

    Parameters
    ----------
    rand_seed
        The seed of the generator that divides the ratings.
    test_ratio
        The expected share of the ratings that are for testing, from 0 to 1.

    Returns
    -------
    callable
        A function that yields the samples. Each is a list of eight: user, gender, age, job, film, categories,
        words of the title and the rating.

    Raises
    ------
    MissingFileError
        When reading: an original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, get_movie_title_dict, max_job_id, max_movie_id, max_user_id, movie_categories, movie_info, test,
    user_info

    >>> from paddlelike.dataset import movielens
    >>> user, gender, age, job, film, categories, title, rating = next(movielens.train()())
    >>> user <= movielens.max_user_id(), -3 <= rating[0] <= 5
    (True, True)
    """
    return lambda: _read(rand_seed, test_ratio, False)


@describe_like(train)
def test(rand_seed: int = 0, test_ratio: float = 0.1) -> Reader:
    """Return the reader of the ratings that are for testing.

    Returns
    -------
    callable
        A function that yields the samples. Each is a list of eight: user, gender, age, job, film, categories,
        words of the title and the rating.

    Raises
    ------
    MissingFileError
        When reading: an original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, get_movie_title_dict, max_job_id, max_movie_id, max_user_id, movie_categories, movie_info, train,
    user_info

    >>> from paddlelike.dataset import movielens
    >>> user, gender, age, job, film, categories, title, rating = next(movielens.test()())
    >>> user <= movielens.max_user_id(), -3 <= rating[0] <= 5
    (True, True)
    """
    return lambda: _read(rand_seed, test_ratio, True)


def get_movie_title_dict() -> dict[str, int]:
    """Return the ids of the words in titles of films.

    Returns
    -------
    dict
        Ids by word, in lower case.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, max_job_id, max_movie_id, max_user_id, movie_categories, movie_info, test, train, user_info

    >>> from paddlelike.dataset import movielens
    >>> len(movielens.get_movie_title_dict()) > 5000
    True
    """
    return _load().title_words


def movie_categories() -> dict[str, int]:
    """Return the ids of the categories of films.

    Returns
    -------
    dict
        Ids by name, from 0 to 17.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, get_movie_title_dict, max_job_id, max_movie_id, max_user_id, movie_info, test, train, user_info

    >>> from paddlelike.dataset import movielens
    >>> len(movielens.movie_categories())
    18
    """
    return _load().categories


def user_info() -> dict[int, UserInfo]:
    """Return the users.

    Returns
    -------
    dict
        Users by id. Each one has ``index``, ``is_male``, ``age`` (the position in ``age_table``) and
        ``job_id``.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, get_movie_title_dict, max_job_id, max_movie_id, max_user_id, movie_categories, movie_info, test,
    train

    >>> from paddlelike.dataset import movielens
    >>> movielens.user_info()[1].index
    1
    """
    return _load().users


def movie_info() -> dict[int, MovieInfo]:
    """Return the films.

    Returns
    -------
    dict
        Films by id. Each one has ``index``, ``categories`` and ``title``.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, get_movie_title_dict, max_job_id, max_movie_id, max_user_id, movie_categories, test, train,
    user_info

    >>> from paddlelike.dataset import movielens
    >>> movielens.movie_info()[1].index
    1
    """
    return _load().movies


def max_movie_id() -> int:
    """Return the greatest id of a film.

    Returns
    -------
    int
        The id; 3952 in the original.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, get_movie_title_dict, max_job_id, max_user_id, movie_categories, movie_info, test, train, user_info

    >>> from paddlelike.dataset import movielens
    >>> movielens.max_movie_id()
    3952
    """
    return max(_load().movies)


def max_user_id() -> int:
    """Return the greatest id of a user.

    Returns
    -------
    int
        The id; 6040 in the original.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, get_movie_title_dict, max_job_id, max_movie_id, movie_categories, movie_info, test, train,
    user_info

    >>> from paddlelike.dataset import movielens
    >>> movielens.max_user_id()
    6040
    """
    return max(_load().users)


def max_job_id() -> int:
    """Return the greatest id of a job.

    Returns
    -------
    int
        The id; 20 in the original.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, get_movie_title_dict, max_movie_id, max_user_id, movie_categories, movie_info, test, train,
    user_info

    >>> from paddlelike.dataset import movielens
    >>> movielens.max_job_id()
    20
    """
    return max(user.job_id for user in _load().users.values())


def fetch() -> None:
    """Check that the file is in the cache folder; nothing is downloaded.

    Raises
    ------
    MissingFileError
        An original file is missing; made-up samples do not replace it.

    See Also
    --------
    get_movie_title_dict, max_job_id, max_movie_id, max_user_id, movie_categories, movie_info, test, train,
    user_info

    >>> from paddlelike.dataset import movielens
    >>> movielens.fetch()
    Traceback (most recent call last):
    paddlelike.errors.MissingFileError: paddle.dataset: the file ...
    """
    common.download(URL, "movielens", MD5)


def _load() -> _Meta:
    return _load_file(common.find(URL, "movielens", MD5))


@lru_cache(maxsize=1)
def _load_file(path: str | None) -> _Meta:
    if path is None:
        return _make_meta()
    movies, users = {}, {}
    for film, title, categories in _read_table(path, "movies", 3):
        match = _TITLE.match(title)
        if match is None:
            raise FormatError(f"{path}: the film {title!r} has no year in parentheses")
        movies[int(film)] = MovieInfo(film, categories.split("|"), match[1])
    for user, gender, age, job, _ in _read_table(path, "users", 5):
        users[int(user)] = UserInfo(user, gender, age, job)
    return _number(path, movies, users)


def _number(path: str | None, movies: dict[int, MovieInfo], users: dict[int, UserInfo]) -> _Meta:
    """Assign ids to the categories and to the words of titles."""
    categories = sorted({name for movie in movies.values() for name in movie.categories})
    words = sorted({word.lower() for movie in movies.values() for word in movie.title.split()})
    return _Meta(
        path,
        movies,
        users,
        {name: index for index, name in enumerate(categories)},
        {word: index for index, word in enumerate(words)},
    )


def _read_table(path: str, name: str, columns: int) -> Iterator[list[str]]:
    """Yield the rows of a table of the archive, columns divided by ``::``."""
    with zipfile.ZipFile(path) as archive, archive.open(f"ml-1m/{name}.dat") as file:
        for line in file:
            row = line.decode("latin1").strip().split("::")
            if len(row) != columns:
                raise FormatError(f"{path}: {name}.dat has a row of {len(row)} columns, expected {columns}")
            yield row


def _read(rand_seed: int, test_ratio: float, is_test: bool) -> Iterator[list[Any]]:
    meta = _load()
    rng = np.random.RandomState(rand_seed)
    for user, film, rating in _read_ratings(meta):
        if (rng.random_sample() < test_ratio) == is_test:
            yield meta.users[user].value() + meta.movies[film].value() + [[rating]]


def _read_ratings(meta: _Meta) -> Iterator[tuple[int, int, float]]:
    if meta.path is None:
        yield from _make_ratings()
        return
    for user, film, rating, _ in _read_table(meta.path, "ratings", 4):
        yield int(user), int(film), float(rating) * 2 - 5.0


def _make_meta() -> _Meta:
    """Return made-up films and users: as many as in the original, with equally large ids."""
    rng = synthetic.Part("movielens", "meta", 0).samples
    names = [f"kind{index:02d}" for index in range(18)]
    movies = {
        film: MovieInfo(
            film,
            [names[(film + step) % 18] for step in range(int(rng.integers(1, 4)))],
            " ".join(
                f"word{index}" for index in {film % 5175, int(rng.integers(5175)), (film + 2000) % 5175}
            ),
        )
        for film in range(1, 3953)
    }
    users = {
        user: UserInfo(user, "MF"[int(rng.integers(2))], age_table[int(rng.integers(7))], user % 21)
        for user in range(1, 6041)
    }
    return _number(None, movies, users)


def _make_ratings() -> Iterator[tuple[int, int, float]]:
    """Yield ratings that follow from features of each user and film."""
    part = synthetic.Part("movielens", "ratings", 20000)
    tastes = part.rules.normal(0, 1, (2, 6041))
    rng = part.samples
    for _ in range(part.size):
        user, film = int(rng.integers(1, 6041)), int(rng.integers(1, 3953))
        stars = np.clip(np.round(3.5 + tastes[0, user] + tastes[1, film]), 1, 5)
        yield user, film, float(stars) * 2 - 5.0
