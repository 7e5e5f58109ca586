"""The findings of a scan, as values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal, NamedTuple

from paddlelike.foundation.display import Displayed
from paddlelike.lazy import dataclass

#: Of a finding.
Kind = Literal["paddle", "python", "package", "device", "unseen"]
#: On a script.
Verdict = Literal["stops", "may stop", "runs"]


class ScriptFinding(NamedTuple):
    """A place in a script.

    Attributes
    ----------
    file, line
        The path below the folder, and the line; in a notebook the cell and the line in it.
    kind
        "paddle" for an unsupported name or argument; "python" or "package" for a name that Python, or numpy
        and Pillow, no longer have; "device" for a GPU; "unseen" if only a run would show it.
    certain
        Whether the script reaches it without command-line arguments; otherwise it may reach it.
    """

    file: str
    line: str
    name: str
    kind: Kind
    why: str
    step: str
    certain: bool


@dataclass(frozen=True)
class ScriptVerdict:
    """The verdict on one script that is run without arguments: "stops", "may stop" or "runs"."""

    path: str
    verdict: Verdict
    findings: tuple[ScriptFinding, ...]


class FileFinding(NamedTuple):
    """A file that is not a script: ``stops`` says why it cannot be used, "" if it can."""

    path: str
    kind: str
    title: str
    stops: str
    step: str


@dataclass(frozen=True, repr=False)
class Scan(Displayed):
    """The result of a scan: supported and unsupported contents of a folder; true when nothing stops.

    Attributes
    ----------
    names
        The known names of Paddle that are used, with their counts.
    packages
        Other packages that scripts import: whether each is installed.
    operators
        The operators of all models, and how often; ``unknown_operators`` those that cannot run here.
    """

    path: str
    scripts: tuple[ScriptVerdict, ...]
    files: tuple[FileFinding, ...]
    names: dict[str, int]
    packages: dict[str, bool]
    operators: dict[str, int]
    unknown_operators: tuple[str, ...]

    def __bool__(self) -> bool:
        return not any(one.verdict == "stops" for one in self.scripts) and not any(
            one.stops for one in self.files
        )

    def __repr__(self) -> str:
        counts = {verdict: sum(one.verdict == verdict for one in self.scripts) for verdict in _VERDICTS}
        listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        return f"<Scan: {self.path}: of {len(self.scripts)} scripts {listed}; {len(self.files)} files>"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return {**asdict(self), "scripts": [_plain(one) for one in self.scripts],
                "files": [one._asdict() for one in self.files], "fine": bool(self)}  # fmt: skip


_VERDICTS = ("stops", "may stop", "runs")


def _plain(script: ScriptVerdict) -> dict[str, Any]:
    found = [one._asdict() for one in script.findings]
    return {"path": script.path, "verdict": script.verdict, "findings": found}
