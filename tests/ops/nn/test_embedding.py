"""Embeddings, besides their cases."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import VarType
from paddlelike.core.rows import sum_rows
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Spec
from paddlelike.ops.nn.embedding import LookupTable, LookupTableGrad, LookupTableV2, LookupTableV2Grad
from tests.helpers.fresh import fresh_programs

W = np.arange(6, dtype=np.float32).reshape(3, 2)
IDS = np.array([[0], [2], [1], [2]])


@pytest.mark.parametrize("padding_idx", [-1, 1], ids=["no-padding", "padding"])
@pytest.mark.parametrize("wrong", [3, -1, -2])
def test_an_id_outside_of_the_table_is_refused_with_its_index(wrong: int, padding_idx: int) -> None:
    ids, d_out = np.array([[0], [wrong]]), np.ones((2, 2), np.float32)
    message = rf"Ids hold {wrong} \(element 1 of 2\), but W has 3 rows"
    for lookup, grad, shaped in (
        (LookupTable, LookupTableGrad, ids),
        (LookupTableV2, LookupTableV2Grad, ids[:, 0]),
    ):
        with pytest.raises(EnforceNotMet, match=message):
            lookup.forward(W, shaped, padding_idx=padding_idx)
        for is_sparse in (False, True):
            with pytest.raises(EnforceNotMet, match=message):
                grad.forward(d_out, W, shaped, is_sparse=is_sparse, padding_idx=padding_idx)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_id_minus_one_without_padding_neither_reads_nor_trains_a_row(is_sparse: bool) -> None:
    with fresh_programs() as (main, startup):
        ids = fluid.data("ids", [-1, 1], "int64")
        start = fluid.initializer.NumpyArrayInitializer(W)
        attr = fluid.ParamAttr(name="table", initializer=start)
        out = fluid.layers.embedding(ids, [3, 2], is_sparse=is_sparse, param_attr=attr)
        fluid.optimizer.SGD(1.0).minimize(fluid.layers.reduce_sum(out))
        exe = fluid.Executor()
        exe.run(startup)
        with pytest.raises(EnforceNotMet, match="Ids hold -1"):
            exe.run(main, feed={"ids": np.array([[-1]])}, fetch_list=[out])
        np.testing.assert_array_equal(np.array(fluid.global_scope().find_var("table").get_tensor()), W)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_padding_minus_one_means_the_last_row(is_sparse: bool) -> None:
    with fresh_programs() as (main, startup):
        ids = fluid.data("ids", [-1, 1], "int64")
        attr = fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(W + 1))
        out = fluid.layers.embedding(ids, [3, 2], is_sparse=is_sparse, padding_idx=-1, param_attr=attr)
        exe = fluid.Executor()
        exe.run(startup)
        (value,) = exe.run(main, feed={"ids": np.array([[2], [1]])}, fetch_list=[out])
        assert value.tolist() == [[0, 0], [3, 4]]


def test_ids_without_the_trailing_one_are_refused() -> None:
    with pytest.raises(ShapeError, match="last dim must be 1"):
        LookupTable.infer(Spec((3, 2), VarType.FP32), Spec((4,), VarType.INT64))


def test_only_sparse_gradients_include_padding_rows() -> None:
    # as Paddle 1.8.5 does
    ones = np.ones((4, 2), np.float32)
    dense = LookupTableGrad.forward(ones, W, IDS, is_sparse=False, padding_idx=2)
    sparse = LookupTableGrad.forward(ones, W, IDS, is_sparse=True, padding_idx=2)
    assert dense.tolist() == [[1, 1], [1, 1], [0, 0]]
    assert (sparse.rows(), sparse.height()) == ([0, 2, 1, 2], 3)


def test_a_sparse_gradient_is_declared_as_selected_rows() -> None:
    w, ids, d_out = (
        Spec((3, 2), VarType.FP32),
        Spec((-1, 1), VarType.INT64),
        Spec((-1, 2), VarType.FP32),
    )
    kinds = [LookupTableGrad.infer(d_out, w, ids, is_sparse=sparse).kind for sparse in (False, True)]
    assert kinds == [VarType.LOD_TENSOR, VarType.SELECTED_ROWS]


def test_rows_are_added_in_order_with_the_same_bits_as_the_plain_loop() -> None:
    rng = np.random.default_rng(0)
    rows, values = rng.integers(0, 9, 200), rng.standard_normal((200, 3)).astype(np.float32)
    plain = np.zeros((9, 3), np.float32)
    for row, value in zip(rows, values, strict=True):
        plain[row] += value
    np.testing.assert_array_equal(sum_rows(rows, values, 9), plain)
    assert sum_rows(rows[:0], values[:0], 4).tolist() == [[0, 0, 0]] * 4
