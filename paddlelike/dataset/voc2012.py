"""Pascal VOC 2012, segmentation (http://host.robots.ox.ac.uk/pascal/VOC/voc2012/, images in a tar file).

A sample is an image, uint8 (H, W, 3), and the class of each pixel, uint8 (H, W): 0 background, 1 to 20, 255
edges. Reading images needs Pillow.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from paddlelike.dataset import common, synthetic
from paddlelike.errors import FormatError

__all__ = ["test", "train", "val"]

VOC_URL: Final = "http://host.robots.ox.ac.uk/pascal/VOC/voc2012/VOCtrainval_11-May-2012.tar"
VOC_MD5: Final = "6cd6e144f989b92b3379bac3b3de84fd"
SET_FILE: Final = "VOCdevkit/VOC2012/ImageSets/Segmentation/{}.txt"
DATA_FILE: Final = "VOCdevkit/VOC2012/JPEGImages/{}.jpg"
LABEL_FILE: Final = "VOCdevkit/VOC2012/SegmentationClass/{}.png"
CACHE_DIR: Final = "voc2012"

Array = np.ndarray[Any, Any]
Reader = Callable[[], Iterator[tuple[Array, Array]]]


def train() -> Reader:
    """Return the reader of the images for training and validation.

    Returns
    -------
    callable
        A function that yields the samples. Each is an image, uint8 (H, W, 3), and the class of each pixel,
        uint8 (H, W).

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.
    ExtraMissingError
        When reading: Pillow is not installed.

    See Also
    --------
    test, val

    >>> from paddlelike.dataset import voc2012
    >>> image, classes = next(voc2012.train()())
    >>> image.shape[:2] == classes.shape, image.dtype
    (True, dtype('uint8'))
    """
    return _make_reader("trainval")


def test() -> Reader:
    """Return the reader of the images for training alone, as in Fluid.

    Returns
    -------
    callable
        A function that yields the samples. Each is an image, uint8 (H, W, 3), and the class of each pixel,
        uint8 (H, W).

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.
    ExtraMissingError
        When reading: Pillow is not installed.

    See Also
    --------
    train, val

    >>> from paddlelike.dataset import voc2012
    >>> image, classes = next(voc2012.test()())
    >>> image.shape[:2] == classes.shape, image.dtype
    (True, dtype('uint8'))
    """
    return _make_reader("train")


def val() -> Reader:
    """Return the reader of the images for validation.

    Returns
    -------
    callable
        A function that yields the samples. Each is an image, uint8 (H, W, 3), and the class of each pixel,
        uint8 (H, W).

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.
    ExtraMissingError
        When reading: Pillow is not installed.

    See Also
    --------
    test, train

    >>> from paddlelike.dataset import voc2012
    >>> image, classes = next(voc2012.val()())
    >>> image.shape[:2] == classes.shape, image.dtype
    (True, dtype('uint8'))
    """
    return _make_reader("val")


def _make_reader(split: str) -> Reader:
    path = common.find(VOC_URL, CACHE_DIR, VOC_MD5)
    if path is None:
        return lambda: _make_samples(synthetic.Part("voc2012", split, 100))

    def read() -> Iterator[tuple[Array, Array]]:
        with tarfile.open(path) as tar:
            for line in _read(tar, SET_FILE.format(split)).decode().split():
                yield _open_image(tar, DATA_FILE.format(line)), _open_image(tar, LABEL_FILE.format(line))

    return read


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    try:
        file = tar.extractfile(name)
    except KeyError:
        file = None
    if file is None:
        raise FormatError(f"{tar.name!s} has no file {name}")
    return file.read()


def _open_image(tar: tarfile.TarFile, name: str) -> Array:
    pillow = common.import_extra("PIL.Image", "pillow", "paddle.dataset.voc2012")
    return np.array(pillow.open(io.BytesIO(_read(tar, name))))


def _make_samples(part: synthetic.Part) -> Iterator[tuple[Array, Array]]:
    """Yield images with one rectangle, whose colour tells its class."""
    colours = part.rules.integers(0, 256, (21, 3))
    rng = part.samples
    for _ in range(part.size):
        label = np.zeros((96, 128), np.uint8)
        top, left, kind = int(rng.integers(48)), int(rng.integers(64)), int(rng.integers(1, 21))
        label[top : top + 40, left : left + 48] = kind
        noise = rng.normal(0, 20, (96, 128, 3))
        yield np.clip(colours[label] + noise, 0, 255).astype(np.uint8), label
