"""Sequences repeated and joined."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.lowering.sequence.part import gather_sequences
from paddlelike.compiled.lowering.sequence.sequence import require_sequences
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError, find_bucket
from paddlelike.compiled.values import Packed, Value


@lowers("sequence_concat", sequences=True)
def sequence_concat(xs: list[Value]) -> Packed:
    require_sequences(*xs)
    if any(len(x.offsets) > 1 or x.live is not None or x.count != xs[0].count for x in xs):
        raise LoweringError("sequences of sequences, or of different counts")
    lengths = jnp.stack([x.lengths for x in xs], 1)  # (sequences, inputs)
    ends = jnp.cumsum(lengths, 1)
    starts = jnp.stack([x.offsets[0][:-1] for x in xs], 1)
    sizes = [x.rows.shape[0] for x in xs]
    first = jnp.asarray(np.cumsum([0, *sizes[:-1]]))

    def find(which: jax.Array, step: jax.Array) -> jax.Array:
        of = (step[:, None] >= ends[which]).sum(1)
        of = jnp.minimum(of, len(xs) - 1)
        begin = ends[which, of] - lengths[which, of]
        return first[of] + starts[which, of] + step - begin

    rows = jnp.concatenate([x.rows for x in xs])
    # The longest results are those of the longest sequences of one input, if all others have one length.
    exact = all(x.exact for x in xs) and sum(not x.full for x in xs) <= 1
    longest = sum(x.longest for x in xs)
    longest = longest if exact else find_bucket(longest)
    return gather_sequences(rows, find, lengths.sum(1), find_bucket(sum(sizes)), longest, exact=exact)
