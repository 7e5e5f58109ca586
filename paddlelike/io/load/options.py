"""The options that every load takes besides Fluid's own arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from paddlelike.foundation.keyword_options import KeywordOptions
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable
from paddlelike.io.rules.rule import Rule
from paddlelike.io.rules.rules import Rules

Init = str | float | Mapping[str, str | float] | None


@dataclass(frozen=True, kw_only=True)
class LoadOptions(KeywordOptions):
    """The options of :func:`load_vars` and the other loads.

    Attributes
    ----------
    strict
        False: load the values that fit; the report lists those that are missing or do not fit.
    rename
        ``{name in the files: name in the program}``; also a list of variables that take the same value.
    rules
        :class:`Rules` for many names at once, with transposed, sliced, concatenated and overlapping values.
    skip
        Patterns of variables that stay as they are, and of files that are not used (``"fc_2.*"``).
    init
        The value of variables that the files do not hold: ``"keep"`` their value, ``"zero"``, a number, or
        ``{pattern: one of these}``. With ``strict=False`` also of those that do not fit.
    names
        The names of the values in a combined file, if these are not the selected variables; or the program
        that was saved.
    lazy
        Map files instead of reading them, copy-on-write; :mod:`paddlelike.io.contents.lazy` says what it
        costs.
    verify
        Compare the bytes with the manifest while they are read. None: where there is a manifest, and not when
        ``lazy``; files that it has no checksum of are loaded all the same. True: a directory without a
        manifest, or a file without a checksum, is refused. False: compare nothing.
    in_place
        Read into the arrays that the variables have already, where these have the right form: no second
        model in memory, and a third of the time. Everything is still checked from the headers first; but if
        the disk then fails, or ``verify`` finds other bytes, the variables hold a mix, and the error says so.
    """

    strict: bool = True
    rename: Mapping[str, str | Sequence[str]] | None = None
    rules: Rules | Iterable[Rule] | None = None
    skip: str | Iterable[str] | None = None
    init: Init = None
    names: Iterable[Variable | str] | Program | None = None
    lazy: bool = False
    verify: bool | None = None
    in_place: bool = False


class LoadKeywords(TypedDict, total=False):
    """The types of the fields of :class:`LoadOptions`, for the signatures that take them as keywords."""

    strict: bool
    rename: Mapping[str, str | Sequence[str]] | None
    rules: Rules | Iterable[Rule] | None
    skip: str | Iterable[str] | None
    init: Init
    names: Iterable[Variable | str] | Program | None
    lazy: bool
    verify: bool | None
    in_place: bool
