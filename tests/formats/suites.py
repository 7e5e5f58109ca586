"""The suites of the formats: the registry needs one for each, and fuzzing makes a target of each."""

from __future__ import annotations

from paddlelike.testing import FormatContract


def suites() -> list[type[FormatContract]]:
    """Every suite that was imported."""
    found: list[type[FormatContract]] = []
    pending = [FormatContract]
    while pending:
        for suite in pending.pop().__subclasses__():
            found.append(suite)
            pending.append(suite)
    return [suite for suite in found if suite.__module__.startswith("tests.")]
