"""CIFAR-10 and CIFAR-100: photographs (https://www.cs.toronto.edu/~kriz/cifar.html, pickles in a tar file).

A sample is an image, float32 (3072,) from 0 to 1 (all red, then green, then blue), and its class, an int.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from paddlelike.dataset import common, synthetic
from paddlelike.errors import FormatError
from paddlelike.foundation.docstrings import describe_like

__all__ = ["fetch", "test10", "test100", "train10", "train100"]

URL_PREFIX: Final = "https://dataset.bj.bcebos.com/cifar/"
CIFAR10_URL: Final = f"{URL_PREFIX}cifar-10-python.tar.gz"
CIFAR10_MD5: Final = "c58f30108f718f92721af3b95e74349a"
CIFAR100_URL: Final = f"{URL_PREFIX}cifar-100-python.tar.gz"
CIFAR100_MD5: Final = "eb9058c3a382ffc7106e4002c42a8d85"

Sample = tuple[np.ndarray[Any, Any], int]
Reader = Callable[[], Iterator[Sample]]


def train100() -> Reader:
    """Return the reader of the training set of CIFAR-100.

    Returns
    -------
    callable
        A function that yields the samples. Each is an image, float32 (3072,) from 0 to 1, and its class, an
        int.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, test10, test100, train10

    >>> from paddlelike.dataset import cifar
    >>> image, label = next(cifar.train100()())
    >>> image.shape, image.dtype, label in range(100)
    ((3072,), dtype('float32'), True)
    """
    return _make_reader(_find100(), "train", 100, synthetic.Part("cifar100", "train", 3000))


def test100() -> Reader:
    """Return the reader of the test set of CIFAR-100.

    Returns
    -------
    callable
        A function that yields the samples. Each is an image, float32 (3072,) from 0 to 1, and its class, an
        int.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, test10, train10, train100

    >>> from paddlelike.dataset import cifar
    >>> image, label = next(cifar.test100()())
    >>> image.shape, image.dtype, label in range(100)
    ((3072,), dtype('float32'), True)
    """
    return _make_reader(_find100(), "test", 100, synthetic.Part("cifar100", "test", 1000))


def train10(cycle: bool = False) -> Reader:
    """Return the reader of the training set of CIFAR-10.

    Parameters
    ----------
    cycle
        If True, the reader begins again after the last sample, for ever.

    Returns
    -------
    callable
        A function that yields the samples. Each is an image, float32 (3072,) from 0 to 1, and its class, an
        int.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, test10, test100, train100

    >>> from paddlelike.dataset import cifar
    >>> image, label = next(cifar.train10()())
    >>> image.shape, image.dtype, label in range(10)
    ((3072,), dtype('float32'), True)
    """
    return _make_reader(_find10(), "data_batch", 10, synthetic.Part("cifar10", "train", 3000), cycle=cycle)


@describe_like(train10)
def test10(cycle: bool = False) -> Reader:
    """Return the reader of the test set of CIFAR-10.

    Parameters
    ----------
    cycle
        If True, the reader begins again after the last sample, for ever.

    Returns
    -------
    callable
        A function that yields the samples. Each is an image, float32 (3072,) from 0 to 1, and its class, an
        int.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, test100, train10, train100

    >>> from paddlelike.dataset import cifar
    >>> image, label = next(cifar.test10()())
    >>> image.shape, image.dtype, label in range(10)
    ((3072,), dtype('float32'), True)
    """
    return _make_reader(_find10(), "test_batch", 10, synthetic.Part("cifar10", "test", 1000), cycle=cycle)


def fetch() -> None:
    """Check that both files are in the cache folder; nothing is downloaded.

    Raises
    ------
    MissingFileError
        An original file is missing; made-up samples do not replace it.

    See Also
    --------
    test10, test100, train10, train100

    >>> from paddlelike.dataset import cifar
    >>> cifar.fetch()
    Traceback (most recent call last):
    paddlelike.errors.MissingFileError: paddle.dataset: the file ...
    """
    common.download(CIFAR10_URL, "cifar", CIFAR10_MD5)
    common.download(CIFAR100_URL, "cifar", CIFAR100_MD5)


def _find10() -> str | None:
    return common.find(CIFAR10_URL, "cifar", CIFAR10_MD5)


def _find100() -> str | None:
    return common.find(CIFAR100_URL, "cifar", CIFAR100_MD5)


def _make_reader(
    path: str | None, name: str, classes: int, part: synthetic.Part, *, cycle: bool = False
) -> Reader:
    def read() -> Iterator[Sample]:
        while True:
            batches = [synthetic.make_images(part, classes=classes, size=3072)] if path is None else None
            for images, labels in batches or _read_batches(path or "", name):
                for image, label in zip(images, labels, strict=True):
                    yield (image / 255.0).astype(np.float32), int(label)
            if not cycle:
                return

    return read


def _read_batches(path: str, name: str) -> Iterator[tuple[Any, Any]]:
    """Yield images and labels of each file in the tar whose name contains ``name``, in the tar's order."""
    with tarfile.open(path) as tar:
        for member in tar:
            file = tar.extractfile(member) if name in member.name else None
            if file is None:
                continue
            batch = {_to_text(key): value for key, value in common.load_pickle(file.read()).items()}
            labels = batch.get("labels", batch.get("fine_labels"))
            if "data" not in batch or labels is None:
                raise FormatError(
                    f"{path}: {member.name} has {sorted(batch)}, expected data and labels or fine_labels"
                )
            yield batch["data"], labels


def _to_text(key: str | bytes) -> str:
    return key.decode("latin1") if isinstance(key, bytes) else key
