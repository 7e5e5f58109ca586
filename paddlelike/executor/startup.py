"""The warning of a startup program that runs after a load."""

from __future__ import annotations

from paddlelike.core.scope import Scope
from paddlelike.foundation.warn import warn_user

__all__ = ["warn_overwriting"]


def warn_overwriting(scope: Scope, names: list[str]) -> None:
    """Warn when a startup program is about to replace loaded values."""
    loaded = []
    for name in names:
        holder = scope.find_var(name)
        if holder is not None and holder.origin is not None:
            loaded.append((name, holder.origin))
            holder.origin = None
    if loaded:
        name, origin = loaded[0]
        more = f" and {len(loaded) - 1} more" if len(loaded) > 1 else ""
        warn_user(
            f"this program initializes {name!r}{more}, which replaces the values loaded from {origin}; "
            "run the startup program before loading, not after"
        )
