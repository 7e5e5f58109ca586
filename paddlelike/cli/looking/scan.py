"""``paddlelike scan``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from paddlelike.cli.output import FOUND, Json, end, escape, exits, print_json, print_text, progress, say
from paddlelike.errors import UnsupportedError
from paddlelike.foundation.amounts import format_count

if TYPE_CHECKING:
    from paddlelike.scan import Scan, ScriptVerdict

_TITLES: Final = {
    "stops": "fail, when run without arguments:",
    "may stop": "may fail, depending on arguments or data, or in functions that nothing here calls:",
}
_UNSEEN: Final = (
    "The scan cannot see: values of variables, members that an object lacks, the contents of data, values "
    'that numpy refuses ("%.2f" % array), computed names, and the behavior of other packages.'
)


def command(
    path: Annotated[str, typer.Argument(help="A folder of scripts, notebooks and models, or one file.")],
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write a page of HTML, one file.")
    ] = None,
    json: bool = Json,
) -> None:
    """List what will not work in scripts and models, without running them.

    Nothing of the folder is run. Scripts and notebooks are followed from their first line, to find names of
    Paddle, arguments of its functions, and names that Python, numpy and Pillow no longer have. Programs are
    searched for unsupported operators, other files for unsupported formats. The exit status is 1 if a script
    or file will not work, 2 if the path holds no scripts, models or values.
    """
    from paddlelike.scan import scan

    with exits():
        with progress(f"reading {path}") as bar:
            found = scan(path, progress=bar)
        if html is not None:
            _write_page(found, html)
    if json:
        print_json(found.to_dict())
    else:
        _print(found)
    end(0 if found else FOUND)


def _write_page(found: Scan, target: str) -> None:
    from paddlelike.view.page.document import format_document, is_page

    if Path(target).exists() and not is_page(target):
        raise UnsupportedError(
            f"{target} exists, and is not a page of this package", hint="name another file"
        )
    name = os.path.basename(os.path.abspath(found.path))
    page = format_document(name, {**found.to_dict(), "name": name}, scripts=("base.js", "scan.js", "main.js"))
    Path(target).write_text(page, "utf-8")
    say(f"wrote {escape(target)}")


def _print(found: Scan) -> None:
    held = {
        "script": found.scripts,
        "other file": found.files,
        "name": found.names,
        "operator": found.operators,
    }
    counts = [format_count(len(those), noun) for noun, those in held.items()]
    counts[2] += " of Paddle"
    print_text(f"{found.path}: {', '.join(counts)}")
    for verdict, title in _TITLES.items():
        scripts = [one for one in found.scripts if one.verdict == verdict]
        if scripts:
            print_text(f"{len(scripts)} {title}")
        for script in scripts:
            _print_script(script)
    stopped = [one for one in found.files if one.stops]
    if stopped:
        print_text(f"{format_count(len(stopped), 'file')} cannot be used:")
    for file in stopped:
        print_text(f"  {file.path}: {file.title}: {file.stops}")
        print_text(f"      {file.step}")
    fine = [format_count(sum(one.verdict == "runs" for one in found.scripts), "script")] * bool(found.scripts)
    read = [one for one in found.files if not one.stops and one.kind not in ("other", "manifest")]
    fine += [format_count(len(read), "model or value file")] * bool(read)
    if fine:
        print_text(f"{' and '.join(fine)}: no problem was found")
    absent = [name for name, here in found.packages.items() if not here]
    if absent:
        print_text(f"packages that are imported and not installed: {', '.join(absent)}")
    print_text(_UNSEEN)


def _print_script(script: ScriptVerdict) -> None:
    print_text(f"  {script.path}")
    shown = [one for one in script.findings if one.kind != "unseen"]
    for one in sorted(shown, key=lambda one: not one.certain):
        mark = "" if one.certain or script.verdict == "may stop" else "may stop: "
        print_text(f"    {mark}{one.file}:{one.line}: {one.name}: {one.why}")
        if one.step:
            print_text(f"        {one.step}")
