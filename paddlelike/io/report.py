"""The reports of saves and loads: true if everything was saved or loaded, printed in a few lines."""

from __future__ import annotations

import functools
import math
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from paddlelike.foundation.amounts import format_count, format_size
from paddlelike.foundation.display import Displayed
from paddlelike.lazy import dataclass

if TYPE_CHECKING:
    import numpy as np


class Moved(NamedTuple):
    """One variable that was saved or loaded."""

    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    had_value: bool = False  # whether a value was replaced


@functools.lru_cache(4096)  # among thousands of variables, most share type and shape
def make_moved(dtype: np.dtype[Any], shape: tuple[int, ...], had_value: bool = False) -> Moved:
    """Return the entry of a variable whose array has this type and shape."""
    return Moved(shape, dtype.name, math.prod(shape) * dtype.itemsize, had_value)


@dataclass(frozen=True, repr=False)
class LoadReport(Displayed):
    """The result of a load.

    It is true if every requested variable was loaded, or left out on purpose (``skip``, ``init``). After
    ``strict=False`` it is false if a variable is missing or does not fit.

    Attributes
    ----------
    source
        The directory or file.
    loaded
        The loaded variables by name.
    missing
        Variables of the program that the files do not hold; such a load fails unless ``strict=False``.
    unexpected
        Files of the directory that the program does not use.
    misfits
        Variables that do not fit their files, with the reasons; such a load fails unless ``strict=False``.
    renamed
        Variables that come from a file of another name, with that name.
    skipped, kept, initialized
        Variables that a rule left unchanged; variables that are not in the files and kept their value, or
        were set to a constant.
    verified
        Whether all bytes that were read were compared with the manifest.
    mapped
        The number of values that are views of their files (``lazy=True``).
    notes
        Remarks that are not errors.
    seconds
        The duration in seconds.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> hidden = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    >>> exe, home = fluid.Executor(), tempfile.mkdtemp()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> saved = fluid.io.save_persistables(exe, home)
    >>> report = fluid.io.load_persistables(exe, home)
    >>> bool(report), report.loaded["fc_0.w_0"].shape, report.nbytes
    (True, (4, 3), 60)
    """

    source: str
    loaded: dict[str, Moved] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    misfits: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    initialized: tuple[str, ...] = ()
    verified: bool = False
    mapped: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of tensor data loaded."""
        return sum(moved.nbytes for moved in self.loaded.values())

    def __bool__(self) -> bool:
        return bool(self.loaded) and not self.missing and not self.misfits

    def __repr__(self) -> str:
        return f"<LoadReport: {str(self).partition(chr(10))[0]}>"

    def __str__(self) -> str:
        replaced = sum(moved.had_value for moved in self.loaded.values())
        what = f"{format_count(len(self.loaded), 'variable')} ({format_size(self.nbytes)})"
        compared = ", compared with the manifest" if self.verified else ""
        lines = [
            f"loaded {what} from {self.source} in {self.seconds:.3f} s{compared}; {replaced} replaced a value"
        ]
        for label, names in (
            ("missing", self.missing),
            ("left as they were, by a rule", self.skipped),
            ("not in the files, left as they were", self.kept),
            ("not in the files, set to a constant", self.initialized),
            ("from files of other names", tuple(f"{v} (from {f})" for v, f in self.renamed.items())),
            ("in the directory, not requested", self.unexpected),
        ):
            if names:
                lines.append(f"  {label}: {_list_names(names)}")
        lines += [f"  does not fit: {name}: {why}" for name, why in list(self.misfits.items())[:8]]
        if len(self.misfits) > 8:
            lines.append(f"  and {len(self.misfits) - 8} more do not fit")
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class SaveReport(Displayed):
    """The result of a save.

    Attributes
    ----------
    target
        The directory or file.
    saved
        The variables of the save by name, also those whose files were kept.
    written, written_bytes
        The files that were written, and the bytes in them.
    manifest_bytes
        The bytes of the manifest, which are written in addition.
    kept
        The files that were not written again, because their variables had not changed since the last save.
    stale
        Files in the directory that the same program wrote in an earlier save and that are not part of this
        one.
    removed
        Stale files that were deleted, because of ``remove_stale=True``.
    notes
        Remarks, such as why a process saves nothing.
    seconds
        The duration in seconds.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> hidden = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    >>> exe, home = fluid.Executor(), tempfile.mkdtemp()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> report = fluid.io.save_persistables(exe, home)
    >>> bool(report), sorted(report.saved), report.written
    (True, ['fc_0.b_0', 'fc_0.w_0'], 2)
    """

    target: str
    saved: dict[str, Moved] = field(default_factory=dict)
    seconds: float = 0.0
    written: int = 0
    written_bytes: int = 0
    kept: int = 0
    stale: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    manifest_bytes: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of tensor data saved."""
        return sum(moved.nbytes for moved in self.saved.values())

    def __bool__(self) -> bool:
        return bool(self.saved)

    def __repr__(self) -> str:
        return f"<SaveReport: {str(self).partition(chr(10))[0]}>"

    def __str__(self) -> str:
        line = (
            f"saved {format_count(len(self.saved), 'variable')} ({format_size(self.nbytes)}) to {self.target}"
            f" in {self.seconds:.3f} s"
        )
        if self.kept:
            line += (
                f"; {format_count(self.kept, 'file')} kept, {self.written} written "
                f"({format_size(self.written_bytes)}, and {format_size(self.manifest_bytes)} of manifest)"
            )
        if self.stale:
            names = _list_names(self.stale)
            line += f"\n  stale, of an earlier save (remove_stale=True deletes them): {names}"
        if self.removed:
            line += f"\n  stale files deleted: {_list_names(self.removed)}"
        return line + "".join(f"\n  note: {note}" for note in self.notes)


def _list_names(names: tuple[str, ...], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
