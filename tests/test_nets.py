"""Groups of layers against their formulas in numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError
from tests.helpers.small_networks import random_input, run, softmax

layers = fluid.layers


@pytest.mark.parametrize("heads", [1, 2])
def test_attention_weighs_values_by_the_softmax_of_products(heads: int) -> None:
    (q, a), (k, b), (v, c) = (
        random_input("q", 2, 3, 4),
        random_input("k", 2, 5, 4),
        random_input("v", 2, 5, 6),
    )
    out = fluid.nets.scaled_dot_product_attention(q, k, v, num_heads=heads)
    names = [p.name for p in out.block.all_parameters()]
    found, *parameters = run([out, *names], q=a, k=b, v=c)
    if heads > 1:
        a, b, c = (
            x @ w + bias for x, w, bias in zip((a, b, c), parameters[::2], parameters[1::2], strict=True)
        )
    parts = [
        softmax(x @ y.transpose(0, 2, 1) / math.sqrt(4 / heads)) @ z
        for x, y, z in zip(*(np.split(t, heads, axis=2) for t in (a, b, c)), strict=True)
    ]
    np.testing.assert_allclose(found, np.concatenate(parts, 2), atol=1e-6)


def test_glu_gates_one_half_with_the_other() -> None:
    x, a = random_input("x", 3, 6)
    np.testing.assert_allclose(run(fluid.nets.glu(x), x=a), a[:, :3] / (1 + np.exp(-a[:, 3:])), atol=1e-6)


def test_data_accepts_unknown_dims() -> None:
    image = fluid.data("image", [None, 3, -1], "float64", lod_level=1)
    assert (image.shape, image.lod_level, image.stop_gradient) == ((-1, 3, -1), 1, True)


@pytest.mark.parametrize(("shape", "dtype"), [([None, 4], "float32"), ([None, 3], "int64")])
def test_declaring_a_data_name_twice_is_refused(shape: list[int], dtype: str) -> None:
    fluid.data("x", [None, 3], "float32")
    with pytest.raises(GraphError, match="'x'"):
        fluid.data("x", shape, dtype)


def test_embedding_looks_rows_up_and_its_padding_row_is_zeros() -> None:
    ids = np.array([[0, 2], [3, 1]], "int64")
    table = np.arange(8, dtype="float32").reshape(4, 2)
    attr = fluid.ParamAttr(name="table", initializer=fluid.initializer.NumpyArrayInitializer(table))
    out = fluid.embedding(fluid.data("ids", [None, 2], "int64"), [4, 2], padding_idx=-1, param_attr=attr)
    table[3] = 0
    np.testing.assert_array_equal(run(out, ids=ids), table[ids])


def test_a_padding_row_outside_of_the_table_is_refused() -> None:
    with pytest.raises(
        GraphError, match=r"padding_idx is 4, expected -4 \.\. 3 for a table of size \[4, 2\]"
    ):
        fluid.embedding(fluid.data("ids", [None], "int64"), [4, 2], padding_idx=4)


def test_one_hot_has_a_one_at_each_id() -> None:
    ids = np.array([2, 0, 1], "int64")
    out = fluid.one_hot(fluid.data("ids", [None], "int64"), depth=3)
    np.testing.assert_array_equal(run(out, ids=ids), np.eye(3, dtype="float32")[ids])
