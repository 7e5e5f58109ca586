"""Read an ONNX file: the model and the values of its initializers, checked against the size of the file.

Format: https://onnx.ai/onnx/repo-docs/IR.html, external data: https://onnx.ai/onnx/repo-docs/ExternalData.html.
"""

from __future__ import annotations

import math
import os
import stat
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike.core import TENSOR_DTYPES, Array, VarType, numpy_dtype
from paddlelike.errors import FormatError, MissingFileError, UnsupportedError
from paddlelike.interop.onnx.extra import import_onnx_package

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto


#: Paddle's element types by their numbers in ONNX.
ELEMENT_TYPES: Final = {row.onnx: row.var_type for row in TENSOR_DTYPES.values()}
_LARGEST: Final = (1 << 31) - 1  # bytes: protobuf's limit
#: The field of a tensor that holds elements of a type, where they are not raw bytes.
_FIELDS: Final = {VarType.FP32: "float_data", VarType.FP64: "double_data", VarType.INT64: "int64_data"}


def read_model(file: str) -> ModelProto:
    """Return the model of a file, without external data.

    Raises
    ------
    MissingFileError
        There is no such file.
    FormatError
        It is not an ONNX model.
    """
    if not os.path.isfile(file):
        what = "is not a file" if os.path.exists(file) else "does not exist"
        raise MissingFileError(f"import_onnx: {file} {what}")
    size = os.path.getsize(file)
    if size > _LARGEST:
        raise FormatError(f"{file} has {size} bytes; a file of ONNX has at most {_LARGEST}")
    with open(file, "rb") as opened:
        return parse_model(opened.read(size), file)


def parse_model(data: bytes, where: str) -> ModelProto:
    """Return the model encoded in some bytes. Raises FormatError when they do not hold one."""
    onnx = import_onnx_package("import_onnx")
    from google.protobuf.message import DecodeError

    model: ModelProto = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, RuntimeError) as error:
        raise FormatError(f"{where} is not an ONNX model: {error!s:.200}") from None
    if not model.HasField("graph") or not model.opset_import:
        raise FormatError(
            f"{where} is not an ONNX model: it has no graph, or names no operator set",
            hint="files of other systems are opened by load_inference_model, fluid.load and fluid.convert",
        )
    return model


def read_array(tensor: TensorProto, directory: str | None) -> Array:
    """Return the value of a tensor; its bytes are counted before memory is allocated.

    Parameters
    ----------
    directory
        The directory of the files of external data. None means that there are no such files.

    Raises
    ------
    UnsupportedError
        No Paddle variable has its element type.
    FormatError
        It has too few or too many bytes, or names a file outside of the directory.
    """
    name = f"tensor {tensor.name!r:.80}"
    if tensor.data_type not in ELEMENT_TYPES:
        raise UnsupportedError(
            f"{name} has elements of ONNX type {tensor.data_type}, which no Paddle variable has"
        )
    var_type = ELEMENT_TYPES[tensor.data_type]
    dtype, dims = numpy_dtype(var_type), tuple(tensor.dims)
    if any(dim < 0 for dim in dims):
        raise FormatError(f"{name} has dims {dims}")
    count = math.prod(dims)
    if tensor.data_location == tensor.EXTERNAL:
        return _read_external(tensor, directory, dtype, dims)
    if tensor.HasField("raw_data"):
        _check_size(name, dims, len(tensor.raw_data), count * dtype.itemsize, "bytes")
        little = np.frombuffer(tensor.raw_data, dtype.newbyteorder("<"))
        return little.astype(dtype).reshape(dims)
    field = getattr(tensor, _FIELDS.get(var_type, "int32_data"))
    _check_size(name, dims, len(field), count, "elements")
    if var_type in (VarType.FP16, VarType.BF16):  # the bits, as whole numbers
        return np.array(field, np.uint32).astype(np.uint16).view(dtype).reshape(dims)
    return np.array(field).astype(dtype).reshape(dims)


def _check_size(name: str, dims: tuple[int, ...], got: int, expected: int, what: str) -> None:
    if got != expected:
        raise FormatError(f"{name} of dims {dims} has {got} {what}; expected {expected}")


def _read_external(
    tensor: TensorProto, directory: str | None, dtype: np.dtype[Any], dims: tuple[int, ...]
) -> Array:
    """Return elements from a file beside the model, or below its directory."""
    name = f"tensor {tensor.name!r:.80}"
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    path = _find_inside(name, location, directory)
    expected = math.prod(dims) * dtype.itemsize
    try:
        offset = int(entries.get("offset", 0))
        length = int(entries.get("length", expected))
    except ValueError:
        raise FormatError(f"{name}: offset or length of its external data are not numbers") from None
    size = os.path.getsize(path)
    _check_size(name, dims, length, expected, "bytes")
    if offset < 0 or offset + length > size:
        raise FormatError(f"{name}: {length} bytes at {offset} of {location!r:.80}, which has {size}")
    with open(path, "rb") as file:
        file.seek(offset)
        found = np.fromfile(file, dtype.newbyteorder("<"), math.prod(dims))
    _check_size(name, dims, found.nbytes, expected, "bytes")
    return found.astype(dtype, copy=False).reshape(dims)


def _find_inside(name: str, location: str, directory: str | None) -> str:
    """Return the path of a file of external data. Raises FormatError when it is not in the directory."""
    if directory is None:
        raise FormatError(f"{name} has external data, but the model comes from bytes")
    root = os.path.realpath(directory)
    path = os.path.realpath(os.path.join(root, location)) if "\0" not in location else ""
    if not location or os.path.isabs(location) or os.path.commonpath([root, path or "/"]) != root:
        raise FormatError(
            f"{name}: its external data is at {location!r:.80}, outside of the model's directory"
        )
    try:
        regular = stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        regular = False
    if not regular:
        raise MissingFileError(f"{name} keeps its data in {path!r:.200}, which does not exist")
    return path
