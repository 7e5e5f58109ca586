"""Elements of HTML. All text in them is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any, Final

_LISTED: Final = 100  # rows of a table, and lines
# Colours and fonts are the notebook's, so that a dark theme stays dark.
_CELL: Final = "text-align:left; padding:1px 10px 1px 0; vertical-align:top"


class Html(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def join(*parts: str) -> Html:
    """Return parts one below the other in one element."""
    return Html(f"<div>{''.join(map(_escape, parts))}</div>")


def format_heading(title: str, facts: str = "") -> Html:
    """Return a line with a bold title."""
    return Html(f"<div><b>{_escape(title)}</b> {_escape(facts)}</div>")


def format_lines(lines: Iterable[str]) -> Html:
    """Return lines of text with their spaces preserved."""
    return Html(f'<pre style="margin:2px 0; white-space:pre-wrap">{_escape(chr(10).join(lines))}</pre>')


def format_table(titles: Sequence[str], rows: Sequence[Sequence[Any]]) -> Html:
    """Return a table of at most 100 rows; a line says how many more there are."""
    if not rows:
        return Html("")
    head = "".join(f'<th style="{_CELL}">{_escape(title)}</th>' for title in titles)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{_escape(cell)}</td>' for cell in row) + "</tr>"
        for row in rows[:_LISTED]
    )
    more = f"<div>and {len(rows) - _LISTED} more</div>" if len(rows) > _LISTED else ""
    return Html(
        f'<div style="overflow-x:auto"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        f"</div>{more}"
    )


def format_details(title: str, content: str) -> Html:
    """Return content that a click on its title shows; an empty text for no content."""
    if not content:
        return Html("")
    return Html(f"<details><summary>{_escape(title)}</summary>{_escape(content)}</details>")


def _escape(text: object) -> Html:
    return text if isinstance(text, Html) else Html(html.escape(str(text)))
