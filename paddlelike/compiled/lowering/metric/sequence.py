"""Metrics of sequences."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowering.sequence.sequence import require_sequences, to_steps
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value
from paddlelike.ops.metric.sequence import SCHEMES


def _read_padded(x: jax.Array | Packed, length: jax.Array | Packed | None) -> tuple[jax.Array, jax.Array]:
    """Return sequences, given by LoD or as a padded batch, as an array (N, longest) and their lengths."""
    if length is None:
        require_sequences(x)
        steps, _ = to_steps(x.replace(x.rows.reshape(x.rows.shape[0], -1)[:, 0]))
        return steps.T, x.lengths
    if isinstance(x, Packed) or isinstance(length, Packed):
        raise LoweringError("a padded batch must not have a LoD as well")
    return x.reshape(x.shape[0], -1), length.reshape(-1)


@lowers("edit_distance", sequences=True)
def edit_distance(
    hyps: Value, refs: Value, hyps_length: Value, refs_length: Value, *, normalized: bool, ctx: OpContext
) -> tuple[Value, Value]:
    found, found_lengths = _read_padded(hyps, hyps_length)
    wanted, wanted_lengths = _read_padded(refs, refs_length)
    if found.shape[0] != wanted.shape[0]:
        raise LoweringError("Hyps and Refs have different counts of sequences")
    if normalized:
        ctx.check(wanted_lengths > 0, "a sequence of Refs is empty, so no distance to it can be normalized")
    count, width = wanted.shape
    columns = jnp.arange(width + 1)

    def compare(row: jax.Array, given: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        token, step = given
        replaced = row[:, :-1] + (wanted != token[:, None])
        best = jnp.minimum(row[:, 1:] + 1, replaced)
        best = jnp.concatenate([jnp.full((count, 1), step + 1, best.dtype), best], 1)
        new = jax.lax.cummin(best - columns, axis=1) + columns  # insertions
        return jnp.where((step < found_lengths)[:, None], new, row), None

    first = jnp.broadcast_to(columns, (count, width + 1))
    row, _ = jax.lax.scan(compare, first, (found.T, jnp.arange(found.shape[1])))
    out = jnp.take_along_axis(row, wanted_lengths[:, None].astype(row.dtype), 1).astype(jnp.float32)
    out = out / wanted_lengths[:, None].astype(jnp.float32) if normalized else out
    return jnp.full(1, count, jnp.int64), out


@lowers("chunk_eval", sequences=True)
def chunk_eval(
    inference: jax.Array | Packed, label: jax.Array | Packed, lengths: jax.Array | None,
    *, num_chunk_types: int, chunk_scheme: str, excluded_chunk_types: list[int], ctx: OpContext,
) -> tuple[Value, ...]:  # fmt: skip
    if lengths is None:
        require_sequences(label)
        size = label.rows.shape[0]
        found, true = (one.rows if isinstance(one, Packed) else one for one in (inference, label))
        used = label.used
        border = jnp.zeros(size + 1, bool).at[label.offsets[-1]].set(True)[:size]
    else:
        if isinstance(label, Packed) or isinstance(inference, Packed):
            raise LoweringError("a padded batch must not have a LoD as well")
        found, true = inference, label
        width = label.size // label.shape[0]
        step = jnp.arange(width)
        used = (step < lengths.reshape(-1, 1)).reshape(-1)
        border = ((step == 0) | (step == lengths.reshape(-1, 1))).reshape(-1)
    if found.size != true.size:
        raise LoweringError("Inference and Label have different counts of rows")
    chunks = []
    for tags in (found.reshape(-1), true.reshape(-1)):
        kinds = SCHEMES[chunk_scheme].kinds
        holds = ((tags >= 0) & (tags <= num_chunk_types * kinds)) | ~used
        ctx.check(holds, f"a tag is outside of 0 to {num_chunk_types * kinds}")
        chunks.append(_find_chunks(tags, used, border, chunk_scheme, num_chunk_types, excluded_chunk_types))
    (starts, kind, end), (true_starts, true_kind, true_end) = chunks
    both = starts & true_starts & (kind == true_kind) & (end == true_end)
    numbers = [one.sum().astype(jnp.int64) for one in (starts, true_starts, both)]
    in_found, in_true, hits = (number.astype(jnp.float32) for number in numbers)
    precision = jnp.where(in_found > 0, hits / jnp.maximum(in_found, 1), 0)
    recall = jnp.where(in_true > 0, hits / jnp.maximum(in_true, 1), 0)
    total = jnp.where(hits > 0, precision + recall, 1)
    f1 = jnp.where(hits > 0, 2 * precision * recall / total, 0)
    shares = [value.reshape(1).astype(jnp.float32) for value in (precision, recall, f1)]
    return (*shares, *(number.reshape(1) for number in numbers))


def _find_chunks(
    rows: jax.Array, used: jax.Array, first: jax.Array, scheme: str, types: int, excluded: list[int]
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return for each row whether a chunk starts there, its type, and the border behind it."""
    tags = SCHEMES[scheme]
    kind, tag = rows // tags.kinds, rows % tags.kinds
    before_kind, before_tag = jnp.roll(kind, 1), jnp.roll(tag, 1)
    starts_anew = (tag == tags.begin) | (tag == tags.single)
    ended = (before_tag == tags.end) | (before_tag == tags.single)
    border = first | (kind != before_kind) | starts_anew | ended
    starts = border & (kind != types) & used
    for one in excluded:
        starts = starts & (kind != one)
    size = rows.shape[0]
    here = jnp.where(border, jnp.arange(size), size)
    behind = jnp.concatenate([jax.lax.cummin(here, reverse=True)[1:], jnp.full(1, size)])
    return starts, kind, behind
