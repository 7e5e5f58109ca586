"""The state of a learner of CNTK: counts, the schedule of the learning rate, an array for each parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from paddlelike.errors import FormatError
from paddlelike.formats.cntk.dictionary import SizeT
from paddlelike.lazy import dataclass

Array = np.ndarray[Any, Any]

_VERSION: Final = 3
_SCHEDULE: Final = "learnig_rate_schedule"  # CNTK's spelling


@dataclass(frozen=True)
class CntkLearner:
    """The state of a learner of CNTK in a checkpoint.

    Attributes
    ----------
    sample_count, minibatch_count, sweep_count
        The numbers of samples, minibatches and sweeps trained so far.
    schedule
        The learning rates by the number of samples at which each ends; the last one stays. ``{0: 0.1}`` is a
        constant one.
    reference
        The number of samples in a minibatch that the rates are for; 0: any number, with mean gradients.
    smoothed_count
        The number of updates that Adam corrects its averages by. None means another kind of learner.
    arrays
        The learner's state of each parameter, by its name (CNTK's uid): nothing (SGD: shape ``()``), the
        velocity times the rate (momentum), or both averages of Adam, the average of squares first.
    """

    sample_count: int
    minibatch_count: int
    sweep_count: int
    schedule: Mapping[int, float]
    epoch_size: int
    reference: int
    seed: int
    smoothed_count: float | None
    arrays: Mapping[str, Array]

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next minibatch."""
        later = [end for end in sorted(self.schedule) if end > self.sample_count]
        return self.schedule[later[0] if later else max(self.schedule)]


def read_learner(entry: Any, parameters: Sequence[str], where: str) -> CntkLearner:
    """Return a learner. Raises FormatError when something is missing, or has another type."""
    if isinstance(entry, dict) and "localLearners" in entry:  # of several workers
        _get(entry, "totalNumberOfSamplesSeen", int, where)
        entry = entry["localLearners"]
    rates = _get(entry, _SCHEDULE, dict, where)
    steps = _get(rates, "schedule", dict, where)
    arrays = _get(entry, "smoothed_gradients", list, where)
    if not steps or not all(key.isdigit() and isinstance(rate, float) for key, rate in steps.items()):
        raise FormatError(f"{where}: the learning rates are {steps!r:.100}, expected floats by sample counts")
    if not all(isinstance(one, np.ndarray) for one in arrays) or len(arrays) != len(parameters):
        raise FormatError(
            f"{where} keeps {len(arrays)} arrays, and trains {len(parameters)} parameters",
            hint="use paddlelike.convert for the arrays; a checkpoint has one learner for all parameters",
        )
    count = entry.get("smoothed_count")
    return CntkLearner(
        int(_get(entry, "sample_count", int, where)),
        int(_get(entry, "minibatchCount", int, where)),
        int(_get(entry, "sweepCount", int, where)),
        {int(key): rate for key, rate in steps.items()},
        int(_get(rates, "epoch_size", int, where)),
        int(_get(rates, "ref_mb_size", int, where)),
        int(_get(entry, "noise_injection_seed", int, where)),
        count if isinstance(count, float) else None,
        dict(zip(parameters, arrays, strict=True)),
    )


def write_learner(learner: CntkLearner) -> dict[str, Any]:
    """Return a learner as CNTK saves it."""
    entry: dict[str, Any] = {
        "version": SizeT(_VERSION),
        "type": "Learner",
        "sample_count": SizeT(learner.sample_count),
        "minibatchCount": SizeT(learner.minibatch_count),
        "sweepCount": SizeT(learner.sweep_count),
        "noise_injection_seed": SizeT(learner.seed),
        "master_parameter_updated": True,
        _SCHEDULE: {
            "version": SizeT(2),
            "type": "TrainingParameterSchedule",
            "epoch_size": SizeT(learner.epoch_size),
            "ref_mb_size": SizeT(learner.reference),
            "schedule": {str(end): float(rate) for end, rate in learner.schedule.items()},
        },
        "smoothed_gradients": list(learner.arrays.values()),
    }
    if learner.smoothed_count is not None:
        entry["smoothed_count"] = float(learner.smoothed_count)
    return entry


def _get(entry: Any, key: str, kind: type, where: str) -> Any:
    found = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(found, kind) or isinstance(found, bool):
        raise FormatError(f"{where} has no {key}", hint="copy or save it again")
    return found
