"""One checkpoint: its fields, and its entry in a manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from paddlelike.core.random import Generator
from paddlelike.storage.manifest import Manifest

__all__ = ["Checkpoint", "decode_checkpoint", "encode_entry"]


class Checkpoint(NamedTuple):
    """A checkpoint that is complete.

    ``step`` is when it was saved and ``path`` its directory; ``metric`` and ``state`` are those passed to
    :meth:`Checkpoints.save`, ``random`` is the state of the scope's random generator, ``time`` is ISO 8601.

    >>> import paddlelike as fluid
    >>> checkpoint = fluid.io.Checkpoint(step=10, path="run/step-10", metric=0.5)
    >>> checkpoint.step, checkpoint.metric, checkpoint.state
    (10, 0.5, {})
    """

    step: int
    path: str
    metric: float | None = None
    state: Mapping[str, Any] = {}  # passed by the user
    random: int | None = None  # the state of the scope's random generator
    time: str | None = None  # when it was saved


def encode_entry(
    step: int, metric: float | None, random: int | None, state: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the entry of a checkpoint in its manifest.

    Raises
    ------
    TypeError
        JSON cannot represent ``state``.
    """
    return {
        "step": step,
        "metric": None if metric is None else float(metric),
        "random": random,
        "user": json.loads(_encode_json({} if state is None else dict(state))),
    }


def decode_checkpoint(found: Manifest, path: str) -> Checkpoint:
    """Return the checkpoint that a manifest in the directory ``path`` describes.

    Raises LookupError, TypeError or ValueError for a manifest of something else.
    """
    entry = found.state["checkpoint"]
    step, metric, user, random = (entry[key] for key in ("step", "metric", "user", "random"))
    if type(step) is not int or not isinstance(user, dict):
        raise TypeError("a step is an int, a state a dict")
    if random is not None:
        Generator(1).state = random  # raises ValueError
    return Checkpoint(step, path, None if metric is None else float(metric), user, random, found.time)


def _encode_json(state: Mapping[str, Any]) -> str:
    try:
        return json.dumps(state)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"Checkpoints.save: state is kept as JSON, which cannot represent {dict(state)!r}: {error}"
        ) from None
