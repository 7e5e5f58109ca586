"""gather_tree: the sequences that a beam search chose, traced back through its steps."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from paddlelike.core import LoDTensor, VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Array, Attrs, Bool, Context, Int, OpDef, Spec, register
from paddlelike.ops.kernels.lod import read_levels


@register
class GatherTree(OpDef):
    """``Out[t, n, b]``: step t of the sequence that ends in beam b, traced back through Parents.

    Ids and Parents are (T, N, beams); Parents[t] is the beam of step t - 1 that each beam continues.
    """

    type = "gather_tree"
    inputs = ("Ids", "Parents")

    @staticmethod
    def infer(ids: Spec, parents: Spec) -> Spec:
        if len(ids.shape) != 3 or len(parents.shape) != 3:
            raise ShapeError(
                f"gather_tree: Ids has shape {ids.shape}, Parents {parents.shape}; expected (T, N, beams)"
            )
        return Spec(ids.shape, ids.dtype)

    @staticmethod
    def forward(ids: Array, parents: Array) -> Array:
        out = np.empty_like(ids)
        beams = np.broadcast_to(np.arange(ids.shape[2]), ids.shape[1:])
        for step in range(len(ids) - 1, -1, -1):
            out[step] = np.take_along_axis(ids[step], beams, axis=1)
            beams = np.take_along_axis(parents[step], beams, axis=1)
        return out


class _Item(NamedTuple):
    """A candidate: the row of its prefix, its word, its score. Later prefixes win ties."""

    row: int
    word: int
    score: float

    def below(self, other: _Item) -> bool:
        return (self.score, self.row) < (other.score, other.row)


class BeamSearchAttrs(Attrs):
    """Attributes of beam_search."""

    level: int = Int()
    beam_size: int = Int()
    end_id: int = Int()
    is_accumulated: bool = Bool(True)


@register
class BeamSearch(OpDef):
    """The ``beam_size`` best next words for each source, among the candidates of its prefixes.

    ``ids`` and ``scores`` hold K candidates per prefix (row); without ``ids`` a candidate's id is its column.
    With ``is_accumulated`` the scores are of whole sentences; otherwise they are probabilities, and their
    logarithms are added to ``pre_scores``. A prefix that has ended (``pre_ids`` is ``end_id``) stays
    unchanged; a source is dropped when all of its best prefixes have ended. ``parent_idx`` is the prefix of
    each word.
    """

    type = "beam_search"
    inputs = ("pre_ids", "pre_scores", "ids?", "scores")
    outputs = ("selected_ids", "selected_scores", "parent_idx?")
    attrs = BeamSearchAttrs.table()

    @staticmethod
    def infer(pre_ids: Spec, pre_scores: Spec, ids: Spec | None, scores: Spec) -> tuple[Spec, Spec, Spec]:
        return (Spec((-1, 1), VarType.INT64), Spec((-1, 1), pre_scores.dtype), Spec((-1,), VarType.INT32))

    @staticmethod
    def forward(
        ctx: Context,
        pre_ids: Array,
        pre_scores: Array,
        ids: Array | None,
        scores: Array,
        *,
        attrs: BeamSearchAttrs,
    ) -> tuple[Array, Array, Array]:
        sources = _find_row_offsets(read_levels(ctx, "scores"), attrs.level)
        if sources[-1] != len(scores):
            raise EnforceNotMet(
                f"beam_search: level {attrs.level} of the LoD of scores ends at row {sources[-1]}, "
                f"but there are {len(scores)} rows"
            )
        if not attrs.is_accumulated:
            scores = pre_scores.reshape(-1, 1) + np.log(scores)
        words = np.broadcast_to(np.arange(scores.shape[1]), scores.shape) if ids is None else ids
        ended = pre_ids.reshape(-1) == attrs.end_id
        before = pre_scores.reshape(-1)
        chosen: list[_Item] = []
        for begin, end in pairwise(sources):
            best: list[_Item] = []
            for row in range(begin, end):
                if ended[row]:
                    _insert(best, _Item(row, attrs.end_id, float(before[row])), attrs.beam_size)
                    continue
                for word, score in zip(words[row].tolist(), scores[row].tolist(), strict=True):
                    _insert(best, _Item(row, word, score), attrs.beam_size)
            if not all(item.word == attrs.end_id and ended[item.row] for item in best):
                chosen += sorted(best, key=lambda item: item.row)
        rows = np.array([item.row for item in chosen], np.int32)
        following = np.searchsorted(rows, np.arange(len(scores) + 1)).tolist()
        for slot in ("selected_ids", "selected_scores"):
            ctx.set_lod(slot, [sources, following])
        return (
            np.array([item.word for item in chosen], np.int64).reshape(-1, 1),
            np.array([item.score for item in chosen], scores.dtype).reshape(-1, 1),
            rows,
        )


def _find_row_offsets(lod: list[list[int]], level: int) -> list[int]:
    """Return the offsets of a level of LoD, in rows."""
    if not 0 <= level < len(lod):
        raise EnforceNotMet(f"beam_search: level is {level}, but scores have {len(lod)} levels of LoD")
    offsets = lod[level]
    for below in lod[level + 1 :]:
        offsets = [below[offset] for offset in offsets]
    return offsets


def _insert(best: list[_Item], item: _Item, size: int) -> None:
    """Keep the ``size`` best, best first. A later candidate follows equal ones, but replaces an equal last
    one.
    """
    if len(best) == size:
        if item.below(best[-1]):
            return
        best.pop()
    place = len(best)
    while place and best[place - 1].below(item):
        place -= 1
    best.insert(place, item)


@register
class BeamSearchDecode(OpDef):
    """``SentenceIds``, ``SentenceScores``: the sentences that the steps of a search found, best first.

    Ids and Scores are arrays with one tensor of ``beam_search`` per step. The LoD of the results divides
    sources into sentences, and sentences into words.
    """

    type = "beam_search_decode"
    inputs = ("Ids", "Scores")
    outputs = ("SentenceIds", "SentenceScores")
    attrs = {"beam_size": Int(), "end_id": Int()}

    @staticmethod
    def infer(ids: Spec, scores: Spec) -> tuple[None, None]:
        return None, None  # as in Paddle: known once it has run

    @staticmethod
    def forward(ctx: Context, ids: Any, scores: Any, *, beam_size: int, end_id: int) -> tuple[Array, Array]:
        steps = [_Step.of(*pair) for pair in zip(ids, scores, strict=True)]
        if not steps:
            raise EnforceNotMet("beam_search_decode: Ids is an empty array")
        found = [_trace_sentences(steps, source, end_id) for source in range(len(steps[0].sources) - 1)]
        sentences = [sentence for many in found for sentence in many]
        lod = [
            [0, *np.cumsum([len(many) for many in found]).tolist()],
            [0, *np.cumsum([len(sentence) for sentence in sentences], dtype=np.int64).tolist()],
        ]
        for slot in ("SentenceIds", "SentenceScores"):
            ctx.set_lod(slot, lod)
        pairs = [pair for sentence in sentences for pair in sentence]
        return (
            np.array([word for word, _ in pairs], np.int64),
            np.array([score for _, score in pairs], steps[0].scores.dtype),
        )


class _Step(NamedTuple):
    """One step of a search."""

    words: Array
    scores: Array
    sources: list[int]  # offsets of the prefixes of each source
    following: list[int]  # offsets of the words that follow each prefix
    prefix: Array  # of each word

    @classmethod
    def of(cls, ids: LoDTensor, scores: LoDTensor) -> _Step:
        lod = ids.lod()
        if len(lod) != 2:
            raise EnforceNotMet(f"beam_search_decode: a step of Ids has {len(lod)} levels of LoD, expected 2")
        words = np.asarray(ids).reshape(-1)
        prefix = np.repeat(np.arange(len(lod[1]) - 1), np.diff(lod[1]))
        return cls(words, np.asarray(scores).reshape(-1), lod[0], lod[1], prefix)


def _trace_sentences(steps: list[_Step], source: int, end_id: int) -> list[list[tuple[int, float]]]:
    """Return the sentences of a source, best first, traced back from the step where each ended."""
    sentences: list[list[tuple[int, float]]] = []
    places: list[int] = []
    for step in reversed(steps):
        first = not places
        if first:
            begin, end = step.sources[source], step.sources[source + 1]
            places = list(range(step.following[begin], step.following[end]))
            sentences = [[] for _ in places]
        for sentence, place in zip(sentences, places, strict=True):
            word = int(step.words[place])
            if first or word != end_id or not sentence:  # an ended prefix ends again at every step
                sentence.append((word, float(step.scores[place])))
        places = [int(step.prefix[place]) for place in places]
    sentences.sort(key=lambda sentence: sentence[0][1], reverse=True)
    return [sentence[::-1] for sentence in sentences]
