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
    """Return the reader of the training set. Raises MissingFileError without its file."""
    rows, _ = load_data(common.find(URL, "uci_housing", MD5))
    return lambda: ((row[:-1], row[-1:]) for row in rows)


def test() -> Reader:
    """Return the reader of the test set. Raises MissingFileError without its file."""
    _, rows = load_data(common.find(URL, "uci_housing", MD5))
    return lambda: ((row[:-1], row[-1:]) for row in rows)


def predict_reader() -> tuple[Array]:
    """Return the features of the first row of the test set, in a tuple."""
    return (load_data(common.find(URL, "uci_housing", MD5))[1][0][:-1],)


def fluid_model() -> str:
    """Return a new folder with the trained model of the Book. Raises MissingFileError without its file."""
    path = common.download(FLUID_URL_MODEL, "uci_housing", FLUID_MD5_MODEL, "fit_a_line.fluid.tar")
    folder = tempfile.mkdtemp()
    with tarfile.open(path) as tar:
        tar.extractall(folder, filter="data")
    return folder


def fetch() -> None:
    """Raise MissingFileError unless the file is there."""
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
