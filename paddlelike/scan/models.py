"""The files of a folder that are not scripts: models, variables, and other known kinds."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from paddlelike.errors import PaddlelikeError
from paddlelike.formats.base import SNIFF_BYTES
from paddlelike.formats.paddle.recognize import is_pir
from paddlelike.framework import Program
from paddlelike.framework.opdef import registry
from paddlelike.interop.content import Content, list_persistables, open_content
from paddlelike.scan.report import FileFinding

#: Files that say by their name that they are neither models nor values.
_OTHERS: Final = frozenset({
    ".bash", ".c", ".cc", ".cfg", ".cmake", ".conf", ".cpp", ".css", ".csv", ".gif", ".h", ".html", ".in",
    ".ini", ".jpeg", ".jpg", ".js", ".json", ".lock", ".log", ".md", ".pdf", ".png", ".proto", ".rst", ".sh",
    ".svg", ".toml", ".tsv", ".txt", ".xml", ".yaml", ".yml",
})  # fmt: skip
#: Those that should be values, and are useless when they cannot be read.
_VALUES: Final = (
    ".pdparams",
    ".pdopt",
    ".pdmodel",
    ".pdiparams",
    ".npz",
    ".npy",
    ".onnx",
    ".safetensors",
    ".h5",
)


def look_into_path(path: str, home: str) -> tuple[list[FileFinding], Counter[str], set[str]]:
    """Return the result of :func:`look_into_files` for one file, or for the files of ``fluid.save`` under a
    prefix.

    Raises
    ------
    MissingFileError
        The path does not exist.
    """
    operators: Counter[str] = Counter()
    unknown: set[str] = set()
    with open_content(path) as content:
        names = [file.name for file in content.files]
        folder = os.path.relpath(os.path.dirname(os.path.abspath(path)), home)
        return _look_into(content, names, folder, operators, unknown), operators, unknown


def look_into_files(files: Iterable[str], home: str) -> tuple[list[FileFinding], Counter[str], set[str]]:
    """Return the kinds of files, the operators of their programs, and those that cannot run here."""
    findings: list[FileFinding] = []
    operators: Counter[str] = Counter()
    unknown: set[str] = set()
    names = [one for one in files if _may_be_model(one)]
    for folder, group in groupby(names, os.path.dirname):
        listed = [os.path.basename(one) for one in group]
        try:
            content = open_content(folder)
        except (PaddlelikeError, OSError) as error:
            findings.append(FileFinding(os.path.relpath(folder, home), "other", "a folder", str(error), ""))
            continue
        with content:
            findings += _look_into(content, listed, os.path.relpath(folder, home), operators, unknown)
    return findings, operators, unknown


def _may_be_model(path: str) -> bool:
    """Return whether a file may hold a program or values, judged by its name, or for JSON by its first
    bytes.
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix != ".json":
        return suffix not in _OTHERS
    try:
        with open(path, "rb") as file:
            return is_pir(file.read(SNIFF_BYTES))
    except OSError:
        return False


def _look_into(
    content: Content, listed: Sequence[str], folder: str, operators: Counter[str], unknown: set[str]
) -> list[FileFinding]:
    findings = []
    is_model = bool(content.programs) or any(one.kind in ("variable", "combined") for one in content.files)
    for file in content.files:
        if file.name not in listed:
            continue
        stops, step = "", ""
        title = file.title
        is_program = os.path.basename(file.name).startswith("__model__") or file.name.endswith(".json")
        needed = file.name.endswith(_VALUES) or (is_program and file.problem is not None)
        if file.kind == "other" and not (is_model or needed):
            pass  # a file of the script's own
        elif file.problem is not None:
            stops, step = file.explain()
        elif file.kind == "other" and needed:
            title, (stops, step) = "a file that cannot be read", file.explain()
            step = step or "find out what wrote it; paddlelike doctor says more"
        elif file.name in content.programs:
            program = content.programs[file.name]
            here, absent = _count_operators(program)
            operators.update(here)
            unknown |= absent
            stops, step = _find_stop(content, program, absent)
        findings.append(
            FileFinding(os.path.normpath(os.path.join(folder, file.name)), file.kind, title, stops, step)
        )
    return findings


def _count_operators(program: Program) -> tuple[Counter[str], set[str]]:
    types = Counter(op.type for block in program.blocks for op in block.ops)
    return types, {one for one in types if registry.find_or_none(one) is None}


def _find_stop(content: Content, program: Program, unknown: set[str]) -> tuple[str, str]:
    """Return why a program cannot run with the files beside it, and what to do; "" if it can."""
    if unknown:
        return (
            f"operators that are not here: {', '.join(sorted(unknown))}",
            "it loads, prints, prunes and converts; paddlelike prune may cut a part out that runs",
        )
    held = {one.name for one in content.variables}
    missing = sorted({one.name for one in list_persistables(program)} - held)
    if held and missing and not content.unnamed and not content.is_file and len(content.programs) == 1:
        return (
            f"no values of {', '.join(missing[:5])}{' ...' * (len(missing) > 5)}",
            "copy their files beside it",
        )
    return "", ""
