"""Beam search over sequences with LoD: one step, and the decoding of all steps.

Parameters
----------
beam_size
    How many continuations are kept for a source.
end_id
    The id that ends a sentence.
"""

from __future__ import annotations

from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variable
from paddlelike.layers.emit import emit_all

__all__ = ["beam_search", "beam_search_decode"]


def beam_search(
    pre_ids: Variable,
    pre_scores: Variable,
    ids: Variable | None,
    scores: Variable,
    beam_size: int,
    end_id: int,
    level: int = 0,
    is_accumulated: bool = True,
    name: str | None = None,
    return_parent_idx: bool = False,
) -> tuple[Variable, ...]:
    """Return the ids and scores of the ``beam_size`` best continuations for each source.

    Operator ``beam_search``. ``ids`` and ``scores`` (prefixes, K) hold the candidates of every prefix,
    often from ``topk``; ``pre_ids`` and ``pre_scores`` (prefixes, 1) were selected by the previous step.
    All have two levels of LoD: sources, prefixes. With ``return_parent_idx`` the index of each prefix is
    returned, too. Raises TypeError unless the inputs are variables of supported dtypes.

    Rows that hold ``end_id`` are not continued. ``level`` is the level of LoD that separates the
    sources. With ``is_accumulated`` the scores hold those of the steps before; else they are added
    here.

    Parameters
    ----------
    pre_ids, pre_scores
        What the step before selected, (prefixes, 1).
    ids, scores
        The candidates of every prefix, (prefixes, K), often of :func:`topk`.
    level
        The level of LoD that separates the sources.
    is_accumulated
        Whether scores hold those of the steps before.
    return_parent_idx
        Whether the index of each prefix is returned as well.

    >>> import paddlelike as fluid
    >>> ids, scores = fluid.data("ids", [None, 1], "int64", 2), fluid.data("scores", [None, 1], "float32", 2)
    >>> best, indices = fluid.layers.topk(fluid.data("probs", [None, 100], "float32"), k=4)
    >>> chosen, totals = fluid.layers.beam_search(ids, scores, indices, best, beam_size=2, end_id=1)
    >>> chosen.shape, totals.shape
    ((-1, 1), (-1, 1))
    """
    given = {"pre_ids": pre_ids, "pre_scores": pre_scores, "ids": ids, "scores": scores}
    for argument, value in given.items():
        if value is not None or argument != "ids":
            check_variable("beam_search", argument, value)
    outputs = {
        "selected_scores": pre_scores.dtype,
        "selected_ids": pre_ids.dtype,
        "parent_idx": VarType.INT32,
    }
    attrs = {"level": level, "beam_size": beam_size, "end_id": end_id, "is_accumulated": is_accumulated}
    best_scores, best_ids, parents = emit_all("beam_search", given, outputs, attrs, name=name)
    return (best_ids, best_scores, parents) if return_parent_idx else (best_ids, best_scores)


def beam_search_decode(
    ids: Variable, scores: Variable, beam_size: int, end_id: int, name: str | None = None
) -> tuple[Variable, Variable]:
    """Return the sentences that the steps found, and their scores, with LoD of sources and sentences.

    Operator ``beam_search_decode``. ``ids`` and ``scores`` are arrays with one element per step of
    :func:`beam_search`.

    A sentence ends at its first ``end_id``. The outputs have two levels of LoD: the sources, their
    sentences.

    The shapes are those of the ids, one row for each word.

    Parameters
    ----------
    ids, scores
        Arrays with one element per step of :func:`beam_search`.

    >>> import paddlelike as fluid
    >>> zero = fluid.layers.fill_constant([1], "int64", 0)
    >>> ids = fluid.layers.array_write(fluid.data("ids", [None, 1], "int64", 2), zero)
    >>> scores = fluid.layers.array_write(fluid.data("scores", [None, 1], "float32", 2), zero)
    >>> sentences, totals = fluid.layers.beam_search_decode(ids, scores, beam_size=2, end_id=1)
    >>> sentences.dtype.name, totals.dtype.name
    ('INT64', 'FP32')
    """
    inputs = {"Ids": ids, "Scores": scores}
    outputs = {"SentenceIds": ids.dtype, "SentenceScores": scores.dtype}
    attrs = {"beam_size": beam_size, "end_id": end_id}
    out_ids, out_scores = emit_all("beam_search_decode", inputs, outputs, attrs, name=name)
    return out_ids, out_scores
