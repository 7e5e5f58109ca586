"""Objects as HTML, for notebooks."""

from paddlelike.view.html import format_html

__all__ = ["format_html"]
