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
    """Return the image in the bytes of a file, uint8 (H, W, 3) in BGR, or (H, W) unless ``is_color``.

    Raises FormatError for bytes that are not an image.
    """
    image = _cv2().imdecode(np.frombuffer(bytes, np.uint8), 1 if is_color else 0)
    if image is None:
        raise FormatError(f"load_image_bytes: {len(bytes)} bytes are not an image that OpenCV reads")
    return np.asarray(image)


def load_image(file: str, is_color: bool = True) -> Array:
    """Return the image in a file, as :func:`load_image_bytes`.

    Raises FileNotFoundError when there is none.
    """
    return load_image_bytes(Path(file).read_bytes(), is_color)


def resize_short(im: Array, size: int) -> Array:
    """Return the image resized, cubic, so that the shorter edge has ``size`` pixels."""
    height, width = im.shape[:2]
    new_height, new_width = (
        (size * height // width, size) if height > width else (size, size * width // height)
    )
    cv2 = _cv2()
    return np.asarray(cv2.resize(im, (new_width, new_height), interpolation=cv2.INTER_CUBIC))


def to_chw(im: Array, order: Sequence[int] = (2, 0, 1)) -> Array:
    """Return the image with its dims in another order, by default (C, H, W).

    Raises ValueError unless ``order`` names all dims.

    >>> to_chw(np.zeros((4, 5, 3))).shape
    (3, 4, 5)
    """
    if len(order) != im.ndim:
        raise ValueError(f"to_chw: order {tuple(order)} does not fit an image of shape {im.shape}")
    return im.transpose(order)


def center_crop(im: Array, size: int, is_color: bool = True) -> Array:
    """Return the square of ``size`` in the middle."""
    height, width = im.shape[:2]
    top, left = (height - size) // 2, (width - size) // 2
    return im[top : top + size, left : left + size]


def random_crop(im: Array, size: int, is_color: bool = True) -> Array:
    """Return a square of ``size``, placed by numpy's global generator."""
    height, width = im.shape[:2]
    top = np.random.randint(0, height - size + 1)  # noqa: NPY002  (scripts seed this one)
    left = np.random.randint(0, width - size + 1)  # noqa: NPY002
    return im[top : top + size, left : left + size]


def left_right_flip(im: Array, is_color: bool = True) -> Array:
    """Return the image with left and right exchanged."""
    return im[:, ::-1]


def simple_transform(
    im: Array,
    resize_size: int,
    crop_size: int,
    is_train: bool,
    is_color: bool = True,
    mean: Sequence[float] | Array | None = None,
) -> Array:
    """Return the image resized, cropped and, in half of the trainings, flipped.

    The result is float32 (C, H, W), minus ``mean``.

    ``mean`` is one number per channel or one per element.
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


def load_and_transform(
    filename: str,
    resize_size: int,
    crop_size: int,
    is_train: bool,
    is_color: bool = True,
    mean: Sequence[float] | Array | None = None,
) -> Array:
    """Return :func:`simple_transform` of the image in a file."""
    return simple_transform(load_image(filename, is_color), resize_size, crop_size, is_train, is_color, mean)


def batch_images_from_tar(
    data_file: str, dataset_name: str, img2label: Mapping[str, Any], num_per_batch: int = 1024
) -> str:
    """Write the images of a tar file, ``num_per_batch`` per file; return the path of a list of the new files.

    The files are pickles of ``{"label": labels, "data": bytes of the images}`` in ``<data_file>_batch``. If
    they are there already, nothing is written. ``img2label`` says which images, by their name in the tar
    file.
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
