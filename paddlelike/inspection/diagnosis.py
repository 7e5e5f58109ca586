"""Diagnosis of saved files: problems, the error of real Paddle, and how to open them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final, Literal, NamedTuple

from paddlelike.errors import FormatError, PaddlelikeError, StorageError
from paddlelike.formats import registry
from paddlelike.formats.paddle.server_tables import ServerTables
from paddlelike.formats.state.fluid_save import PARAMETER_FILE, FluidSave
from paddlelike.foundation.amounts import format_count
from paddlelike.foundation.display import Displayed
from paddlelike.framework.environment import PADDLE2_VERSION
from paddlelike.inspection.inspect import FileFacts, Inspection, inspect_content
from paddlelike.interop.content import Content, list_persistables, open_content
from paddlelike.interop.damage import list_damage, verify_path
from paddlelike.io.load.model_files import Model, find_model
from paddlelike.lazy import dataclass
from paddlelike.storage.names import MANIFEST
from paddlelike.storage.problems import raises_own_errors

OURS: Final = "paddlelike"
PADDLE1: Final = "Paddle 1.8"
PADDLE2: Final = "Paddle 2.x"
PADDLE3: Final = "Paddle 3.x"
LATER: Final = "Paddle 2.x, 3.x"

#: Without it, Paddle 3 reads programs of its own form alone, and of a directory of variables nothing.
OLD_PROGRAMS: Final = ", with FLAGS_enable_pir_api=0 in the environment"

#: Names that the state of a layer has, or values in lists and dicts, and no variable of a program.
_OF_LAYERS: Final = re.compile(r"/|^\d+$|\.(weight|bias)$|^eager_tmp_\d+$")


class Finding(NamedTuple):
    """One unusual property of a file.

    Attributes
    ----------
    level
        "error": values are lost or wrong, or a load fails; "warning": probably not intended; "note".
    what, paddle, advice
        The property; what real Paddle does with it ("": nothing special); the next step.
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
        Each system that opens it, and its call: "paddlelike", "Paddle 1.8", "Paddle 2.x", "Paddle 3.x".
    files, variables, nbytes
        The numbers of examined files and variables, and the bytes of their elements.
    unread
        The number of files that could not be read.
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
    """Return the findings on a directory or file of any known format. Every file is read.

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
    """Return the findings of :func:`diagnose` for open contents; ``left`` are remains of saves."""
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
            Finding("error", f"{content.path} is empty", "the save was interrupted or never made; save again")
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
                file.explain()[1],
                "" if file.hint else "Paddle aborts, or names a number that is not a version",
            )
        elif file.kind == "other":
            what, advice = file.explain()
            yield Finding(
                "warning",
                f"{file.name}: {what}",
                advice or "take it out of the directory if it is not the model's",
                "load_program_state(directory) reads every file and fails on this one",
            )


def _find_odd_values(found: Inspection) -> Iterator[Finding]:
    for one in found.variables:
        if one.problem:
            yield Finding("error", f"{one.name}: {one.problem}", "copy or save it again")
        elif one.statistics is None:
            continue
        elif one.statistics.nan or one.statistics.inf:
            count = one.statistics.nan + one.statistics.inf
            yield Finding(
                "error",
                f"{one.name}: {count} of {one.statistics.count} elements are NaN or infinite",
                "training diverged before this save: go back to an earlier one",
                "Paddle loads them without a warning",
            )
        elif one.role == "parameter" and one.statistics.flags and len(one.shape) > 1:
            yield Finding(
                "warning",
                f"{one.name}: all {one.statistics.count} elements are zero",
                "train it, or load its values, and save again",
            )


def _find_left_out(found: Inspection) -> Iterator[Finding]:
    """Find contents of files that no load or conversion can use."""
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
    """Find variables that a program needs but no file contains, and values that no program needs."""
    everything = {one.name for one in content.variables}
    by_position = bool(content.unnamed)
    for file, program in content.programs.items():
        beside = file[: file.rfind("/") + 1]  # the folder of the program, which holds its files
        held = {one for one in everything if one.startswith(beside)}
        wanted = {f"{beside}{one.name}" for one in list_persistables(program)}
        missing = sorted(wanted - held)
        if missing and held and not by_position:
            count = format_count(len(missing), "variable")
            yield Finding(
                "error",
                f"{file} needs {count} that no file holds: {_shorten(missing)}",
                "copy the missing files, or plan the load with rules: paddlelike plan",
                f"Cannot open file {missing[0]} for load op",
            )
        elif missing and not held and not by_position:
            yield Finding(
                "note",
                f"{file} holds no values: its {len(missing)} persistable variables are in other files",
                "name the directory of both, load the values from there, or run the startup program",
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
    try:
        result = verify_path(content.path)
    except StorageError as error:  # of a file that cannot be read, which is a finding already
        yield Finding("error", f"{MANIFEST}: not compared: {error.message}", error.hint or "")
        return
    if "no manifest" in (result.problem or ""):
        yield Finding("note", "the manifest is missing, so flipped bits cannot be found", "save again")
    elif result.problem:
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
    """Find the remains of a killed save beside a local directory."""
    parent, name = os.path.split(os.path.abspath(path))
    try:
        left = [one for one in os.listdir(parent) if one.startswith(f".{name}.saving-")]
    except OSError:
        return []
    return [
        Finding(
            "note",
            f"{one} beside it belongs to a save that is running or was killed",
            "loads leave it out, and the next save of the directory removes it",
        )
        for one in left
    ]


def _find_unnamed(found: Inspection) -> list[Finding]:
    return [
        Finding(
            "note",
            f"{name} stores no names, and neither a manifest nor a program names its values",
            "load it with the program it belongs to: variables are in the order of their sorted names",
        )
        for name in found.unnamed
    ]


def _list_calls(content: Content, found: Inspection) -> list[tuple[str, str]]:
    """Return which systems open the path, and how. Paddle 3 reads Paddle 2's files with a setting."""
    calls = _find_calls(content, found)
    later = [(PADDLE3, call + OLD_PROGRAMS) for who, call in calls if who == PADDLE2 and "static" in call]
    return calls + later


def _find_calls(content: Content, found: Inspection) -> list[tuple[str, str]]:
    path = content.path
    if shards := sum("/001/" not in f"/{one.name}" for one in found.files if one.kind == ServerTables.name):
        return [
            (OURS, f"growing_tables.load_one_table(exe, name, {path!r}, program)"),
            (OURS, f"fluid.convert({path!r}, 'directory')"),
            (PADDLE2, f"fleet.init_server({path!r}), where shard_num is {shards}"),
        ]
    if not content.is_file and all("/" in file.name for file in found.files):
        return []
    model = find_model(path)
    if model is not None and model.program is not None:
        return _list_model_calls(path, model, content)
    kinds = Counter(file.kind for file in found.files)
    programs = [file for file in found.files if file.kind == "program"]
    combined = [file for file in found.files if file.kind == "combined"]
    if content.is_file:
        is_part = found.files[0].kind in ("program", "manifest") or path.endswith((".distcp", ".metadata"))
        if not is_part:
            return _list_file_calls(path, found.files[0], found)
        with open_content(os.path.dirname(path) or ".") as folder:
            facts = inspect_content(folder, statistics=False)
        return _find_calls(folder, facts) if len(folder.programs) < 2 else []
    if kinds["state"]:
        stem = path if not os.path.isdir(path) else os.path.join(path, _find_stem(found))
        return _list_state_calls(stem + PARAMETER_FILE, found)
    if kinds["link"]:
        call = f"fluid.io.load_persistables(exe, {path!r}, program)"
        return [(OURS, call), (PADDLE1, f"{call}, after `paddlelike compact {path}`")]
    if programs and (kinds["variable"] or combined):
        names = f", model_filename={programs[0].name!r}"
        if combined:
            names += f", params_filename={combined[0].name!r}"
        short = "" if programs[0].name == "__model__" and not combined else names
        call = f"fluid.io.load_inference_model({path!r}, exe{short})"
        later = f"paddle.static.load_inference_model({path!r}, exe{names})"
        return [(OURS, call), (PADDLE1, call), (PADDLE2, later)]
    if kinds["variable"]:
        call = f"fluid.io.load_persistables(exe, {path!r}, program)"
        return [(OURS, call), (PADDLE1, call), (PADDLE2, f"paddle.static.load_program_state({path!r})")]
    if combined:
        return _list_file_calls(os.path.join(path, combined[0].name), combined[0], found)
    if kinds["paddle_distributed"]:
        safe = any(file.name.endswith(".safetensors") for file in found.files)
        more = ", safetensors=True" if safe else ""
        return [
            (OURS, f"fluid.load_program_state({path!r})"),
            (OURS, f"fluid.convert({path!r}, 'directory')"),
            (PADDLE3, f"paddle.distributed.load_state_dict(state_dict, {path!r}{more})"),
        ]
    others = [file for file in found.files if file.kind not in ("other", "manifest", "program")]
    return _list_file_calls(os.path.join(path, others[0].name), others[0], found) if others else []


def _list_model_calls(path: str, model: Model, content: Content) -> list[tuple[str, str]]:
    """Return the calls for a model of Paddle 2 or 3; they take the prefix of its files."""
    assert model.program is not None
    prefix, end = os.path.splitext(os.path.join(model.directory, model.program))
    if model.values is not None and not content.variables:  # its values cannot be read either
        return []
    program = content.programs.get(model.program) or next(iter(content.programs.values()), None)
    file = next((one for one in content.files if one.name == model.program), None)
    problem = file.problem or "" if program is None and file is not None else None
    if problem is not None and "not supported" not in problem:
        return []
    calls = [] if problem is not None else [(OURS, f"fluid.io.load_inference_model({path!r}, exe)")]
    if program is not None and program.paddle_version < PADDLE2_VERSION:
        values = "" if model.values is None else f", params_filename={model.values!r}"
        names = f"model_filename={model.program!r}{values}"
        calls.append((PADDLE1, f"fluid.io.load_inference_model({model.directory!r}, exe, {names})"))
    version = PADDLE3 if end == ".json" else PADDLE2
    return [*calls, (version, f"paddle.static.load_inference_model({prefix!r}, exe)")]


def _list_state_calls(path: str, found: Inspection) -> list[tuple[str, str]]:
    """Return the calls for a pickle, which a program loads if ``fluid.save`` wrote it."""
    stem, end = os.path.splitext(path)
    is_saved = end in FluidSave.suffixes and os.path.exists(stem + PARAMETER_FILE)
    if is_saved and not any(_OF_LAYERS.search(one.name) for one in found.variables):
        call = f"fluid.load(program, {stem!r})"
        return [(OURS, call), (PADDLE1, call), (LATER, f"paddle.load({path!r})")]
    return [(OURS, f"fluid.load_program_state({path!r})"), (LATER, f"paddle.load({path!r})")]


def _list_file_calls(path: str, file: FileFacts, found: Inspection) -> list[tuple[str, str]]:
    directory, name = os.path.split(path)
    call = f"fluid.io.load_persistables(exe, {directory or '.'!r}, program, filename={name!r})"
    if file.kind == "variable":
        call = f"fluid.io.load_vars(exe, {directory or '.'!r}, vars=[program.global_block().var({name!r})])"
        return [(OURS, call), (PADDLE1, call), (LATER, f"paddle.load({path!r})")]
    if file.kind == "combined":
        return [(OURS, call), (PADDLE1, call)]
    if file.kind == "state":
        return _list_state_calls(path, found)
    try:
        known = registry.find(file.kind)
    except PaddlelikeError:
        return []
    calls = [(OURS, call)] if known.holds.names else []
    is_rooted = any(one.name.startswith("/") for one in found.variables)  # a name that files cannot have
    return [*calls, (OURS, f"fluid.convert({path!r}, {'values.npz' if is_rooted else 'directory'!r})")]


def _find_stem(found: Inspection) -> str:
    state = next(file.name for file in found.files if file.kind == "state")
    return os.path.splitext(state)[0]


def _shorten(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
