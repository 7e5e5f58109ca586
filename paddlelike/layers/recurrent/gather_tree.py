"""gather_tree: whole sequences from the steps of a beam search.

Parameters
----------
ids
    The ids of each step, int (T, N, beams).
parents
    The beam that each of them continues, in the same shape.
"""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import INTEGERS, check_variable
from paddlelike.layers.emit import emit

__all__ = ["gather_tree"]


def gather_tree(ids: Variable, parents: Variable) -> Variable:
    """Return the sequences of a beam search from its ids and parents (T, N, beams) (``gather_tree``).

    Raises TypeError unless ``ids`` and ``parents`` are variables of supported dtypes.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [3, 2, 2], "int64")
    >>> y = fluid.data("y", [3, 2, 2], "int64")
    >>> fluid.layers.gather_tree(x, y).shape
    (3, 2, 2)
    """
    check_variable("gather_tree", "ids", ids, INTEGERS)
    check_variable("gather_tree", "parents", parents, INTEGERS)
    return emit("gather_tree", {"Ids": ids, "Parents": parents})
