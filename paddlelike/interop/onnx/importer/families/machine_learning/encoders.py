"""Labels, categories and missing values, as scikit-learn's converter writes them.

Operators: https://onnx.ai/onnx/operators/ (domain ai.onnx.ml).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from paddlelike.core import Array, VarType
from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.node import ML, Node, reads

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def find_keys(node: Node, keys: ArrayLike, dtype: np.dtype[Any] | type[np.generic]) -> Expression:
    """Compare each element with each key, along a new last dim. LabelEncoder matches NaN since version 4."""
    table = np.asarray(keys, dtype)
    x = node.input().cast(dtype).unsqueeze(node.rank())
    found = node.emit("equal", x, node.constant(table, dtype), axis=-1)
    if not np.isnan(table).any() or (node.type == "LabelEncoder" and node.opset < 4):
        return found
    missing = node.emit("not_equal", x, x, axis=-1).cast(VarType.FP32)
    also = node.emit("equal", missing, node.constant(np.where(np.isnan(table), 1, 2), np.float32), axis=-1)
    return node.emit("logical_or", found, also)


def find_place(node: Node, keys: ArrayLike, dtype: np.dtype[Any] | type[np.generic]) -> Expression:
    """Return the index of each element among the keys, with a last dim of 1; if absent, the number of
    keys.
    """
    hit = find_keys(node, keys, dtype).cast(VarType.FP32)
    other = hit.reduce("max", -1).scale(-1, 1)
    both = node.emit("concat", [hit, other], axis=node.rank())
    return node.emit("arg_max", both, axis=node.rank(), keepdims=True, dtype=int(VarType.INT64))


def _find_attribute(node: Node, name: str) -> Array | None:
    """Return the numeric keys or values in a node's attributes, or None if both attributes are empty."""
    for suffix, dtype in (("int64s", np.int64), ("floats", np.float32)):
        if node.attr(f"{name}_{suffix}"):
            return np.array(node.attr(f"{name}_{suffix}"), dtype)
    return None


@reads(f"{ML}LabelEncoder")
def _read_label_encoder(node: Node) -> Expression:
    """Map numbers to numbers; an unknown key gives the default."""
    keys, values = _find_attribute(node, "keys"), _find_attribute(node, "values")
    if keys is None or values is None:
        node.refuse("its keys or values are texts, or in a tensor")
    if len(keys) != len(values):
        node.fail(f"{len(keys)} keys for {len(values)} values")
    whole = values.dtype.kind == "i"
    default = node.attr("default_int64" if whole else "default_float", -1 if whole else -0.0)
    table = node.constant([*values.tolist(), default], values.dtype)
    return node.emit("gather_nd", {"X": table, "Index": find_place(node, keys, keys.dtype)})


@reads(f"{ML}OneHotEncoder")
def _read_one_hot_encoder(node: Node) -> Expression:
    """Encode categories one-hot. An unknown category gives zeros, or an error unless ``zeros`` is set."""
    categories = node.attr("cats_int64s")
    if not categories:
        node.refuse("its categories are texts")
    place, beside = find_place(node, categories, np.int64), bool(node.attr("zeros", 1))
    return node.emit("one_hot", place, depth=len(categories), allow_out_of_range=beside)


@reads(f"{ML}Imputer")
def _read_imputer(node: Node) -> Expression:
    """Replace elements that have a given value, by one value per column or for all."""
    whole = node.dtype().kind in "iu"
    values = node.attr("imputed_value_int64s" if whole else "imputed_value_floats")
    old = node.attr("replaced_value_int64" if whole else "replaced_value_float", 0)
    if not values or len(values) not in (1, node.dims()[-1]):
        node.fail(f"{len(values or [])} values for inputs of dims {list(node.dims())}")
    missing = find_keys(node, [old], node.dtype()).squeeze(node.rank())
    new = missing.cast(node.dtype()).scale(0)
    new = new + node.constant(values, node.dtype())
    return missing.where(new, node.input())
