"""What real Fluid 1.8.5 computes oddly but definitely: one table, and one flag.

A directory that Fluid saved, trained on by Fluid's script, must give Fluid's numbers. So Fluid's way is
the default, and the layer or optimizer warns where it makes a difference. ``FLAGS_fluid_quirks`` set to
False before the network is built turns every row to the textbook. What Fluid leaves undefined (reads out of
bounds, lost rows) is not copied.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from paddlelike.errors import QuirkWarning
from paddlelike.foundation.text_tables import read_table
from paddlelike.foundation.warn import warn_user
from paddlelike.framework.flags import flag


class Quirk(NamedTuple):
    """One row: Fluid's way, the textbook's way, and where Fluid 1.8.5 has it: file, line or function."""

    name: str
    where: str
    fluid: str
    ours: str
    source: str


def _read_rows() -> tuple[Quirk, ...]:
    """Return the rows of ``quirks.txt``: five lines each, an empty one between them."""
    rows = read_table("paddlelike.framework", "quirks.txt").split("\n\n")
    return tuple(Quirk(*row.splitlines()) for row in rows)


_ROWS: Final = _read_rows()
#: The rows by name.
QUIRKS: Final = {row.name: row for row in _ROWS}


class QuirkTable(tuple[Quirk, ...]):
    """The rows; printed, a table."""

    def __str__(self) -> str:
        way = flag("FLAGS_fluid_quirks")
        lines = [f"FLAGS_fluid_quirks is {way}: True computes Fluid's, False the textbook's"]
        for row in self:
            lines += [row.where, f"  Fluid 1.8.5: {row.fluid}", f"  textbook:    {row.ours}"]
            lines += [f"  source:      {row.source}"]
        return "\n".join(lines)

    __repr__ = __str__


def quirks() -> QuirkTable:
    """Return what Fluid 1.8.5 computes oddly: where, its way, the textbook's, and the place in its source.

    >>> print(quirks())
    FLAGS_fluid_quirks is True: True computes Fluid's, False the textbook's
    layers.swish(x, beta)
      Fluid 1.8.5: beta is 1.0 whatever is given
      textbook:    beta as given
    ...
    """
    return QuirkTable(_ROWS)


def follows_fluid(name: str) -> bool:
    """Return whether a row of the table is computed as Fluid does. Raises KeyError for an unknown name."""
    return bool(QUIRKS[name] and flag("FLAGS_fluid_quirks"))


def warn_quirk(name: str) -> bool:
    """Return :func:`follows_fluid`, and warn if so; for layers and optimizers where it makes a difference."""
    if not follows_fluid(name):
        return False
    row = QUIRKS[name]
    warn_user(
        f"{row.where}: as in Fluid 1.8.5, {row.fluid}; the textbook has {row.ours}. "
        "fluid.set_flags({'FLAGS_fluid_quirks': False}) before the network is built takes the textbook's "
        "way; fluid.quirks() lists all of these",
        QuirkWarning,
    )
    return True
