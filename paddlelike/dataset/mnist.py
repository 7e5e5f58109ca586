"""MNIST: pictures of handwritten digits (http://yann.lecun.com/exdb/mnist/, files in the IDX format).

A sample is an image, float32 (784,) from -1 to 1, and its digit, an int from 0 to 9.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from paddlelike.core import Array
from paddlelike.dataset import common, synthetic
from paddlelike.errors import FormatError

__all__ = ["fetch", "reader_creator", "test", "train"]

URL_PREFIX: Final = "https://dataset.bj.bcebos.com/mnist/"
TEST_IMAGE_URL: Final = f"{URL_PREFIX}t10k-images-idx3-ubyte.gz"
TEST_IMAGE_MD5: Final = "9fb629c4189551a2d022fa330f9573f3"
TEST_LABEL_URL: Final = f"{URL_PREFIX}t10k-labels-idx1-ubyte.gz"
TEST_LABEL_MD5: Final = "ec29112dd5afa0611ce80d1b7f02629c"
TRAIN_IMAGE_URL: Final = f"{URL_PREFIX}train-images-idx3-ubyte.gz"
TRAIN_IMAGE_MD5: Final = "f68b3c2dcbeaaa9fbdd348bbdeb94873"
TRAIN_LABEL_URL: Final = f"{URL_PREFIX}train-labels-idx1-ubyte.gz"
TRAIN_LABEL_MD5: Final = "d53e105ee54ea40749a09fcbcd1e9432"

Sample = tuple[Array, int]
Reader = Callable[[], Iterator[Sample]]


def train() -> Reader:
    """Return the reader of the training set of MNIST.

    Returns
    -------
    callable
        A function that yields the samples. Each is an image, float32 (784,) from -1 to 1, and its digit, an
        int.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, reader_creator, test

    >>> from paddlelike.dataset import mnist
    >>> image, digit = next(mnist.train()())
    >>> image.shape, image.dtype, digit in range(10)
    ((784,), dtype('float32'), True)
    """
    images = common.find(TRAIN_IMAGE_URL, "mnist", TRAIN_IMAGE_MD5)
    labels = common.find(TRAIN_LABEL_URL, "mnist", TRAIN_LABEL_MD5)
    return _make_reader(images, labels, synthetic.Part("mnist", "train", 6000))


def test() -> Reader:
    """Return the reader of the test set of MNIST.

    Returns
    -------
    callable
        A function that yields the samples. Each is an image, float32 (784,) from -1 to 1, and its digit, an
        int.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.

    See Also
    --------
    fetch, reader_creator, train

    >>> from paddlelike.dataset import mnist
    >>> image, digit = next(mnist.test()())
    >>> image.shape, image.dtype, digit in range(10)
    ((784,), dtype('float32'), True)
    """
    images = common.find(TEST_IMAGE_URL, "mnist", TEST_IMAGE_MD5)
    labels = common.find(TEST_LABEL_URL, "mnist", TEST_LABEL_MD5)
    return _make_reader(images, labels, synthetic.Part("mnist", "test", 1000))


def reader_creator(image_filename: str, label_filename: str, buffer_size: int) -> Reader:
    """Return the reader of two IDX files that gzip compressed.

    Parameters
    ----------
    image_filename, label_filename
        The paths of the images, uint8 (N, H, W), and of their digits, uint8 (N,).
    buffer_size
        It has no effect.

    Returns
    -------
    callable
        A function that yields the samples. Each is an image, float32 (H * W,) from -1 to 1, and its digit, an
        int.

    Raises
    ------
    FormatError
        When reading: a file is not an IDX file, or one has more entries than the other.

    See Also
    --------
    fetch, test, train

    >>> from paddlelike.dataset import mnist
    >>> import gzip, struct
    >>> with gzip.open("images.gz", "wb") as images, gzip.open("digits.gz", "wb") as digits:
    ...     _ = images.write(struct.pack(">4I", 0x803, 1, 1, 2) + bytes([0, 255]))
    ...     _ = digits.write(struct.pack(">2I", 0x801, 1) + bytes([7]))
    >>> next(mnist.reader_creator("images.gz", "digits.gz", 0)())
    (array([-1.,  1.], dtype=float32), 7)
    """
    return lambda: _scale(_read_idx(image_filename, 3), _read_idx(label_filename, 1))


def fetch() -> None:
    """Check that the four files are in the cache folder; nothing is downloaded.

    Raises
    ------
    MissingFileError
        An original file is missing; made-up samples do not replace it.

    See Also
    --------
    reader_creator, test, train

    >>> from paddlelike.dataset import mnist
    >>> mnist.fetch()
    Traceback (most recent call last):
    paddlelike.errors.MissingFileError: paddle.dataset: the file ...
    """
    for url, md5 in (
        (TRAIN_IMAGE_URL, TRAIN_IMAGE_MD5),
        (TRAIN_LABEL_URL, TRAIN_LABEL_MD5),
        (TEST_IMAGE_URL, TEST_IMAGE_MD5),
        (TEST_LABEL_URL, TEST_LABEL_MD5),
    ):
        common.download(url, "mnist", md5)


def _make_reader(images: str | None, labels: str | None, part: synthetic.Part) -> Reader:
    if images is None or labels is None:
        return lambda: _scale(*synthetic.make_images(part, classes=10, size=784))
    return reader_creator(images, labels, 0)


def _scale(images: Array, labels: Array) -> Iterator[Sample]:
    if len(images) != len(labels):
        raise FormatError(f"mnist: {len(images)} images, but {len(labels)} labels")
    for image, label in zip(images.reshape(len(images), -1), labels, strict=True):
        yield image.astype(np.float32) / np.float32(255) * np.float32(2) - np.float32(1), int(label)


def _read_idx(path: str, dims: int) -> Array:
    """Return the bytes array of an IDX file: magic number 0x0800 + dims, the shape, the bytes."""
    with gzip.open(path) as file:
        content = file.read()
    header = struct.Struct(f">I{dims}I")
    if len(content) < header.size:
        raise FormatError(f"{path}: {len(content)} bytes are less than the header of an IDX file")
    magic, *shape = header.unpack_from(content)
    if magic != 0x0800 + dims:
        raise FormatError(f"{path}: magic number {magic:#x}, expected {0x0800 + dims:#x}")
    count = int(np.prod(shape, dtype=object))
    if len(content) != header.size + count:
        raise FormatError(
            f"{path}: shape {shape} needs {count} bytes, the file has {len(content) - header.size}"
        )
    return np.frombuffer(content, np.uint8, offset=header.size).reshape(shape)
