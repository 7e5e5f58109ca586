"""Oxford flowers: photographs of 102 kinds (http://www.robots.ox.ac.uk/~vgg/data/flowers/102/).

A sample is the mapper's result for the bytes of an image and its kind: by default float32 (150528,), 3 x 224
x 224 minus the mean colour, and an int from 0 to 101. As in Fluid, ``train`` reads the set that the authors
call "test".
"""

from __future__ import annotations

import functools
import os
import tarfile
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from paddlelike.dataset import common, synthetic
from paddlelike.dataset.image import load_image_bytes, simple_transform
from paddlelike.foundation.docstrings import describe_like
from paddlelike.reader.readers import map_readers, xmap_readers

__all__ = ["fetch", "test", "train", "valid"]

DATA_URL: Final = "http://paddlemodels.bj.bcebos.com/flowers/102flowers.tgz"
LABEL_URL: Final = "http://paddlemodels.bj.bcebos.com/flowers/imagelabels.mat"
SETID_URL: Final = "http://paddlemodels.bj.bcebos.com/flowers/setid.mat"
DATA_MD5: Final = "52808999861908f626f3c1f4e79d11fa"
LABEL_MD5: Final = "e0620be6f572b9609742df49c70aed4d"
SETID_MD5: Final = "a5357ecc9cb78c4bef273ce3793fc85c"

TRAIN_FLAG: Final = "tstid"
TEST_FLAG: Final = "trnid"
VALID_FLAG: Final = "valid"

Mapper = Callable[[Any], Any]
Reader = Callable[[], Any]


def default_mapper(is_train: bool, sample: tuple[bytes, int]) -> tuple[np.ndarray[Any, Any], int]:
    """Return the image resized to 256, cropped to 224 and flattened, and its kind."""
    image = load_image_bytes(sample[0])
    out = simple_transform(image, 256, 224, is_train, mean=[103.94, 116.78, 123.68])
    return out.flatten().astype(np.float32), sample[1]


train_mapper = functools.partial(default_mapper, True)
test_mapper = functools.partial(default_mapper, False)


def train(
    mapper: Mapper = train_mapper, buffered_size: int = 1024, use_xmap: bool = True, cycle: bool = False
) -> Reader:
    """Return the reader of the training set of the Oxford flowers.

    Parameters
    ----------
    mapper
        A function that turns (bytes of an image, its kind from 0 to 101) into a sample; by default an image,
        float32 (150528,), and its kind, an int.
    buffered_size
        The number of samples that are made ahead in threads.
    use_xmap
        Whether threads make the samples, in any order, instead of one after another.
    cycle
        If True, the reader begins again after the last sample, for ever.

    Returns
    -------
    callable
        A function that yields the samples. Each is what ``mapper`` returns.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.
    ExtraMissingError
        SciPy, which reads the labels, is not installed.

    See Also
    --------
    fetch, test, valid

    >>> from paddlelike.dataset import flowers
    >>> image, kind = next(flowers.train()())
    >>> image.shape, image.dtype, kind in range(102)
    ((150528,), dtype('float32'), True)
    """
    return _make_reader(TRAIN_FLAG, mapper, buffered_size, use_xmap, cycle)


@describe_like(train)
def test(
    mapper: Mapper = test_mapper, buffered_size: int = 1024, use_xmap: bool = True, cycle: bool = False
) -> Reader:
    """Return the reader of the test set of the Oxford flowers.

    Returns
    -------
    callable
        A function that yields the samples. Each is what ``mapper`` returns.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.
    ExtraMissingError
        SciPy, which reads the labels, is not installed.

    See Also
    --------
    fetch, train, valid

    >>> from paddlelike.dataset import flowers
    >>> image, kind = next(flowers.test()())
    >>> image.shape, image.dtype, kind in range(102)
    ((150528,), dtype('float32'), True)
    """
    return _make_reader(TEST_FLAG, mapper, buffered_size, use_xmap, cycle)


@describe_like(train)
def valid(mapper: Mapper = test_mapper, buffered_size: int = 1024, use_xmap: bool = True) -> Reader:
    """Return the reader of the validation set of the Oxford flowers.

    Returns
    -------
    callable
        A function that yields the samples. Each is what ``mapper`` returns.

    Raises
    ------
    MissingFileError
        An original file is missing, and made-up samples are not requested.
    ExtraMissingError
        SciPy, which reads the labels, is not installed.

    See Also
    --------
    fetch, test, train

    >>> from paddlelike.dataset import flowers
    >>> image, kind = next(flowers.valid()())
    >>> image.shape, image.dtype, kind in range(102)
    ((150528,), dtype('float32'), True)
    """
    return _make_reader(VALID_FLAG, mapper, buffered_size, use_xmap, False)


def fetch() -> None:
    """Check that the three files are in the cache folder; nothing is downloaded.

    Raises
    ------
    MissingFileError
        An original file is missing; made-up samples do not replace it.

    See Also
    --------
    test, train, valid

    >>> from paddlelike.dataset import flowers
    >>> flowers.fetch()
    Traceback (most recent call last):
    paddlelike.errors.MissingFileError: paddle.dataset: the file ...
    """
    common.download(DATA_URL, "flowers", DATA_MD5)
    common.download(LABEL_URL, "flowers", LABEL_MD5)
    common.download(SETID_URL, "flowers", SETID_MD5)


def _make_reader(split: str, mapper: Mapper, buffered_size: int, use_xmap: bool, cycle: bool) -> Reader:
    data = common.find(DATA_URL, "flowers", DATA_MD5)
    label_file = common.find(LABEL_URL, "flowers", LABEL_MD5)
    set_file = common.find(SETID_URL, "flowers", SETID_MD5)
    if data is None or label_file is None or set_file is None:
        return functools.partial(_make_samples, synthetic.Part("flowers", split, 200), mapper, cycle)
    loadmat = common.import_extra("scipy.io", "scipy", "paddle.dataset.flowers").loadmat
    labels = loadmat(label_file)["labels"][0]
    kinds = {f"jpg/image_{i:05d}.jpg": int(labels[i - 1]) - 1 for i in loadmat(set_file)[split][0]}

    def read() -> Iterator[tuple[bytes, int]]:
        while True:
            with tarfile.open(data) as tar:
                for member in tar:
                    file = tar.extractfile(member) if member.name in kinds else None
                    if file is not None:
                        yield file.read(), kinds[member.name]
            if not cycle:
                return

    if use_xmap:
        return xmap_readers(mapper, read, min(4, os.cpu_count() or 1), buffered_size)
    return map_readers(mapper, read)


def _make_samples(part: synthetic.Part, mapper: Mapper, cycle: bool) -> Iterator[Any]:
    """Yield mapped made-up images; a mapper other than the default receives PNG files."""
    images, kinds = synthetic.make_images(part, classes=102, size=3 * 16 * 16)
    mean = np.array([103.94, 116.78, 123.68], np.float32)[:, None, None]
    while True:
        for image, kind in zip(images, kinds, strict=True):
            large = image.reshape(3, 16, 16).repeat(14, axis=1).repeat(14, axis=2)
            if mapper in (train_mapper, test_mapper):
                yield (large - mean).astype(np.float32).ravel(), int(kind)
            else:
                png = common.import_extra("cv2", "opencv-python-headless", "paddle.dataset.flowers").imencode
                yield mapper((png(".png", large.transpose(1, 2, 0))[1].tobytes(), int(kind)))
        if not cycle:
            return
