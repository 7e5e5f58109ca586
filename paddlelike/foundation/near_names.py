"""Suggestions of known names for a misspelled one, for errors and warnings."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

_MANY: Final = 5_000_000  # names compared, times the length squared: more would take seconds
_LIKE: Final = 0.7  # difflib's ratio: names below it share only an ending such as .w_0

#: Names of the same thing in other frameworks and functions of Fluid, where spelling does not suggest them.
_ELSEWHERE: Final = {
    "avg_pool2d": "pool2d", "axis": "dim axes", "batch_size": "minibatch_size", "bias": "bias_attr",
    "cat": "concat", "crossentropyloss": "cross_entropy", "data_source": "minibatch_source",
    "dense": "fc", "device": "place", "dim": "axis axes", "feed_dict": "feed", "fetches": "fetch_list",
    "filters": "num_filters", "fully_connected": "fc", "input": "data x", "keep_prob": "dropout_prob",
    "keepdim": "keep_dim", "kernel_size": "filter_size", "l2": "regularization", "linear": "fc",
    "load_checkpoint": "load_persistables", "load_model": "load_inference_model",
    "load_weights": "load_params", "max_pool2d": "pool2d", "mm": "matmul", "mse": "mse_loss",
    "optimizer": "parameter_learners", "out_channels": "num_filters", "out_features": "size",
    "p": "dropout_prob", "permute": "transpose", "placeholder": "data", "rate": "dropout_prob",
    "save_checkpoint": "save_persistables", "save_model": "save_inference_model",
    "save_weights": "save_params", "units": "size", "use_bias": "bias_attr", "view": "reshape",
    "weight_attr": "param_attr", "weight_decay": "regularization", "x": "input",
}  # fmt: skip


def suggest_names(name: object, known: Iterable[str], *, lead: str = "", count: int = 3) -> str:
    """Return ``lead`` and a question that suggests near names; an empty string if there are none.

    >>> suggest_names("rellu", ["relu", "rrelu", "tanh"], lead="; ")
    "; did you mean 'relu' or 'rrelu'?"
    """
    near = [repr(one) for one in find_near_names(name, known, count=count)]
    if not near:
        return ""
    return f"{lead}did you mean {' or '.join([', '.join(near[:-1]), near[-1]] if near[1:] else near)}?"


def suggest_patterns(pattern: str, known: Iterable[str]) -> str:
    """Return a clause with the names that are most like a pattern without matches.

    >>> suggest_patterns("fc1_*", ["fc_0.w_0", "fc_1.w_0"])
    "; the names most like it are 'fc_1.w_0' and 'fc_0.w_0'"
    """
    from difflib import get_close_matches  # late: only errors need it

    names = list(dict.fromkeys(islice(known, 2000)))
    stem = pattern.removeprefix("re:").replace("*", "").replace("?", "").replace("\\", "")
    near = [repr(one) for one in get_close_matches(stem, names, 3, 0.3) or names[:3]]
    if not near:
        return "; there are no names"
    listed = " and ".join([", ".join(near[:-1]), near[-1]] if near[1:] else near)
    return f"; the name{'s' * bool(near[1:])} most like it {'are' if near[1:] else 'is'} {listed}"


def find_near_names(name: object, known: Iterable[str], *, count: int = 3) -> list[str]:
    """Return at most ``count`` names of ``known`` that are like ``name``, the nearest first.

    If some differ from ``name`` only in case, or are what other frameworks call it, return only these.
    """
    from difflib import get_close_matches  # late: only errors need it

    names = list(islice(known, min(5000, 50 + _MANY // (len(str(name)) ** 2 + 1))))
    return find_same_names(name, names)[:count] or get_close_matches(str(name), names, count, _LIKE)


def find_same_names(name: object, known: Iterable[str]) -> list[str]:
    """Return the names in ``known`` that differ from ``name`` only in case, or are synonyms in other
    systems.
    """
    lower = str(name).lower()
    alike = {lower, *_ELSEWHERE.get(lower, "").split()}
    return [one for one in known if one.lower() in alike]
