"""CNTK's files as a format of named tensors: the values of a model-v2, and of a checkpoint's second file.

A parameter or constant of a function is called by its uid, since all of CNTK's layers use the names ``W`` and
``b``. In another dictionary an array is called by its path: ``Learners/0/smoothed_gradients/2``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import numpy as np
from numpy.typing import DTypeLike

from paddlelike.core import Array, LoDTensor, VarType, convert_dtype
from paddlelike.errors import FormatError
from paddlelike.formats.base import Capabilities, FileFormat, Value, Values
from paddlelike.formats.cntk.dictionary import LARGEST, Shape, SizeT, decode, encode
from paddlelike.formats.elements import copy_into
from paddlelike.formats.entry import Entry, LeftOut, Listing
from paddlelike.formats.sources import Readable, as_source
from paddlelike.lazy import dataclass

COMPOSITE: Final = "CompositeFunction"
COMBINE: Final = 44
_PARAMETER: Final = 2
_DATA_TYPES: Final = {"float32": 1, "float64": 2, "float16": 4, "int8": 5, "int16": 6}
# the version, the length of the first entry, and its key
_HEAD: Final = re.compile(rb"\x08[\x01-\x7f]\x12(?:[\x80-\xff]{0,4}[\x00-\x7f])\x0a([\x01-\x7f])", re.DOTALL)


@dataclass(frozen=True)
class CntkFile(FileFormat):
    """A file of CNTK 2. ``write`` makes a function that combines all values, as parameters, into a tuple.

    >>> file = b"".join(CntkFile().write({"w": np.ones((2, 3), "float32")}))
    >>> print(CntkFile().describe(file))
    a file of CNTK (a model-v2, or part of a checkpoint): 1 entries, 24 bytes of elements
      w: FP32 [2, 3]
    """

    name = "cntk"
    title = "a file of CNTK (a model-v2, or part of a checkpoint)"
    suffixes = (".model", ".dnn", ".cmf")
    advice = "open it with paddlelike.import_cntk or import_cntk_checkpoint, or convert its values"
    holds = Capabilities(
        dtypes=frozenset((VarType.FP16, VarType.FP32, VarType.FP64, VarType.INT8, VarType.INT16))
    )

    def sniff(self, head: bytes, size: int) -> bool:
        found = _HEAD.match(head)
        if found is None:
            return False
        end = found.end() + found[1][0]
        return head[end : end + 1] == b"\x12" and size > end

    def entries(self, source: Readable) -> list[Entry]:
        file = as_source(source)
        if file.size > LARGEST:
            raise FormatError(f"the file has {file.size} bytes; files of CNTK over 2 GB are not read")
        found: dict[str, Entry] = {}
        tree = decode(bytes(file.read_at(0, file.size)))
        for name, array in list_arrays(tree):
            if name in found:
                raise FormatError(f"two values have the name {name!r:.200}")
            found[name] = Entry(
                name, convert_dtype(array.dtype), array.shape, nbytes=array.nbytes, payload=array
            )
        others = () if is_function(tree) else _walk(tree, "", others=True)
        return Listing(
            found.values(), [LeftOut(name, f"{value!r:.60}", is_plain=True) for name, value in others]
        )

    def read(self, source: Readable, entry: Entry, *, into: Array | None = None) -> Value:
        array = cast("Array", entry.payload)
        return LoDTensor(array.copy() if into is None else copy_into(array, into))

    def write(self, values: Values) -> Iterator[bytes]:
        return _encode(self.take_arrays(values))


def is_function(tree: Mapping[str, Any]) -> bool:
    """Return whether a dictionary is a function: a model, or the first file of a checkpoint."""
    kind = tree.get("type")
    return isinstance(kind, str) and kind == COMPOSITE


def check_function(tree: Mapping[str, Any]) -> None:
    """Raise FormatError unless a function has all required keys, since a file can be cut between two keys."""
    kinds = {"uid": str, "root": str, "inputs": list, "primitive_functions": list}
    bad = [key for key, kind in kinds.items() if not isinstance(tree.get(key), kind)]
    if bad:
        raise FormatError(f"the function lacks {', '.join(bad)}", hint="copy or save it again")


def list_arrays(tree: Mapping[str, Any]) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of a dictionary with names: uids in a function, otherwise paths.

    >>> [name for name, _ in list_arrays({"a": {"b": [np.ones(1, "f"), 3]}})]
    ['a/b/0']
    """
    if not is_function(tree):
        yield from _walk(tree, "")
        return
    check_function(tree)
    for one in tree["inputs"]:
        if isinstance(one, dict) and isinstance(one.get("value"), np.ndarray):
            if not isinstance(one.get("uid"), str):
                raise FormatError("a parameter of the function has no uid")
            yield one["uid"], one["value"]


def _walk(value: object, where: str, *, others: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the arrays in a dictionary with their paths, or with ``others`` the other values."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, np.ndarray) != others and not isinstance(value, dict | list):
        yield where, value
    for key, item in items:
        yield from _walk(item, f"{where}/{key}" if where else str(key), others=others)


def describe_variable(
    uid: str, kind: int, dtype: DTypeLike, shape: tuple[int, ...], **more: object
) -> dict[str, Any]:
    """Return a variable of a function as CNTK writes it. ``more`` are further entries: ``name``, ``value``,
    ``dynamic_axis``.

    ``kind`` is 0 for an input, 2 for a parameter, 3 for a constant.
    """
    return {
        "version": SizeT(1),
        "type": "Variable",
        "uid": uid,
        "kind": SizeT(kind),
        "data_type": SizeT(_DATA_TYPES[np.dtype(dtype).name]),
        "dynamic_axis": [],
        "is_sparse": False,
        "needs_gradient": kind == _PARAMETER and np.dtype(dtype).kind == "f",
        "shape": Shape(shape),
        **more,
    }


def _encode(arrays: Mapping[str, Array]) -> Iterator[bytes]:
    root = _find_free("Combine", arrays)
    combine = {
        "version": SizeT(24),
        "type": "PrimitiveFunction",
        "uid": root,
        "op": SizeT(COMBINE),
        "attributes": {},
        "inputs": list(arrays),
    }
    yield encode(
        {
            "version": SizeT(3),
            "type": COMPOSITE,
            "uid": _find_free("Composite", arrays),
            "root": root,
            "inputs": [
                describe_variable(name, _PARAMETER, array.dtype, array.shape, name=name, value=array)
                for name, array in arrays.items()
            ],
            "primitive_functions": [combine],
        }
    )


def _find_free(name: str, taken: Mapping[str, Any]) -> str:
    while name in taken:
        name += "_"
    return name
