"""The HTML form of objects in notebooks."""

from __future__ import annotations

from typing import Final

from paddlelike.hooks import Hook

_format_html: Final[Hook[[object], str]] = Hook("format_html")


class Displayed:
    """Base class of objects that a notebook shows as HTML; :mod:`paddlelike.view` writes the pages."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        """Return this object as HTML, or None to show its ``repr``."""
        return _format_html.function(self)
