"""The parts of training that operators belong to."""

from __future__ import annotations


class OpRole:
    """The part of training an operator belongs to (bits of the attribute ``op_role``).

    See Also
    --------
    fluid.framework.Operator

    >>> OpRole.Backward
    1
    """

    Forward = 0
    Backward = 1
    Optimize = 2
    RPC = 4
    Dist = 8
    LRSched = 16
    Loss = 256
