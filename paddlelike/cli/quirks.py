"""``paddlelike quirks``."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass

from paddlelike.cli.output import Json, print_json, print_text


def command(json: bool = Json) -> None:
    """List the oddities of Fluid, and the layers that have them."""
    from paddlelike.framework.quirks import QUIRKS, quirks

    if json:
        rows = QUIRKS.values() if isinstance(QUIRKS, dict) else QUIRKS
        print_json([asdict(one) if is_dataclass(one) else one._asdict() for one in rows])
    else:
        print_text(str(quirks()))
