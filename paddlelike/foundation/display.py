"""How objects show themselves in notebooks."""

from __future__ import annotations

from paddlelike.hooks import find_provider

__all__ = ["Displayed"]


class Displayed:
    """Base of classes that a notebook shows as HTML; the pages are written by :mod:`paddlelike.view`."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        """Return this object as HTML; None: show its ``repr``."""
        format_html = find_provider("format_html")
        return None if format_html is None else str(format_html(self))
