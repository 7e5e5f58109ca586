"""Cases of unfold, one window at a time."""

import numpy as np

from tests.ops.harness.contract import Case

X = np.random.default_rng(18).standard_normal((2, 3, 5, 6))


def _columns(X, kernel_sizes, strides, paddings, dilations):
    top, left, bottom, right = paddings
    x = np.pad(X, ((0, 0), (0, 0), (top, bottom), (left, right)))
    height, width = (d * (k - 1) + 1 for k, d in zip(kernel_sizes, dilations, strict=True))
    return np.stack(
        [
            x[:, :, i : i + height : dilations[0], j : j + width : dilations[1]].reshape(len(x), -1)
            for i in range(0, x.shape[2] - height + 1, strides[0])
            for j in range(0, x.shape[3] - width + 1, strides[1])
        ],
        2,
    )


def _case(note, kernel_sizes, strides, paddings, dilations) -> Case:
    attrs = {"kernel_sizes": kernel_sizes, "strides": strides, "paddings": paddings}
    return Case("unfold", {"X": X}, _columns, attrs | {"dilations": dilations}, note=note)


CASES = [
    _case("padded", [2, 3], [1, 2], [1, 0, 1, 2], [1, 1]),
    _case("dilated", [3, 2], [1, 1], [0, 0, 0, 0], [2, 3]),
    _case("1x1", [1, 1], [1, 1], [0, 0, 0, 0], [1, 1]),
]
