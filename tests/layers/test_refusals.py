"""Errors of layers name the layer, the argument, what came and what was expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.canonical import canonical

layers = fluid.layers


def x(*shape: Any, dtype: str = "float32", name: str = "x") -> Any:
    return fluid.data(name, [None, *shape], dtype)


REFUSALS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "array": (
        lambda: layers.relu(np.ones([2, 3])),
        TypeError,
        (
            "layer 'relu': x must be a variable, got a numpy array of shape [2, 3]\n"
            "  hint: layers.assign makes a variable of a numpy array, layers.fill_constant of a number"
        ),
    ),
    "dtype": (
        lambda: layers.fc([x(4), x(3, dtype="int64", name="ids")], 2),
        TypeError,
        (
            "layer 'fc': input[1] is variable 'ids' of dtype INT64 and shape [-1, 3]; expected "
            "FP16, FP32, FP64\n  hint: convert the variable first with layers.cast"
        ),
    ),
    "unknown columns": (
        lambda: layers.fc(x(-1), 3),
        ValueError,
        (
            "layer 'fc': input 'x' of shape [-1, -1] has unknown dims from dim 1 on, so that its weight "
            "would have no shape\n  hint: declare those dims, or pass num_flatten_dims"
        ),
    ),
    "another shape": (
        lambda: [x(3), x(4)],
        ValueError,
        (
            "variable 'x' is declared again with shape (-1, 4); it has (-1, 3)\n"
            "  hint: pass another name, or build the network under fluid.unique_name.guard()"
        ),
    ),
    "shape of data": (
        lambda: fluid.data("x", 3),
        TypeError,
        (
            "layer 'data': shape of 'x' must be a list of ints, got 3 (int)\n"
            "  hint: [None, 3] for a batch of rows of 3 numbers"
        ),
    ),
    "choice": (
        lambda: layers.pool2d(x(3, 8, 8), 2, "most"),
        ValueError,
        "layer 'pool2d': pool_type is 'most', expected one of 'max', 'avg'",
    ),
    "groups": (
        lambda: layers.conv2d(x(3, 8, 8), 4, 3, groups=2),
        ValueError,
        (
            "layer 'conv2d': input 'x' of shape [-1, 3, 8, 8] has 3 channels, which cannot be divided into "
            "2 groups"
        ),
    ),
    "rank": (
        lambda: layers.conv2d(x(3, 8), 4, 3),
        ValueError,
        "layer 'conv2d': input 'x' of shape [-1, 3, 8] has 3 dims, expected 4 (NCHW)",
    ),
    "padding": (
        lambda: layers.conv2d(x(3, 8, 8), 4, 3, padding=[1, 2, 3]),
        ValueError,
        (
            "layer 'conv2d': padding is [1, 2, 3] (list), expected 'SAME', 'VALID', an int, 2 ints, 4 ints, "
            "or 4 pairs"
        ),
    ),
    "padded channels": (
        lambda: layers.conv2d(x(3, 8, 8), 4, 3, padding=[[0, 0], [1, 1], [1, 1], [1, 1]]),
        ValueError,
        "layer 'conv2d': padding is [[0, 0], [1, 1], [1, 1], [1, 1]]; expected [0, 0] for batch and channels",
    ),
    "matrices": (
        lambda: layers.matmul(x(3, 4), x(3, 5, name="y")),
        ValueError,
        (
            "layer 'matmul': x of shape [-1, 3, 4] has 4 columns, y of shape [-1, 3, 5] has 3 rows "
            "(transpose_x=False, transpose_y=False)\n  hint: transpose one of them, or reshape it"
        ),
    ),
    "axis": (
        lambda: layers.softmax(x(4), axis=2),
        ValueError,
        "layer 'softmax': axis is 2 for input 'x' of shape [-1, 4], expected -2 .. 1",
    ),
    "permutation": (
        lambda: layers.transpose(x(4, 5), [0, 1]),
        ValueError,
        ("layer 'transpose': perm is [0, 1], expected a permutation of 0 .. 2 for x 'x' of shape [-1, 4, 5]"),
    ),
    "two unknown dims": (
        lambda: layers.reshape(x(6), [-1, -1]),
        ValueError,
        "layer 'reshape': shape is [-1, -1] for x 'x' of shape [-1, 6]; only one dim can be -1",
    ),
    "parts": (
        lambda: layers.split(x(6), 4, dim=1),
        ValueError,
        (
            "layer 'split': num_or_sections is 4, which does not divide dim 1 of input 'x' of shape [-1, 6] "
            "into equal parts\n  hint: pass a list of lengths for unequal parts"
        ),
    ),
    "limits": (
        lambda: layers.slice(x(6), [1], [0, 1], [2]),
        ValueError,
        "layer 'slice': starts is [0, 1] (list), expected a variable or 1 ints, one for each of axes [1]",
    ),
    "dtypes": (
        lambda: layers.concat([x(6), x(6, dtype="int64", name="ids")]),
        ValueError,
        (
            "layer 'concat': input holds 'x' of dtype FP32 and 'ids' of dtype INT64\n"
            "  hint: convert one of them with layers.cast"
        ),
    ),
    "padding row": (
        lambda: layers.embedding(x(1, dtype="int64"), [5, 3], padding_idx=7),
        ValueError,
        "layer 'embedding': padding_idx is 7, expected -5 .. 4 for a table of size [5, 3]",
    ),
    "heads": (
        lambda: fluid.nets.scaled_dot_product_attention(x(3, 4), x(3, 4), x(3, 4), num_heads=3),
        ValueError,
        (
            "scaled_dot_product_attention: queries [-1, 3, 4], keys [-1, 3, 4], values [-1, 3, 4], 3 heads; "
            "expected widths that are multiples of the number of heads"
        ),
    ),
    "distribution": (
        lambda: layers.Normal(x(3), 1.0),
        ValueError,
        "Normal: loc, scale must all be variables, or none of them",
    ),
    "no sample": (
        lambda: layers.Categorical([0.5, 0.5]).sample([3]),
        NotImplementedError,
        "Categorical has no sample",
    ),
    "constant": (
        lambda: layers.assign(np.zeros([2, 2])),
        TypeError,
        (
            "layer 'assign': input is a numpy array of shape [2, 2] of dtype float64; expected bool, "
            "float32, int32 or int64"
        ),
    ),
}


@pytest.mark.parametrize(("build", "kind", "text"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_names_the_layer_the_argument_and_the_reason(
    build: Any, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as caught:
        build()
    assert str(caught.value) == text


def test_a_refused_layer_appends_nothing() -> None:
    image = x(3, 8, 8)
    before = canonical(fluid.default_main_program())
    with pytest.raises(ValueError, match="groups"):
        layers.conv2d(image, 4, 3, groups=2)
    assert canonical(fluid.default_main_program()) == before
    assert layers.conv2d(image, 4, 3).name == "conv2d_0.tmp_1"
