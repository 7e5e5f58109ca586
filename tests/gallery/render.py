"""Make the mistakes, and write the page of what is said about them."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import traceback
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import paddlelike as fluid

__all__ = ["list_mistakes", "render"]

Mistake = Callable[[], None]


def list_mistakes(names: Mapping[str, Any]) -> list[Mistake]:
    """Return the public functions that a module defines, in its order."""
    return [
        value
        for name, value in names.items()
        if not name.startswith("_") and getattr(value, "__module__", "") == names["__name__"]
    ]


def render(mistake: Mistake) -> str:
    """Return what a user reads after a mistake: warnings, then the last lines of the traceback.

    The mistake is made in an empty directory, in programs and a scope of its own.
    """
    before = Path.cwd()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.callback(os.chdir, before)
        os.chdir(folder)
        said = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        stack.enter_context(fluid.scope_guard(fluid.Scope()))
        stack.enter_context(fluid.program_guard(fluid.Program(), fluid.Program()))
        stack.enter_context(fluid.unique_name.guard())
        try:
            mistake()
        except Exception as error:
            last = "".join(traceback.format_exception_only(error)).rstrip()
            if error.__cause__ is not None:
                last = f"({type(error.__cause__).__name__} above it)\n{last}"
        else:
            last = "(no error)"
        lines = [f"{one.category.__name__}: {one.message}" for one in said]
        return _make_lasting("\n".join([*lines, last]), folder)


def _make_lasting(text: str, folder: str) -> str:
    """Return a message without what differs between runs and machines."""
    text = text.replace(os.path.realpath(folder), "/here").replace(folder, "/here")
    text = re.sub(r"(created at ).*?(\w+\.py):\d+", r"\1\2", text)
    text = re.sub(r"xxh3_128:[0-9a-f]{32}", "xxh3_128:...", text)
    return re.sub(r"paddlelike\.errors\.", "", text)
