"""Which known names a wrong one was probably meant to be, for errors and warnings."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

__all__ = ["find_near_names", "suggest_names"]

_MANY: Final = 5000  # names that are compared: with more, the error would take seconds
_LIKE: Final = 0.7  # difflib's ratio: names below it share little but an ending such as .w_0

#: What other frameworks call it, where the two names are not alike.
_ELSEWHERE: Final = {
    "avg_pool2d": "pool2d",
    "dense": "fc",
    "device": "place",
    "fully_connected": "fc",
    "kernel_size": "filter_size",
    "linear": "fc",
    "max_pool2d": "pool2d",
    "mse": "mse_loss",
    "out_channels": "num_filters",
    "p": "dropout_prob",
}


def suggest_names(name: object, known: Iterable[str], *, lead: str = "", count: int = 3) -> str:
    """Return ``lead`` and a question with the near names; an empty string if there are none.

    >>> suggest_names("rellu", ["relu", "rrelu", "tanh"], lead="; ")
    "; did you mean 'relu' or 'rrelu'?"
    """
    near = [repr(one) for one in find_near_names(name, known, count=count)]
    if not near:
        return ""
    return f"{lead}did you mean {' or '.join([', '.join(near[:-1]), near[-1]] if near[1:] else near)}?"


def find_near_names(name: object, known: Iterable[str], *, count: int = 3) -> list[str]:
    """Return at most ``count`` names of ``known`` that are like ``name``, the nearest first.

    If some differ from it only in case, or are its name in other frameworks, these alone.
    """
    from difflib import get_close_matches  # late: only errors need it

    wanted = str(name)
    names = list(islice(known, _MANY))
    lower = wanted.lower()
    same = [one for one in names if one.lower() in (lower, _ELSEWHERE.get(lower))]
    return same[:count] or get_close_matches(wanted, names, count, _LIKE)
