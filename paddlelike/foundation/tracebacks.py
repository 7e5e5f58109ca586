"""Tracebacks of uncaught errors: the user's own lines, the message, the next step.

The frames of this package are hidden if it raised the error on purpose, or if the error comes from a user's
function that it called. Faults of this package are shown with all frames, and ``PADDLELIKE_TRACEBACK=full``
always shows all. For a wrong or missing argument the traceback lists the function's arguments.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any, Final

from paddlelike.hooks import Hook

__all__ = ["install_hook"]

_OURS: Final = __file__.rpartition("foundation")[0]
_OTHERS: Final = (os.__file__.removesuffix("os.py"), "<frozen ")
_FOUNDATION: Final = (f"{_OURS}foundation{os.sep}", f"{_OURS}lazy.py")
_MOST: Final = 60  # characters of a value that are shown
_PACKAGES: Final = f"{os.sep}site-packages{os.sep}"
_EXPLAIN: Final[Hook[[str, str, Callable[[str], object]], Iterator[str]]] = Hook("explain_python_error")

_Show = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def install_hook() -> None:
    """Install the traceback display for scripts (``sys.excepthook``) and notebooks."""
    show = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        count = _show_folded(error, trace, lambda folded: show(kind, error, folded))
        if count and sys.stderr is not None:
            sys.stderr.write(f"({_describe(count)})\n")

    sys.excepthook = excepthook
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((Exception,), _show_in_notebook)


def _show_in_notebook(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    """Show an error in IPython; ``tb_offset`` skips IPython's own frame."""
    count = _show_folded(
        error, trace, lambda folded: shell.showtraceback((kind, error, folded), tb_offset=tb_offset)
    )
    if count:
        print(f"({_describe(count)})", file=sys.stderr)  # noqa: T201


def _describe(count: int) -> str:
    from paddlelike.foundation.amounts import format_count  # late: only errors need it

    return f"not shown: {format_count(count, 'line')} inside paddlelike; PADDLELIKE_TRACEBACK=full shows all"


def _show_folded(
    error: BaseException, trace: TracebackType | None, show: Callable[[TracebackType | None], object]
) -> int:
    """Call ``show`` with the folded traceback, and return the number of hidden frames.

    The error is unchanged.
    """
    if os.environ.get("PADDLELIKE_TRACEBACK") == "full":
        show(trace)
        return 0
    kept = _fold(trace, by_caller=_add_signature(error, trace))
    if not getattr(error, "__notes__", None):  # shown for the first time
        for note in _describe_call(error, _list(trace)):
            error.add_note(f"  hint: {note}")
    if kept is None:
        show(trace)
        return 0
    cause, context, suppressed = error.__cause__, error.__context__, error.__suppress_context__
    if cause is not None and not _is_users(cause):
        error.__cause__ = None
        error.__suppress_context__ = True
    if context is not None and not suppressed and not _is_users(context):
        error.__suppress_context__ = True
    error.__traceback__ = folded = _link(kept)  # which Python's own hook prefers to its argument
    try:
        show(folded)
    finally:
        error.__cause__, error.__context__, error.__suppress_context__ = cause, context, suppressed
        error.__traceback__ = trace
    return len(_list(trace)) - len(kept)


def _fold(trace: TracebackType | None, *, by_caller: bool) -> list[TracebackType] | None:
    """Return the entries outside this package, or None to show the whole traceback.

    ``by_caller`` says that the arguments of the user's call are wrong.
    """
    entries = _list(trace)
    kept = [one for one in entries if not _is_ours(one.tb_frame)]
    if not kept or len(kept) == len(entries):
        return None
    last = entries[-1]
    wanted = _raises(last) if _is_ours(last.tb_frame) else _is_user_frame(last.tb_frame)
    return kept if wanted or by_caller else None


def _raises(entry: TracebackType) -> bool:
    """Return whether the line of a traceback entry is a ``raise`` statement."""
    return _read_line(entry).strip().startswith("raise ")


def _read_line(entry: TracebackType) -> str:
    import linecache

    frame = entry.tb_frame
    return linecache.getline(frame.f_code.co_filename, entry.tb_lineno, frame.f_globals)


def _list(trace: TracebackType | None) -> list[TracebackType]:
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    return entries


def _link(entries: list[TracebackType]) -> TracebackType | None:
    linked = None
    for one in reversed(entries):
        linked = TracebackType(linked, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return linked


def _is_users(error: BaseException) -> bool:
    """Return whether an error passed through the user's code, such as a reader."""
    return any(_is_user_frame(one.tb_frame) for one in _list(error.__traceback__))


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_OURS)


def _is_user_frame(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return not name.startswith((_OURS, *_OTHERS)) and _PACKAGES not in name


def _add_signature(error: BaseException, trace: TracebackType | None) -> bool:
    """Append a function's signature to Python's TypeError for a wrong or missing argument.

    Return whether the error is such a TypeError.
    """
    import re

    text, entries = str(error), _list(trace)
    wrong = r"got an unexpected keyword argument '(?P<wrong>\w+)'"
    said = re.match(rf"(?P<name>[\w.]+)\(\) (?:{wrong}|missing \d+ required |takes )", text)
    if type(error) is not TypeError or said is None or not entries or "it takes" in text:
        return False
    function = _find_function(said["name"], entries[-1].tb_frame, said["wrong"])
    if function is None:
        return False
    from inspect import signature

    from paddlelike.foundation.near_names import suggest_names

    taken = [one for one in signature(function).parameters.values() if one.name not in ("self", "cls")]
    shown = ", ".join(str(one.replace(annotation=one.empty)) for one in taken)
    near = (
        suggest_names(said["wrong"], [one.name for one in taken])
        if said["wrong"] and "mean" not in text
        else ""
    )
    near = next((f"{one}. It takes" for one in _explain(text, entries[-1])), near)
    called = said["name"].removesuffix(".__init__").removesuffix(".__new__")
    if not getattr(error, "__notes__", None):  # shown for the first time
        error.add_note(f"  hint: {near or 'it takes'} {called}({shown})")
    return True


def _describe_call(error: BaseException, entries: list[TracebackType]) -> Iterator[str]:
    """Yield notes on an error that Python raised, such as the arguments of the call into this package."""
    if not entries or "\n  hint: " in str(error):
        return
    ours = [one.tb_frame for one in entries if _is_ours(one.tb_frame)]
    named = [frame for frame in ours if not frame.f_code.co_filename.startswith(_FOUNDATION)]
    if not ours:
        yield from _explain(str(error), entries[-1])
    elif named and type(error).__module__ == "builtins" and not _raises(entries[-1]):
        code, values = named[0].f_code, named[0].f_locals
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        usual = _find_defaults(code.co_qualname, named[0])
        given = [f"{one}={_shorten(values[one])}" for one in names if one in values]
        given = [one for one in given if one not in usual]
        yield f"{code.co_qualname} was called with {', '.join(given) or 'its defaults'}"


def _list_parameters(function: Callable[..., object]) -> list[str]:
    from inspect import signature

    try:
        return list(signature(function).parameters)
    except (TypeError, ValueError):
        return []


def _find_defaults(path: str, frame: FrameType) -> list[str]:
    from inspect import signature

    function = _find_function(path, frame)
    taken = [] if function is None else signature(function).parameters.values()
    return [f"{one.name}={_shorten(one.default)}" for one in taken]


def _shorten(value: object) -> str:
    try:
        shown = " ".join(repr(value).split())
    except Exception:  # the user's, or one of an object that the error left incomplete
        shown = object.__repr__(value)
    return shown if len(shown) <= _MOST else f"{shown[:_MOST]}..."


def _explain(text: str, entry: TracebackType) -> Iterator[str]:
    """Return the advice for an error that Python raised in a line of the user."""
    return _EXPLAIN.function(text, _read_line(entry), lambda path: _look_up(path, entry.tb_frame))


def _look_up(path: str, frame: FrameType) -> object:
    """Return the value of a dotted name in a frame, or None if the frame lacks the name."""
    first, *rest = path.split(".")
    found = {**frame.f_globals, **frame.f_locals}.get(first)
    for one in rest:
        found = getattr(found, one, None)
    return found


def _find_function(path: str, frame: FrameType, without: str | None = None) -> Callable[..., object] | None:
    """Return this package's function of that qualified name, unless the caller defines one. The function must
    not have the parameter ``without``.
    """
    first, *rest = path.split(".")
    own = {**frame.f_globals, **frame.f_locals}
    modules = [one for one in list(sys.modules.items()) if one[0].startswith("paddlelike.")]
    modules.sort(key=lambda one: one[0].count("."))  # public names first
    for names in [own, *(vars(module) for _, module in modules)]:
        found = names.get(first)
        for one in rest:
            found = getattr(found, one, None)
        if getattr(found, "__qualname__", None) == path:
            if without is not None and callable(found) and without in _list_parameters(found):
                continue  # another function of that name
            module = str(getattr(found, "__module__", ""))
            return found if module.startswith("paddlelike.") else None
    return None
