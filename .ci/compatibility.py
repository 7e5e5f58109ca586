"""Write ``tutorials/reference/compatibility.md``: which models, operators and packages work here, by trying.

Packages are the arguments, as NAME=FOLDER; the rows of others stay as they are.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

import paddlelike as fluid  # noqa: E402
from paddlelike.errors import PaddlelikeError  # noqa: E402
from paddlelike.framework.opdef import registry  # noqa: E402
from paddlelike.scan import scan  # noqa: E402
from tests.models.archive import Files, read_archive, run_model, write_files  # noqa: E402

PAGE = PROJECT / "tutorials" / "reference" / "compatibility.md"
ARCHIVES = {
    "models185": "Fluid 1.8.5, whole networks",
    "layers262": "Paddle 2.6.2, a layer or function each",
    "spectra262": "Paddle 2.6.2, Fourier transforms, linear algebra, detection",
}
HEAD = """\
# What works

`nox -s compatibility -- NAME=FOLDER ...` makes this page, by trying it.

## Models

Models that real Paddle saved, with inputs and outputs (`tests/golden/`): those that compute the same numbers
here, and those that `paddlelike convert` writes for other systems. What is not written is refused, and the
error names the operators.

| of | models | run here | to ONNX | to `.pdmodel` | to `.json` of Paddle 3 | to Fluid 1.8 |
|---|--:|--:|--:|--:|--:|--:|
"""
PACKAGES = """
## Packages

What `paddlelike scan` says of their scripts, without running them: nothing stops; something may, by
arguments, by data, or in functions that nothing calls; something does. Folders are whole, with parts for
Paddle 2 in some. [Porting a script](../how_to/porting.md#whole-packages) says what was run.

| package | scripts | nothing stops | may stop | stops | at |
|---|--:|--:|--:|--:|---|
"""


def main() -> None:
    warnings.simplefilter("ignore")
    known = [line for line in PAGE.read_text().splitlines() if line.startswith("|")] if PAGE.exists() else []
    page = HEAD + "".join(f"{try_models(name, title)}\n" for name, title in ARCHIVES.items())
    page += f"\n{count_operators()}\n" + PACKAGES
    rows = {line.split("|")[1].strip(): line for line in known if line.count("|") == 7 and "---" not in line}
    rows.pop("package", None)
    for pair in sys.argv[1:]:
        name, _, folder = pair.partition("=")
        rows[name] = scan_package(name, folder)
        print(rows[name])
    page += "".join(f"{row}\n" for _, row in sorted(rows.items(), key=lambda pair: pair[0].lower()))
    PAGE.write_text(page)


def try_models(archive: str, title: str) -> str:
    """Return a row about the models of an archive: how many run, and how many are written for whom."""
    models, fine = read_archive(archive), Counter[str]()
    for files in models.values():
        with tempfile.TemporaryDirectory() as folder:
            fine.update(try_model(files, Path(folder)))
    numbers = [str(fine[one]) if "185" not in archive or one != "fluid" else "-" for one in STEPS]
    return f"| {title} | {len(models)} | {' | '.join(numbers)} |"


def try_model(files: Files, folder: Path) -> Iterator[str]:
    """Yield the steps that succeed."""
    home = folder / "model"
    home.mkdir()
    write_files({one: data for one, data in files.items() if one not in ("io.npz", "files.json")}, home)
    source = home / "model.pdmodel" if (home / "model.pdmodel").exists() else home
    for step, target in STEPS.items():
        try:
            if target is None:
                compare(home, files)
            else:
                fluid.convert(source, folder / target)
            yield step
        except (PaddlelikeError, AssertionError):
            pass


def compare(home: Path, files: Files) -> None:
    for got, want in run_model(home, files):
        np.testing.assert_allclose(np.array(got), np.array(want), rtol=1e-4, atol=1e-5)


STEPS = {"run": None, "onnx": "x.onnx", "pdmodel": "2/x.pdmodel", "json": "3/x.json", "fluid": "1"}


def count_operators() -> str:
    names = {name for name in registry.all_ops() if not name.endswith(("_grad", registry.LATER))}
    old = sum(registry.find(name).since == "1" for name in names)
    more = len(names) - old
    return f"Operators: {old} of Fluid 1.8.5, without gradients; {more} more of Paddle 2.x, for prediction."


def scan_package(name: str, folder: str) -> str:
    """Return a row about the scripts of a package."""
    found = scan(folder)
    count = Counter(one.verdict for one in found.scripts)
    stops = Counter(
        "syntax of Python 2"
        if finding.kind == "python" and finding.name.endswith(".py")
        else finding.name.replace("()", "")
        for one in found.scripts
        for finding in one.findings
        if one.verdict == "stops" and finding.certain
    )
    at = ", ".join(f"`{one}`" for one, _ in stops.most_common(4))
    numbers = " | ".join(str(count[one]) for one in ("runs", "may stop", "stops"))
    return f"| {name} | {len(found.scripts)} | {numbers} | {at} |"


if __name__ == "__main__":
    main()
