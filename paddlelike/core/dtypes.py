"""The table of element types: Paddle's enum values, numpy dtypes, names in other formats.

The values are the numbers of ``VarType.Type`` in Paddle's framework.proto (1.8; the last rows exist since
2.x).
"""

from __future__ import annotations

import enum
from typing import Any, Final, NamedTuple

import numpy as np


class _PickledByValue(enum.IntEnum):
    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Return the class and the value; Python before 3.11.4 would write a call of ``getattr``."""
        return type(self), (self.value,)


class VarType(_PickledByValue):
    """The kind of value of a variable, or the element type of a tensor (Paddle uses one enum for both)."""

    BOOL = 0
    INT16 = 1
    INT32 = 2
    INT64 = 3
    FP16 = 4
    FP32 = 5
    FP64 = 6
    LOD_TENSOR = 7
    SELECTED_ROWS = 8
    FEED_MINIBATCH = 9
    FETCH_LIST = 10
    STEP_SCOPES = 11
    LOD_RANK_TABLE = 12
    LOD_TENSOR_ARRAY = 13
    PLACE_LIST = 14
    READER = 15
    RAW = 17
    TUPLE = 18
    SIZE_T = 19
    UINT8 = 20
    INT8 = 21
    BF16 = 22
    COMPLEX64 = 23
    COMPLEX128 = 24
    STRING = 25
    STRINGS = 26
    VOCAB = 27
    FEED_LIST = 28
    PSTRING = 29
    SPARSE_COO = 30
    SPARSE_CSR = 31
    FP8_E4M3FN = 32
    FP8_E5M2 = 33
    UINT16 = 36
    UINT32 = 37
    UINT64 = 38

    def __str__(self) -> str:
        return f"VarType.{self.name}"


class AttrType(_PickledByValue):
    """The type of an operator's attribute (``AttrType`` of framework.proto)."""

    INT = 0
    FLOAT = 1
    STRING = 2
    INTS = 3
    FLOATS = 4
    STRINGS = 5
    BOOLEAN = 6
    BOOLEANS = 7
    BLOCK = 8
    LONG = 9
    BLOCKS = 10
    LONGS = 11
    FLOAT64S = 12
    VAR = 13
    VARS = 14
    FLOAT64 = 15
    SCALAR = 16
    SCALARS = 17


class DType(NamedTuple):
    """One row: an element type under its names in Paddle, numpy, safetensors and ONNX."""

    var_type: VarType
    numpy: np.dtype[Any]
    safetensors: str | None
    onnx: int  # TensorProto.DataType


def _row(var_type: VarType, numpy: str, safetensors: str | None, onnx: int) -> DType:
    return DType(var_type, np.dtype(numpy), safetensors, onnx)


# numpy has no bf16: its bit patterns are held as uint16.
TENSOR_DTYPES: Final = {
    row.var_type: row
    for row in (
        _row(VarType.BOOL, "bool", "BOOL", 9),
        _row(VarType.INT16, "int16", "I16", 5),
        _row(VarType.INT32, "int32", "I32", 6),
        _row(VarType.INT64, "int64", "I64", 7),
        _row(VarType.FP16, "float16", "F16", 10),
        _row(VarType.FP32, "float32", "F32", 1),
        _row(VarType.FP64, "float64", "F64", 11),
        _row(VarType.UINT8, "uint8", "U8", 2),
        _row(VarType.INT8, "int8", "I8", 3),
        _row(VarType.BF16, "uint16", "BF16", 16),
        _row(VarType.COMPLEX64, "complex64", None, 14),
        _row(VarType.COMPLEX128, "complex128", None, 15),
    )
}

_BY_NUMPY: Final = {row.numpy: row.var_type for row in TENSOR_DTYPES.values()}
_BY_NAME: Final = {row.numpy.name: row.var_type for row in TENSOR_DTYPES.values()} | {
    "bfloat16": VarType.BF16
}


def convert_dtype(dtype: object) -> VarType:
    """Return the element type of a VarType, a numpy dtype or type, or a name.

    Parameters
    ----------
    dtype
        The type, in any of these forms.

    Returns
    -------
    VarType
        The member, such as ``VarType.FP32``.

    Raises
    ------
    TypeError
        Tensors have no elements of that type.

    See Also
    --------
    fluid.core.numpy_dtype, fluid.data_feeder.convert_dtype

    >>> convert_dtype("float32") is convert_dtype(np.float32) is VarType.FP32
    True
    """
    if isinstance(dtype, VarType):
        return dtype
    if isinstance(dtype, int) and not isinstance(dtype, bool):
        return VarType(dtype)
    if isinstance(dtype, str) and dtype in _BY_NAME:
        return _BY_NAME[dtype]
    try:
        native = np.dtype(dtype).newbyteorder("=")  # type: ignore[call-overload]
        return _BY_NUMPY.get(native) or _BY_NAME[native.name]
    except (KeyError, TypeError):
        raise TypeError(
            f"{dtype!r} is not an element type of a Paddle tensor; known: {', '.join(sorted(_BY_NAME))}"
        ) from None


def dtype_row(dtype: object) -> DType:
    """Return the table row of an element type, given as in :func:`convert_dtype`. Raises TypeError."""
    var_type = convert_dtype(dtype)
    try:
        return TENSOR_DTYPES[var_type]
    except KeyError:
        raise TypeError(f"{var_type} is not an element type of a tensor") from None


def numpy_dtype(dtype: object) -> np.dtype[Any]:
    """Return the numpy dtype of an element type.

    Parameters
    ----------
    dtype
        The type, as :func:`convert_dtype` takes it.

    Returns
    -------
    numpy.dtype
        The dtype. For bfloat16, which numpy lacks, the dtype of its bits.

    Raises
    ------
    TypeError
        Tensors have no elements of that type.

    See Also
    --------
    fluid.core.convert_dtype, fluid.data_feeder.convert_dtype

    >>> numpy_dtype(VarType.INT64)
    dtype('int64')
    """
    return dtype_row(dtype).numpy


def widen_bfloat16(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return bit patterns of bfloat16, the upper halves of float32, as float32.

    >>> widen_bfloat16(np.array([0x3F80, 0xC000], np.uint16))
    array([ 1., -2.], dtype=float32)
    """
    return (bits.astype(np.uint32) << 16).view(np.float32)


def unify_dtype(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array itself, or a view of it whose dtype is numpy's own object for that dtype.

    The bfloat16 of ml_dtypes becomes its bit patterns. Arrays from a pickle or another process have an equal
    dtype that is another object, and then numpy does not use the fast paths of some functions: ``add.at``
    takes 20 times as long.

    >>> import pickle
    >>> array = pickle.loads(pickle.dumps(np.zeros(2, np.float32)))
    >>> unify_dtype(array).dtype is np.dtype(np.float32)
    True
    """
    dtype = array.dtype
    if dtype.kind == "V" and dtype.name == "bfloat16":
        return array.view(np.uint16)
    own: np.dtype[Any] = np.dtype(dtype.char) if dtype.kind in "biufc" else dtype
    return array if dtype is own or dtype != own else array.view(own)
