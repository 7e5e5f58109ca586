"""A process that compacts the directory PLACE."""

from __future__ import annotations

import os

from paddlelike.io import compact


def main() -> None:
    """Compact it."""
    compact(os.environ["PLACE"])
