"""Ids hashed into a smaller range.

Parameters
----------
input
    Ids (T, 1) or (T, K), int64.
hash_size
    The bound of the hashes, excluded.
num_hash
    How many hashes each row gets.
"""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import INTEGERS, check_variable
from paddlelike.layers.emit import emit

__all__ = ["hash"]


def hash(input: Variable, hash_size: int, num_hash: int = 1, name: str | None = None) -> Variable:
    """Return ``num_hash`` hashes of each row of ids, below ``hash_size``: (T, num_hash, 1) (``hash``).

    Raises TypeError unless ``input`` is a variable of a supported dtype.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 1], "int64", lod_level=1)
    >>> fluid.layers.hash(x, hash_size=1000, num_hash=4).shape
    (-1, 4, 1)
    """
    check_variable("hash", "input", input, INTEGERS)
    attrs = {"num_hash": num_hash, "mod_by": hash_size}
    return emit("hash", {"X": input}, attrs, name=name, constant=True)
