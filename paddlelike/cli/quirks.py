"""``paddlelike quirks``."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass

import typer

from paddlelike.cli.output import Json, print_json
from paddlelike.framework.quirks import QUIRKS, quirks

__all__ = ["command"]


def command(json: bool = Json) -> None:
    """List what Fluid computes oddly, and what follows it."""
    if json:
        rows = QUIRKS.values() if isinstance(QUIRKS, dict) else QUIRKS
        print_json([asdict(one) if is_dataclass(one) else one._asdict() for one in rows])
    else:
        typer.echo(str(quirks()))
