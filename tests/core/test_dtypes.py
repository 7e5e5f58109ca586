"""Element types under their names in Paddle, numpy, safetensors and ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlelike.core import TENSOR_DTYPES, AttrType, VarType, convert_dtype, dtype_row, numpy_dtype


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float32", VarType.FP32),
        (np.float32, VarType.FP32),
        (np.dtype(">f4"), VarType.FP32),
        (VarType.INT64, VarType.INT64),
        (3, VarType.INT64),
        ("bfloat16", VarType.BF16),
        ("uint16", VarType.BF16),
        (bool, VarType.BOOL),
        ("complex128", VarType.COMPLEX128),
    ],
    ids=str,
)
def test_an_element_type_has_several_names(dtype: Any, expected: VarType) -> None:
    assert convert_dtype(dtype) is expected


@pytest.mark.parametrize("dtype", ["uint32", "text", object, True], ids=str)
def test_types_that_paddle_does_not_have_are_refused(dtype: Any) -> None:
    with pytest.raises(TypeError, match=r"is not an element type of a Paddle tensor; known: bfloat16, bool,"):
        convert_dtype(dtype)


def test_a_kind_of_variable_is_not_an_element_type() -> None:
    for dtype in (VarType.LOD_TENSOR, VarType.READER):
        with pytest.raises(TypeError, match=rf"VarType\.{dtype.name} is not an element type of a tensor"):
            dtype_row(dtype)


def test_rows_of_the_dtype_table_agree_with_numpy_and_have_unique_names() -> None:
    for var_type, row in TENSOR_DTYPES.items():
        assert convert_dtype(row.numpy) is var_type
        assert numpy_dtype(var_type) == row.numpy
    rows = TENSOR_DTYPES.values()
    assert len({row.onnx for row in rows}) == len(rows)
    names = [row.safetensors for row in rows if row.safetensors]
    assert len(set(names)) == len(names)


def test_the_values_match_framework_proto() -> None:
    assert [VarType.FP32, VarType.LOD_TENSOR, VarType.UINT8, VarType.BF16] == [5, 7, 20, 22]
    assert [AttrType.INT, AttrType.BLOCK, AttrType.LONGS] == [0, 8, 11]
    assert str(VarType.FP32) == "VarType.FP32"
