"""The cut of variables and of their optimizer state into blocks of rows, and the servers of the blocks."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from paddlelike.foundation.docstrings import describe_like
from paddlelike.framework import Block, Operator, Variable


class PSDispatcher:
    """Places variables on servers; subclasses define ``dispatch``.

    The blocks of one variable must be placed on different servers.

    Parameters
    ----------
    pserver_endpoints
        The addresses of the servers, ``"host:port"``.

    See Also
    --------
    fluid.transpiler.HashName, fluid.transpiler.RoundRobin, fluid.DistributeTranspilerConfig

    >>> PSDispatcher(["a:1", "b:1"]).eps
    ['a:1', 'b:1']
    """

    def __init__(self, pserver_endpoints: Sequence[str]) -> None:
        self._eps = list(pserver_endpoints)
        self._step = 0

    @property
    def eps(self) -> list[str]:
        """The endpoints of the servers."""
        return self._eps

    def reset(self) -> None:
        """Start with the first server again."""
        self._step = 0

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """Return the endpoint of each variable. Raises NotImplementedError in this base class."""
        raise NotImplementedError(f"{type(self).__name__} has no dispatch()")


@describe_like(PSDispatcher)
class HashName(PSDispatcher):
    """Places a variable by a hash of its name, independently of other variables.

    The blocks of one variable are placed on consecutive servers, so that no server gets two of them. (Fluid
    1.8.5 fails with this class: it calls ``var.name()``, and its hash differs between processes.)

    See Also
    --------
    fluid.transpiler.PSDispatcher, fluid.transpiler.RoundRobin, fluid.DistributeTranspilerConfig

    >>> from types import SimpleNamespace
    >>> variables = [SimpleNamespace(name=f"fc_0.w_0.block{i}") for i in range(3)]
    >>> HashName(["a:1", "b:1", "c:1"]).dispatch(variables)
    ['c:1', 'a:1', 'b:1']
    """

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """Return the endpoint of each variable."""
        return [self._eps[self._hash_block(var.name, len(self._eps))] for var in varlist]

    @staticmethod
    def _hash_block(block_str: str, total: int) -> int:
        match = re.fullmatch(r"(.*)\.block(\d+)", block_str)
        origin, block = (match.group(1), int(match.group(2))) if match else (block_str, 0)
        return (zlib.crc32(origin.encode()) + block) % total


@describe_like(PSDispatcher)
class RoundRobin(PSDispatcher):
    """Places variables on the servers in turn.

    See Also
    --------
    fluid.transpiler.PSDispatcher, fluid.transpiler.HashName, fluid.DistributeTranspilerConfig

    >>> RoundRobin(["a:1", "b:1"]).dispatch(["u", "v", "w"])
    ['a:1', 'b:1', 'a:1']
    """

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """Return the endpoint of each variable."""
        first = self._step
        self._step = (first + len(varlist)) % len(self._eps)
        return [self._eps[(first + i) % len(self._eps)] for i in range(len(varlist))]


def count_block_rows(shape: Sequence[int], *, servers: int, min_block_size: int) -> list[int]:
    """Return the number of rows of each block: one block per server, fewer if the blocks would be too small.

    >>> count_block_rows([201, 130], servers=3, min_block_size=8192)
    [67, 67, 67]
    >>> count_block_rows([3001, 8], servers=2, min_block_size=8192)
    [1501, 1500]
    >>> count_block_rows([128], servers=2, min_block_size=8192)
    [128]
    """
    elements = math.prod(shape)
    width = math.prod(shape[1:])
    wanted = min(servers, max(1, elements // min_block_size))
    rows = math.ceil(math.ceil(elements / wanted) / width)
    whole = shape[0]
    return [min(rows, whole - first) for first in range(0, whole, rows)]


def slice_variable(var_list: Iterable[Variable], slice_count: int, min_block_size: int) -> list[str]:
    """Return Fluid's texts of blocks, ``name:index:elements``, for variables cut for several ``servers``."""
    return [
        f"{var.name}:{index}:{rows * math.prod(var.shape[1:])}"
        for var in var_list
        for index, rows in enumerate(
            count_block_rows(var.shape, servers=slice_count, min_block_size=min_block_size)
        )
    ]


def block_name(origin: str, block: int, blocks: int) -> str:
    """Return the name of a block; a variable in one piece keeps its name.

    >>> block_name("fc_0.w_0", 1, 2), block_name("fc_0.w_0", 0, 1)
    ('fc_0.w_0.block1', 'fc_0.w_0')
    """
    return origin if blocks == 1 else f"{origin}.block{block}"


def origin_name(name: str) -> str:
    """Return a name without the suffixes of its block and its trainer.

    >>> origin_name("fc_0.w_0@GRAD.block1.trainer_0")
    'fc_0.w_0@GRAD'
    """
    return name.split(".trainer_")[0].split(".block")[0]


_NO_STATE = ("Param", "Grad", "LearningRate", "Beta1Tensor", "Beta2Tensor")


def yield_state(op: Operator, block: Block) -> Iterator[tuple[str, Variable]]:
    """Yield the slots of an update operator that hold state, and the whole variables in them."""
    for slot, names in op.inputs.items():
        if slot not in _NO_STATE and names:
            yield slot, block.var(names[0])


def shape_on_server(op: Operator, slot: str, whole: Variable, cut: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a state variable whose parameter has shape ``cut`` on a server."""
    is_like_parameter = len(whole.shape) == len(cut) and whole.shape[1:] == cut[1:] and whole.shape != (1,)
    is_unused = slot == "MeanGrad" and not op.attrs["centered"]  # of RMSProp: whole on every server
    return cut if is_like_parameter and not is_unused else tuple(whole.shape)
