"""Boston housing prices (https://archive.ics.uci.edu/ml/machine-learning-databases/housing/).

A sample is 13 features, float64 (13,), each centred and divided by its range, and the price, float64 (1,).
The first 404 rows train, the last 102 test.
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from paddlelike.dataset import common, synthetic
from paddlelike.errors import FormatError

__all__ = ["feature_names", "fetch", "fluid_model", "load_data", "predict_reader", "test", "train"]

URL: Final = "http://paddlemodels.bj.bcebos.com/uci_housing/housing.data"
MD5: Final = "d4accdce7a25600298819f8e28e8d593"
FLUID_URL_MODEL: Final = (
    "https://github.com/PaddlePaddle/book/raw/develop/01.fit_a_line/fluid/fit_a_line.fluid.tar"
)
FLUID_MD5_MODEL: Final = "6e6dd637ccd5993961f68bfbde46090b"

feature_names: Final = "CRIM ZN INDUS CHAS NOX RM AGE DIS RAD TAX PTRATIO B LSTAT".split()  # noqa: SIM905

Array = np.ndarray[Any, Any]
#: The rows of the last file that was loaded, for scripts that read them there.
UCI_TRAIN_DATA: Array | None = None
UCI_TEST_DATA: Array | None = None
Reader = Callable[[], Iterator[tuple[Array, Array]]]


def train() -> Reader:
    """Return the reader of the training set of Boston's housing prices.

    Returns
    -------
    callable
        A function that yields the samples. Each is the features, float64 (13,), and the price, float64 (1,).

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, fluid_model, predict_reader, test

    >>> from paddlelike.dataset import uci_housing
    >>> features, price = next(uci_housing.train()())
    >>> features.shape, price.shape
    ((13,), (1,))
    """
    rows, _ = load_data(common.find(URL, "uci_housing", MD5))
    return lambda: ((row[:-1], row[-1:]) for row in rows)


def test() -> Reader:
    """Return the reader of the test set of Boston's housing prices.

    Returns
    -------
    callable
        A function that yields the samples. Each is the features, float64 (13,), and the price, float64 (1,).

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, fluid_model, predict_reader, train

    >>> from paddlelike.dataset import uci_housing
    >>> features, price = next(uci_housing.test()())
    >>> features.shape, price.shape
    ((13,), (1,))
    """
    _, rows = load_data(common.find(URL, "uci_housing", MD5))
    return lambda: ((row[:-1], row[-1:]) for row in rows)


def predict_reader() -> tuple[Array]:
    """Return the features of the first house of the test set.

    Returns
    -------
    tuple
        The features, float64 (13,), alone in a tuple.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, fluid_model, test, train

    >>> from paddlelike.dataset import uci_housing
    >>> uci_housing.predict_reader()[0].shape
    (13,)
    """
    return (load_data(common.find(URL, "uci_housing", MD5))[1][0][:-1],)


def fluid_model() -> str:
    """Unpack the trained model of Paddle's book into a new folder.

    Returns
    -------
    str
        The path of the folder.

    Raises
    ------
    MissingFileError
        An original file is missing; made-up samples do not replace it.

    See Also
    --------
    fetch, predict_reader, test, train

    >>> from paddlelike.dataset import uci_housing
    >>> uci_housing.fluid_model()
    Traceback (most recent call last):
    paddlelike.errors.MissingFileError: paddle.dataset: the file fit_a_line.fluid.tar is not in ...
    """
    path = common.download(FLUID_URL_MODEL, "uci_housing", FLUID_MD5_MODEL, "fit_a_line.fluid.tar")
    folder = tempfile.mkdtemp()
    with tarfile.open(path) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        tar.extractall(folder)  # noqa: S202  (its checksum is the one of the original)
    return folder


def fetch() -> None:
    """Check that the file is in the cache folder; nothing is downloaded.

    Raises
    ------
    MissingFileError
        An original file is missing; made-up samples do not replace it.

    See Also
    --------
    fluid_model, predict_reader, test, train

    >>> from paddlelike.dataset import uci_housing
    >>> uci_housing.fetch()
    Traceback (most recent call last):
    paddlelike.errors.MissingFileError: paddle.dataset: the file ...
    """
    common.download(URL, "uci_housing", MD5)


@lru_cache
def load_data(filename: str | None, feature_num: int = 14, ratio: float = 0.8) -> tuple[Array, Array]:
    """Return the rows for training and for testing; synthetic rows if ``filename`` is None.

    Raises FormatError when the numbers of the file cannot be divided into rows of ``feature_num``.
    """
    global UCI_TRAIN_DATA, UCI_TEST_DATA
    if filename is None:
        data = synthetic.make_regression(synthetic.Part("uci_housing", "train", 506), feature_num - 1)
    else:
        numbers = Path(filename).read_text().split()
        if not numbers or len(numbers) % feature_num:
            raise FormatError(f"{filename}: {len(numbers)} numbers, expected rows of {feature_num}")
        data = np.array(numbers, np.float64).reshape(-1, feature_num)
    highest, lowest, mean = data.max(axis=0), data.min(axis=0), data.sum(axis=0) / len(data)
    for column in range(feature_num - 1):
        data[:, column] = (data[:, column] - mean[column]) / (highest[column] - lowest[column])
    offset = int(len(data) * ratio)
    UCI_TRAIN_DATA, UCI_TEST_DATA = data[:offset], data[offset:]
    return UCI_TRAIN_DATA, UCI_TEST_DATA
