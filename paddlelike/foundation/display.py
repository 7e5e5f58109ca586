"""How objects show themselves in notebooks."""

from __future__ import annotations

from typing import Final

from paddlelike.hooks import Hook

_format_html: Final[Hook[[object], str]] = Hook("format_html")


class Displayed:
    """Base of classes that a notebook shows as HTML; the pages are written by :mod:`paddlelike.view`."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        """Return this object as HTML, or None to show its ``repr``."""
        return _format_html.function(self)
