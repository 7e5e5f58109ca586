"""Make the notebooks of the tutorials, ``tutorials/out/notebooks/*.ipynb``; with ``--execute`` run them, too.

Each is the script of its name. A cell's title becomes a heading. The first cell sets ``__file__``, by which a
script finds itself when it starts itself in new processes. Pictures that a run leaves are shown where the
script names them.
"""

from __future__ import annotations

import argparse
import re
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

TUTORIALS = Path(__file__).resolve().parents[1] / "tutorials"
NOTEBOOKS = TUTORIALS / "out" / "notebooks"

_FIRST = """\
import sys
from pathlib import Path

__file__ = str(Path("../../{name}").resolve())  # the script that this notebook was made of
sys.argv = [__file__]"""


def make_notebook(script: Path, *, pictures: bool) -> Any:
    """Return a tutorial as a notebook; without ``pictures`` as long as none are there."""
    notebook = jupytext.read(script, fmt="py:percent")
    introduction, *cells = notebook.cells
    title, _, text = introduction.source.strip('"\n').partition("\n")
    first = nbformat.v4.new_code_cell(_FIRST.format(name=script.name), metadata={"tags": ["remove-cell"]})
    notebook.cells = [nbformat.v4.new_markdown_cell(f"# {title.rstrip('.')}\n{text}"), first]
    for cell in cells:
        if heading := cell.metadata.pop("title", None):
            notebook.cells.append(nbformat.v4.new_markdown_cell(f"## {heading.rstrip('.')}"))
        if cell.cell_type == "markdown" and not pictures:
            continue
        cell.source = re.sub(r"\]\(out/", "](../", cell.source)  # as seen from out/notebooks
        notebook.cells.append(cell)
    for index, cell in enumerate(notebook.cells):
        cell.id = f"cell-{index}"  # equal scripts give equal notebooks
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.metadata = nbformat.from_dict({"kernelspec": kernel})
    return notebook


def write_notebook(script: Path, *, execute: bool) -> str:
    """Write the notebook of a tutorial, and return a line about it.

    Raises CellExecutionError where a cell fails.
    """
    begin = time.perf_counter()
    notebook = make_notebook(script, pictures=execute)
    if execute:
        quiet = ["--log-level=40"]  # not that the kernel listens on this machine
        where = {"metadata": {"path": str(NOTEBOOKS)}}
        NotebookClient(notebook, timeout=600, resources=where, extra_arguments=quiet).execute()
    path = NOTEBOOKS / f"{script.stem}.ipynb"
    nbformat.write(notebook, path)
    done = f"executed in {time.perf_counter() - begin:.0f} s" if execute else "not executed"
    return f"{path.relative_to(TUTORIALS.parent)}: {done}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--execute", action="store_true", help="run the notebooks, two at a time")
    parser.add_argument("--missing", action="store_true", help="leave those that exist as they are")
    options = parser.parse_args()
    NOTEBOOKS.mkdir(parents=True, exist_ok=True)
    scripts = sorted(TUTORIALS.glob("*.py"), key=lambda path: -path.stat().st_size)  # the longest run first
    if options.missing:
        scripts = [one for one in scripts if not (NOTEBOOKS / f"{one.stem}.ipynb").exists()]
    with ProcessPoolExecutor(2) as pool:
        for done in [pool.submit(write_notebook, one, execute=options.execute) for one in scripts]:
            print(done.result(), flush=True)


if __name__ == "__main__":
    main()
