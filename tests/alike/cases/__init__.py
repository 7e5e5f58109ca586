"""Small scripts whose outcome is recorded from the real system: what it builds, returns and refuses.

Every case takes the `fluid` module, ours or the real one, and a directory of its own, and returns plain
data, arrays, programs or refusals. These files keep to what Python 3.7 understands.
"""

from __future__ import annotations

from tests.alike.cases import (
    backward,
    files,
    metrics,
    parallel,
    programs,
    randomness,
    reading,
    runs,
    values,
    windows,
)

__all__ = ["CASES"]

CASES = {
    f"{family.__name__.split('.')[-1]}.{name}": case
    for family in (backward, files, metrics, parallel, programs, randomness, reading, runs, values, windows)
    for name, case in sorted(vars(family).items())
    if getattr(case, "__module__", None) == family.__name__ and not name.startswith("_") and callable(case)
}
