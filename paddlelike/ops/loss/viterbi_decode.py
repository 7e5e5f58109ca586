"""viterbi_decode: the best sequences of tags."""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import Array, Bool
from paddlelike.ops.later import register_kernel


@register_kernel(
    "viterbi_decode", "Input Transition Length -> Scores Path", {"include_bos_eos_tag": Bool(True)}
)
def _viterbi(
    x: Array, transition: Array, lengths: Array, *, include_bos_eos_tag: bool
) -> tuple[Array, Array]:
    """The best sequences of tags (N, T) for scores (N, T, tags), and their scores.

    With ``include_bos_eos_tag`` the last tag but one is the start and the last tag the end of a sequence.
    """
    longest = int(lengths.max())
    path = np.zeros((len(x), longest), np.int64)
    best = np.zeros(len(x), x.dtype)
    for row, (steps, length) in enumerate(zip(x, lengths.reshape(-1), strict=True)):
        score = steps[0] + (transition[-1] if include_bos_eos_tag else 0)
        before = []
        for step in steps[1:length]:
            total = score[:, None] + transition
            before.append(total.argmax(0))
            score = total.max(0) + step
        score = score + (transition[-2] if include_bos_eos_tag else 0)
        tag = int(score.argmax())
        best[row] = score[tag]
        for t in range(length - 1, -1, -1):
            path[row, t] = tag
            tag = int(before[t - 1][tag]) if t else tag
    return best, path
