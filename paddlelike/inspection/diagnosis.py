"""Diagnosis of saved files: what is odd, what real Paddle would say, and how to open them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from paddlelike.errors import FormatError, PaddlelikeError
from paddlelike.formats import registry
from paddlelike.formats.paddle.server_tables import ServerTables
from paddlelike.foundation.amounts import format_count
from paddlelike.foundation.display import Displayed
from paddlelike.framework.environment import PADDLE2_VERSION
from paddlelike.inspection.inspect import FileFacts, Inspection, inspect_content
from paddlelike.interop.content import Content, list_persistables, open_content
from paddlelike.interop.damage import list_damage
from paddlelike.io.load.model_files import Model, find_model
from paddlelike.storage.names import MANIFEST
from paddlelike.storage.problems import raises_own_errors


class Finding(NamedTuple):
    """Something odd.

    Attributes
    ----------
    level
        "error": values are lost or wrong, or a load fails; "warning": probably not intended; "note".
    what, paddle, advice
        What is so; what real Paddle does with it ("": nothing special); the next step.
    """

    level: Literal["error", "warning", "note"]
    what: str
    advice: str = ""
    paddle: str = ""


@dataclass(frozen=True, repr=False)
class Diagnosis(Displayed):
    """The findings about a path, and how to open it; true when nothing is wrong.

    Attributes
    ----------
    calls
        Who opens it, and the call: "paddlelike", "Paddle 1.8", "Paddle 2.x", "Paddle 3.x".
    files, variables, nbytes
        How many files and variables were looked at, and the bytes of their elements.
    unread
        The count of files that could not be read.
    """

    path: str
    title: str
    findings: tuple[Finding, ...]
    calls: tuple[tuple[str, str], ...]
    files: int = 0
    variables: int = 0
    nbytes: int = 0
    unread: int = 0

    def __bool__(self) -> bool:
        return all(finding.level == "note" for finding in self.findings)

    def __repr__(self) -> str:
        return f"<Diagnosis: {self.path}: {self.title}, {len(self.findings)} findings>"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        plain = asdict(self)
        plain["findings"] = [finding._asdict() for finding in self.findings]
        return {**plain, "fine": bool(self)}


@raises_own_errors
def diagnose(
    path: str | os.PathLike[str],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Diagnosis:
    """Return what is odd about a directory or file of any known format. Every file is read.

    Raises
    ------
    MissingFileError
        There is nothing under the path.

    >>> import tempfile, pathlib
    >>> home = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (home / "fc_0.w_0").write_bytes(b"<!doctype html><title>404</title>")
    >>> print(diagnose(home).findings[0].what)
    fc_0.w_0: a web page (HTML), saved in place of the file
    """
    left = find_leftovers(os.fspath(path))  # before anything is opened, which finishes such a save
    with open_content(path) as content:
        return diagnose_content(content, inspect_content(content, progress=progress), left)


def diagnose_content(content: Content, found: Inspection, left: Sequence[Finding]) -> Diagnosis:
    """Return what :func:`diagnose` returns, for what is opened; ``left``: what saves have left."""
    calls = tuple(_list_calls(content, found))
    findings = [
        *_find_unreadable(found),
        *_find_odd_values(found),
        *_find_left_out(found),
        *_find_missing(content),
        *_find_manifest_problems(content),
        *left,
        *_find_unnamed(found),
    ]
    if found.title.startswith("a directory of ") and found.files and not calls:
        inner = sorted({file.name.split("/")[0] for file in found.files if "/" in file.name})
        if inner:
            text = f"the files are one level deeper, in {_shorten(inner)}"
            findings.append(Finding("note", text, f"look at {os.path.join(content.path, inner[-1])}"))
    if not content.files:
        findings.append(
            Finding("error", f"{content.path} is empty", "the save was stopped or never made; save again")
        )
    order = {"error": 0, "warning": 1, "note": 2}
    findings.sort(key=lambda finding: order[finding.level])
    unread = sum(file.kind == "other" for file in found.files)
    counts = len(found.files), len(found.variables), found.nbytes, unread
    return Diagnosis(content.path, found.title, tuple(findings), calls, *counts)


def _find_unreadable(found: Inspection) -> Iterator[Finding]:
    for file in found.files:
        if file.problem is not None:
            yield Finding(
                "error",
                f"{file.name}: {file.problem}",
                "copy or save the file again",
                "Paddle aborts, or names a number that is not a version",
            )
        elif file.kind == "other":
            what, _, advice = file.title.removeprefix("this is ").partition(": ")
            yield Finding(
                "warning",
                f"{file.name}: {what}",
                advice or "take it out of the directory if it is not the model's",
                "load_program_state(directory) reads every file and fails on this one",
            )


def _find_odd_values(found: Inspection) -> Iterator[Finding]:
    for one in found.variables:
        if one.problem:
            yield Finding("error", f"{one.name}: {one.problem}", "copy or save the file again")
        elif one.statistics is None:
            continue
        elif one.statistics.nan or one.statistics.inf:
            count = one.statistics.nan + one.statistics.inf
            yield Finding(
                "error",
                f"{one.name}: {count} of {one.statistics.count} elements are NaN or infinite",
                "training diverged before this save: go back to an earlier one",
                "Paddle loads them without a word",
            )
        elif one.role == "parameter" and one.statistics.flags and len(one.shape) > 1:
            yield Finding(
                "warning", f"{one.name}: all {one.statistics.count} elements are zero", "was it trained?"
            )


def _find_left_out(found: Inspection) -> Iterator[Finding]:
    """Find the contents of files that no conversion or load brings into a program."""
    for file, left_out in found.left_out.items():
        for is_plain in (False, True):
            some = [one for one in left_out if one.is_value and one.is_plain == is_plain]
            if some:
                names = _shorten([f"{one.name} ({one.what})" for one in some])
                yield Finding(
                    "note" if is_plain else "warning",
                    f"{file} holds {format_count(len(some), 'value')} beside variables: {names}",
                    "loads and conversions leave them out; "
                    + (
                        "a conversion to .pdparams or .pdopt keeps them"
                        if is_plain
                        else "the system that wrote the file reads them"
                    ),
                )


def _find_missing(content: Content) -> Iterator[Finding]:
    """Find variables that a program needs and no file holds, and the other way round."""
    everything = {one.name for one in content.variables}
    by_position = bool(content.unnamed)
    for file, program in content.programs.items():
        beside = file[: file.rfind("/") + 1]  # the folder of the program, which holds its files
        held = {one for one in everything if one.startswith(beside)}
        wanted = {f"{beside}{one.name}" for one in list_persistables(program)}
        missing = sorted(wanted - held)
        if missing and held and not by_position:
            yield Finding(
                "error",
                f"{file} needs {len(missing)} variables that no file holds: {_shorten(missing)}",
                "copy the missing files, or plan the load with rules: paddlelike plan",
                f"Cannot open file {missing[0]} for load op",
            )
        elif missing and not held and not by_position:
            yield Finding(
                "note",
                f"{file} stands alone: its {len(missing)} persistable variables are in another place",
                "load its values from there, or run the startup program",
            )
        unused = sorted(held - wanted) if wanted else []
        if unused and not missing:
            yield Finding("note", f"{file} does not use {len(unused)} variables: {_shorten(unused)}")


def _find_manifest_problems(content: Content) -> Iterator[Finding]:
    if not content.files:
        return
    if content.is_file:
        with suppress(FormatError):  # which is a finding already
            yield from [
                Finding("error", line, "restore it from a copy") for line in list_damage(content.path)
            ]
        return
    if content.manifest is None:
        yield Finding("note", "there is no manifest: flipped bits cannot be found", "save it again once")
        return
    result = content.where.verify()
    if result.problem:
        yield Finding("warning", f"{MANIFEST}: {result.problem}", "save again")
    texts = {"missing": "is missing", "cut": "has another size than", "changed": "has other bytes than"}
    for what, text in texts.items():
        for name in getattr(result, what):
            why = f" ({result.why[name]})" if name in result.why else ""
            yield Finding(
                "error",
                f"{name} {text}{'' if what == 'missing' else ' when it was saved'}{why}",
                "restore it from a copy; or, if it was replaced on purpose, save again",
                "Paddle does not notice other bytes",
            )


def find_leftovers(path: str) -> list[Finding]:
    """Find what a killed save left beside a local directory."""
    parent, name = os.path.split(os.path.abspath(path))
    try:
        left = [one for one in os.listdir(parent) if one.startswith(f".{name}.saving-")]
    except OSError:
        return []
    return [
        Finding(
            "note",
            f"{one} beside it is of a save that runs now, or was killed",
            "the next save or load of the directory finishes or removes it (this look did)",
        )
        for one in left
    ]


def _find_unnamed(found: Inspection) -> list[Finding]:
    return [
        Finding(
            "note",
            f"{name} stores no names, and neither a manifest nor a program says them",
            "load it with the program it belongs to: variables are in the order of their sorted names",
        )
        for name in found.unnamed
    ]


def _list_calls(content: Content, found: Inspection) -> list[tuple[str, str]]:
    """Return who opens the path, and how."""
    path = content.path
    if shards := sum("/001/" not in f"/{one.name}" for one in found.files if one.kind == ServerTables.name):
        return [
            ("paddlelike", f"growing_tables.load_one_table(exe, name, {path!r}, program)"),
            ("paddlelike", f"fluid.convert({path!r}, 'directory')"),
            ("Paddle 2.x", f"fleet.init_server({path!r}), where shard_num is {shards}"),
        ]
    if not content.is_file and all("/" in file.name for file in found.files):
        return []
    kinds = Counter(file.kind for file in found.files)
    programs = [file for file in found.files if file.kind == "program"]
    combined = [file for file in found.files if file.kind == "combined"]
    if content.is_file and not programs:
        return _list_file_calls(path, found.files[0])
    model = find_model(path)
    if model is not None and model.program is not None:
        return _list_model_calls(path, model, content)
    if kinds["state"]:
        stem = path if not os.path.isdir(path) else os.path.join(path, _find_stem(found))
        return [
            ("paddlelike", f"fluid.load(program, {stem!r})"),
            ("Paddle 1.8", f"fluid.load(program, {stem!r})"),
            ("Paddle 2.x, 3.x", f"paddle.load({stem + '.pdparams'!r})"),
        ]
    if kinds["link"]:
        call = f"fluid.io.load_persistables(exe, {path!r}, program)"
        return [("paddlelike", call), ("Paddle 1.8", f"{call}, after `paddlelike compact {path}`")]
    if programs and (kinds["variable"] or combined):
        files = ""
        if programs[0].name != "__model__":
            files += f", model_filename={programs[0].name!r}"
        if combined:
            files += f", params_filename={combined[0].name!r}"
        calls = [("paddlelike", f"fluid.io.load_inference_model({path!r}, exe{files})")]
        calls.append(("Paddle 1.8", calls[0][1]))
        if combined:
            names = f"model_filename={programs[0].name!r}, params_filename={combined[0].name!r}"
            calls.append(("Paddle 2.x", f"paddle.static.load_inference_model({path!r}, exe, {names})"))
        return calls
    if kinds["variable"]:
        return [
            ("paddlelike", f"fluid.io.load_persistables(exe, {path!r}, program)"),
            ("Paddle 1.8", f"fluid.io.load_persistables(exe, {path!r}, program)"),
            ("Paddle 2.x", f"paddle.static.load_program_state({path!r})"),
        ]
    if combined:
        name = combined[0].name
        call = f"fluid.io.load_persistables(exe, {path!r}, program, filename={name!r})"
        return [("paddlelike", call), ("Paddle 1.8", call)]
    if kinds["paddle_distributed"]:
        return [
            ("paddlelike", f"fluid.load_program_state({path!r})"),
            ("paddlelike", f"fluid.convert({path!r}, 'directory')"),
            ("Paddle 3.x", f"paddle.distributed.load_state_dict(state_dict, {path!r})"),
        ]
    others = [file for file in found.files if file.kind not in ("other", "manifest", "program")]
    return _list_file_calls(os.path.join(path, others[0].name), others[0]) if others else []


def _list_model_calls(path: str, model: Model, content: Content) -> list[tuple[str, str]]:
    """Return the calls for a model of Paddle 2 or 3, which these name by the prefix of its files."""
    assert model.program is not None
    prefix, end = os.path.splitext(os.path.join(model.directory, model.program))
    calls = [("paddlelike", f"fluid.io.load_inference_model({path!r}, exe)")]
    program = content.programs.get(model.program) or next(iter(content.programs.values()), None)
    later = program is not None and program.paddle_version >= PADDLE2_VERSION
    if not later:
        values = "" if model.values is None else f", params_filename={model.values!r}"
        names = f"model_filename={model.program!r}{values}"
        calls.append(("Paddle 1.8", f"fluid.io.load_inference_model({model.directory!r}, exe, {names})"))
    version = "Paddle 3.x" if end == ".json" else "Paddle 2.x"
    return [*calls, (version, f"paddle.static.load_inference_model({prefix!r}, exe)")]


def _list_file_calls(path: str, file: FileFacts) -> list[tuple[str, str]]:
    directory, name = os.path.split(path)
    call = f"fluid.io.load_persistables(exe, {directory or '.'!r}, program, filename={name!r})"
    if file.kind in ("variable", "combined"):
        return [("paddlelike", call), ("Paddle 1.8", call)]
    if file.kind == "state":
        stem = os.path.splitext(path)[0]
        return [
            ("paddlelike", f"fluid.load(program, {stem!r})"),
            ("Paddle 2.x, 3.x", f"paddle.load({path!r})"),
        ]
    try:
        known = registry.find(file.kind)
    except PaddlelikeError:
        return []
    calls = [("paddlelike", call)] if known.holds.names else []
    return [*calls, ("paddlelike", f"fluid.convert({path!r}, 'directory')")]


def _find_stem(found: Inspection) -> str:
    state = next(file.name for file in found.files if file.kind == "state")
    return os.path.splitext(state)[0]


def _shorten(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
