"""The cut of a variable into blocks of rows, and the names of blocks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from paddlelike.framework.graph.variable import Variable


def count_block_rows(shape: Sequence[int], *, servers: int, min_block_size: int) -> list[int]:
    """Return the count of rows of each block: a block per server, unless they would be too small.

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
    """Return Fluid's texts of blocks, ``name:index:elements``, of variables cut for that many servers."""
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
    """Return a name without the index of its block and the id of its trainer.

    >>> origin_name("fc_0.w_0@GRAD.block1.trainer_0")
    'fc_0.w_0@GRAD'
    """
    return name.split(".trainer_")[0].split(".block")[0]
