"""``paddle.dataset.image``: load, resize, crop and flip images, height x width x BGR as OpenCV has them.

Loading and resizing need OpenCV (``pip install 'paddlelike[datasets]'``).
"""

from __future__ import annotations

import pickle
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from paddlelike.dataset import common
from paddlelike.errors import FormatError
from paddlelike.foundation.docstrings import describe_like

__all__ = [
    "batch_images_from_tar",
    "center_crop",
    "left_right_flip",
    "load_and_transform",
    "load_image",
    "load_image_bytes",
    "random_crop",
    "resize_short",
    "simple_transform",
    "to_chw",
]

Array = np.ndarray[Any, Any]


def load_image_bytes(bytes: bytes, is_color: bool = True) -> Array:
    """Return the image in the bytes of a file.

    Parameters
    ----------
    bytes
        The content of a PNG, JPEG or other file that OpenCV reads.
    is_color
        If True, the image has three channels, blue, green and red. If False, it is grey, (H, W).

    Returns
    -------
    numpy.ndarray
        The image, uint8 (H, W, 3) or (H, W).

    Raises
    ------
    FormatError
        The bytes are not an image.
    ExtraMissingError
        OpenCV is not installed.

    See Also
    --------
    batch_images_from_tar, center_crop, left_right_flip, load_and_transform, load_image, random_crop,
    resize_short, simple_transform, to_chw

    >>> from paddlelike.dataset import image
    >>> import cv2, numpy as np
    >>> png = cv2.imencode(".png", np.zeros((4, 5, 3), np.uint8))[1].tobytes()
    >>> image.load_image_bytes(png).shape
    (4, 5, 3)
    """
    image = _cv2().imdecode(np.frombuffer(bytes, np.uint8), 1 if is_color else 0)
    if image is None:
        raise FormatError(f"load_image_bytes: {len(bytes)} bytes are not an image that OpenCV reads")
    return np.asarray(image)


@describe_like(load_image_bytes)
def load_image(file: str, is_color: bool = True) -> Array:
    """Return the image in a file.

    Parameters
    ----------
    file
        The path of the image.

    Returns
    -------
    numpy.ndarray
        The image, uint8 (H, W, 3) or (H, W).

    Raises
    ------
    FileNotFoundError
        The file is missing.
    FormatError
        The file is not an image.
    ExtraMissingError
        OpenCV is not installed.

    See Also
    --------
    batch_images_from_tar, center_crop, left_right_flip, load_and_transform, load_image_bytes, random_crop,
    resize_short, simple_transform, to_chw

    >>> from paddlelike.dataset import image
    >>> import cv2, numpy as np
    >>> cv2.imwrite("zeros.png", np.zeros((4, 5, 3), np.uint8))
    True
    >>> image.load_image("zeros.png", is_color=False).shape
    (4, 5)
    """
    return load_image_bytes(Path(file).read_bytes(), is_color)


def resize_short(im: Array, size: int) -> Array:
    """Resize an image, by cubic interpolation, so that its shorter edge has ``size`` pixels.

    Parameters
    ----------
    im
        The image, (H, W, 3), or (H, W) if it is grey.
    size
        The number of pixels of the shorter edge.

    Returns
    -------
    numpy.ndarray
        The image, (H, W, 3) or (H, W), with the same ratio of edges and the same dtype.

    Raises
    ------
    ExtraMissingError
        OpenCV is not installed.

    See Also
    --------
    batch_images_from_tar, center_crop, left_right_flip, load_and_transform, load_image, load_image_bytes,
    random_crop, simple_transform, to_chw

    >>> from paddlelike.dataset import image
    >>> import numpy as np
    >>> image.resize_short(np.zeros((4, 6, 3), np.uint8), 2).shape
    (2, 3, 3)
    """
    height, width = im.shape[:2]
    new_height, new_width = (
        (size * height // width, size) if height > width else (size, size * width // height)
    )
    cv2 = _cv2()
    return np.asarray(cv2.resize(im, (new_width, new_height), interpolation=cv2.INTER_CUBIC))


def to_chw(im: Array, order: Sequence[int] = (2, 0, 1)) -> Array:
    """Put the dims of an image into another order.

    Parameters
    ----------
    im
        The image, (H, W, 3), or (H, W) if it is grey.
    order
        The old position of each new dim. The default turns (H, W, C) into (C, H, W).

    Returns
    -------
    numpy.ndarray
        A view of the image, by default (C, H, W).

    Raises
    ------
    ValueError
        ``order`` does not name each dim once.

    See Also
    --------
    batch_images_from_tar, center_crop, left_right_flip, load_and_transform, load_image, load_image_bytes,
    random_crop, resize_short, simple_transform

    >>> from paddlelike.dataset import image
    >>> import numpy as np
    >>> image.to_chw(np.zeros((4, 5, 3))).shape
    (3, 4, 5)
    """
    if len(order) != im.ndim:
        raise ValueError(f"to_chw: order {tuple(order)} does not fit an image of shape {im.shape}")
    return im.transpose(order)


def center_crop(im: Array, size: int, is_color: bool = True) -> Array:
    """Cut the square in the middle out of an image.

    Parameters
    ----------
    im
        The image, (H, W, 3), or (H, W) if it is grey.
    size
        The number of pixels of an edge of the square.
    is_color
        It has no effect.

    Returns
    -------
    numpy.ndarray
        A view of the image, (size, size, 3) or (size, size).

    See Also
    --------
    batch_images_from_tar, left_right_flip, load_and_transform, load_image, load_image_bytes, random_crop,
    resize_short, simple_transform, to_chw

    >>> from paddlelike.dataset import image
    >>> import numpy as np
    >>> image.center_crop(np.arange(16).reshape(4, 4), 2)
    array([[ 5,  6],
           [ 9, 10]])
    """
    height, width = im.shape[:2]
    top, left = (height - size) // 2, (width - size) // 2
    return im[top : top + size, left : left + size]


@describe_like(center_crop)
def random_crop(im: Array, size: int, is_color: bool = True) -> Array:
    """Cut a square out of an image, at a place that numpy's global generator chooses.

    Returns
    -------
    numpy.ndarray
        A view of the image, (size, size, 3) or (size, size).

    See Also
    --------
    batch_images_from_tar, center_crop, left_right_flip, load_and_transform, load_image, load_image_bytes,
    resize_short, simple_transform, to_chw

    >>> from paddlelike.dataset import image
    >>> import numpy as np
    >>> image.random_crop(np.zeros((4, 6, 3)), 2).shape
    (2, 2, 3)
    """
    height, width = im.shape[:2]
    top = np.random.randint(0, height - size + 1)  # noqa: NPY002  (scripts seed this one)
    left = np.random.randint(0, width - size + 1)  # noqa: NPY002
    return im[top : top + size, left : left + size]


@describe_like(center_crop)
def left_right_flip(im: Array, is_color: bool = True) -> Array:
    """Exchange left and right of an image.

    Returns
    -------
    numpy.ndarray
        A view of the image, of the same shape.

    See Also
    --------
    batch_images_from_tar, center_crop, load_and_transform, load_image, load_image_bytes, random_crop,
    resize_short, simple_transform, to_chw

    >>> from paddlelike.dataset import image
    >>> import numpy as np
    >>> image.left_right_flip(np.array([[1, 2, 3]]))
    array([[3, 2, 1]])
    """
    return im[:, ::-1]


def simple_transform(
    im: Array,
    resize_size: int,
    crop_size: int,
    is_train: bool,
    is_color: bool = True,
    mean: Sequence[float] | Array | None = None,
) -> Array:
    """Resize and crop an image, and for training flip half of the images.

    Parameters
    ----------
    im
        The image, (H, W, 3), or (H, W) if it is grey.
    resize_size
        The number of pixels of the shorter edge before the image is cropped.
    crop_size
        The number of pixels of an edge of the square that is kept.
    is_train
        If True, crop at a random place and flip half of the images; otherwise crop the middle.
    is_color
        If True, one number per channel is expected in ``mean``.
    mean
        The numbers to subtract, one per channel or one per element; None for none.

    Returns
    -------
    numpy.ndarray
        The image, float32 (3, crop_size, crop_size), or (crop_size, crop_size) if it is grey.

    Raises
    ------
    ExtraMissingError
        OpenCV is not installed.

    See Also
    --------
    batch_images_from_tar, center_crop, left_right_flip, load_and_transform, load_image, load_image_bytes,
    random_crop, resize_short, to_chw

    >>> from paddlelike.dataset import image
    >>> import numpy as np
    >>> found = image.simple_transform(np.zeros((8, 9, 3)), 6, 4, is_train=False, mean=[1, 2, 3])
    >>> found.shape, found[:, 0, 0]
    ((3, 4, 4), array([-1., -2., -3.], dtype=float32))
    """
    im = resize_short(im, resize_size)
    if is_train:
        im = random_crop(im, crop_size, is_color)
        if np.random.randint(2) == 0:  # noqa: NPY002
            im = left_right_flip(im, is_color)
    else:
        im = center_crop(im, crop_size, is_color)
    out = (to_chw(im) if im.ndim == 3 else im).astype(np.float32)
    if mean is not None:
        means = np.array(mean, np.float32)
        out -= means[:, np.newaxis, np.newaxis] if means.ndim == 1 and is_color else means
    return out


@describe_like(simple_transform)
def load_and_transform(
    filename: str,
    resize_size: int,
    crop_size: int,
    is_train: bool,
    is_color: bool = True,
    mean: Sequence[float] | Array | None = None,
) -> Array:
    """Load an image from a file, resize and crop it, and for training flip half of the images.

    Parameters
    ----------
    filename
        The path of the image.
    is_color
        If True, the image has three channels, blue, green and red. If False, it is grey, (H, W).

    Returns
    -------
    numpy.ndarray
        The image, float32 (3, crop_size, crop_size), or (crop_size, crop_size) if it is grey.

    Raises
    ------
    FileNotFoundError
        The file is missing.
    FormatError
        The file is not an image.
    ExtraMissingError
        OpenCV is not installed.

    See Also
    --------
    batch_images_from_tar, center_crop, left_right_flip, load_image, load_image_bytes, random_crop,
    resize_short, simple_transform, to_chw

    >>> from paddlelike.dataset import image
    >>> import cv2, numpy as np
    >>> cv2.imwrite("black.png", np.zeros((8, 9, 3), np.uint8))
    True
    >>> image.load_and_transform("black.png", 6, 4, is_train=False).shape
    (3, 4, 4)
    """
    return simple_transform(load_image(filename, is_color), resize_size, crop_size, is_train, is_color, mean)


def batch_images_from_tar(
    data_file: str, dataset_name: str, img2label: Mapping[str, Any], num_per_batch: int = 1024
) -> str:
    """Write the images of a tar file into files of many images.

    They are pickles of ``{"label": labels, "data": bytes of the images}`` in
    ``<data_file>_batch/<dataset_name>``. If that folder exists, nothing is written.

    Parameters
    ----------
    data_file
        The path of the tar file.
    dataset_name
        The name of the new files' folder and of their list.
    img2label
        Labels by the names of the images in the tar file; others are left out.
    num_per_batch
        The number of images of a file.

    Returns
    -------
    str
        The path of a text file with one path of a new file per line.

    See Also
    --------
    center_crop, left_right_flip, load_and_transform, load_image, load_image_bytes, random_crop, resize_short,
    simple_transform, to_chw

    >>> from paddlelike.dataset import image
    >>> import tarfile
    >>> with open("a.jpg", "wb"), tarfile.open("images.tar", "w") as tar:
    ...     tar.add("a.jpg")
    >>> image.batch_images_from_tar("images.tar", "train", {"a.jpg": 3})
    'images.tar_batch/train.txt'
    """
    folder = Path(f"{data_file}_batch")
    batches, listing = folder / dataset_name, folder / f"{dataset_name}.txt"
    if batches.exists():
        return str(listing)
    batches.mkdir(parents=True)
    paths: list[str] = []
    data: list[bytes] = []
    labels: list[Any] = []

    def write() -> None:
        path = batches / f"batch_{len(paths)}"
        path.write_bytes(pickle.dumps({"label": labels, "data": data}, protocol=2))
        paths.append(str(path.absolute()))

    with tarfile.open(data_file) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.name in img2label else None
            if file is None:
                continue
            data.append(file.read())
            labels.append(img2label[member.name])
            if len(data) == num_per_batch:
                write()
                data, labels = [], []
    if data:
        write()
    listing.write_text("".join(f"{path}\n" for path in paths))
    return str(listing)


def _cv2() -> ModuleType:
    return common.import_extra("cv2", "opencv-python-headless", "paddle.dataset.image")
