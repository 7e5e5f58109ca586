"""The last save of every trainer on one server: under way, written or failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paddlelike.distributed.protocol.messages import Save


@dataclass(frozen=True, slots=True)
class Saving:
    """A save: under way while it has neither a manifest nor an error."""

    request: Save
    manifest: Mapping[str, Any] | None = None
    error: str = ""

    @property
    def is_under_way(self) -> bool:
        """Whether the rows are still to be written."""
        return self.manifest is None and not self.error


class Saves:
    """By trainer its last save; a repeated request finds the save that it began."""

    def __init__(self) -> None:
        self._last: dict[int, Saving] = {}

    def begin(self, request: Save) -> Saving:
        """Return the save of a request, begun now if it is newer than the trainer's last one."""
        last = self._last.get(request.trainer)
        # D16
        if last is None or _key(last.request) < _key(request):
            last = self._last[request.trainer] = Saving(request)
        return last

    def end(self, request: Save, *, manifest: Mapping[str, Any] | None = None, error: str = "") -> None:
        """Record the result of a save, unless a newer one has taken its place."""
        last = self._last.get(request.trainer)
        if last is not None and last.request == request:
            self._last[request.trainer] = Saving(request, manifest, error)

    def next(self) -> Save | None:
        """Return a save that is under way; None if there is none."""
        return next((one.request for _, one in sorted(self._last.items()) if one.is_under_way), None)


def _key(request: Save) -> tuple[int, int]:
    return request.process, request.number
