"""``fluid.contrib.reader``: each trainer of a job reads its share of the batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from paddlelike.left_out import make_getattr

__all__ = ["distributed_batch_reader"]

#: Fluid's modules of these names are this one.
__getattr__ = make_getattr(__name__, "contrib.reader", dict.fromkeys(["distributed_reader"], __name__))


def distributed_batch_reader(batch_reader: Callable[[], Iterable[Any]]) -> Callable[[], Iterator[Any]]:
    """Return a reader of every n-th batch for n trainers, beginning at this trainer's index.

    Both come from the environment, ``PADDLE_TRAINERS_NUM`` and ``PADDLE_TRAINER_ID``; without them the reader
    gives every batch. Batches at the end that not every trainer would get are left out.

    Parameters
    ----------
    batch_reader
        A function that returns the batches of one pass.

    Returns
    -------
    callable
        A function that returns this trainer's batches.

    Raises
    ------
    ValueError
        ``PADDLE_TRAINER_ID`` is not less than ``PADDLE_TRAINERS_NUM``.

    See Also
    --------
    fluid.io.batch

    >>> list(distributed_batch_reader(lambda: iter("abc"))())
    ['a', 'b', 'c']
    """
    count = int(os.getenv("PADDLE_TRAINERS_NUM", "1"))
    index = int(os.getenv("PADDLE_TRAINER_ID", "0"))
    if not 0 <= index < count:
        raise ValueError(f"PADDLE_TRAINER_ID is {index}, expected less than PADDLE_TRAINERS_NUM, {count}")

    def read_share() -> Iterator[Any]:
        turn: list[Any] = []
        for batch in batch_reader():
            turn.append(batch)
            if len(turn) == count:
                yield turn[index]
                turn = []

    return read_share
