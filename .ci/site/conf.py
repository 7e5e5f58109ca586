"""The site: ``nox -s docs``. Its sources are README.md, the guides and tutorials, and the docstrings.

The root of the repository is the source directory, so that links between pages hold here as they do there.
"""

from __future__ import annotations

import inspect
import re
import shutil
import sys
from operator import attrgetter
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

import paddlelike as fluid  # noqa: E402

project = "paddlelike"
version = release = fluid.__version__
root_doc = "README"
include_patterns = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "paddlelike/**/README.md",
    "tests/**/README.md",
    "tests/gallery/errors.md",
    "tutorials/*.md",
    "tutorials/api/*.md",
    "tutorials/out/notebooks/*.ipynb",
]
exclude_patterns = [".*", "build", "dist", "tests/golden"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
nb_execution_mode = "off"  # .ci/notebooks.py executes them
myst_heading_anchors = 3
napoleon_use_ivar = True
napoleon_use_rtype = False
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
html_theme = "furo"
html_title = f"paddlelike {release}"
html_copy_source = False
suppress_warnings = ["ref.python"]  # words such as "type" in the places of types, which many classes have

#: ``<!-- public: fluid.layers nn -->`` in a page: the names of ``fluid.layers`` that ``nn`` below it defines.
_PUBLIC = re.compile(r"^<!-- public: (?P<module>[\w.]+)(?P<which>[\w ]*?) -->$", re.MULTILINE)


def list_names(page: re.Match[str]) -> str:
    """Return the directives for the public names of a module, or those of the families and names given."""
    path, which = page["module"].partition(".")[2], page["which"].split()
    module = attrgetter(path)(fluid) if path else fluid
    names = [] if which else list(module.__all__)
    for one in which:
        home = f"{module.__name__}.{one}"
        found = [one] if one in module.__all__ else [n for n in module.__all__ if is_from(home, module, n)]
        if not found:
            raise ExtensionError(f"{page[0]}: {page['module']} has no name and no family {one!r}")
        names += found
    directives = [
        describe(".".join(filter(None, ["paddlelike", path, name]))) for name in names or module.__all__
    ]
    return "\n".join(["```{eval-rst}", *directives, "```"])


def is_from(home: str, module: object, name: str) -> bool:
    """Return whether a public name of a module is defined in the module ``home`` or below it."""
    return f"{getattr(getattr(module, name), '__module__', '')}.".startswith(f"{home}.")


def describe(path: str) -> str:
    found = attrgetter(path.partition(".")[2])(fluid)
    if inspect.isclass(found):
        return f".. autoclass:: {path}\n   :members:\n"
    return f".. auto{'function' if callable(found) else 'data'}:: {path}\n"


def fill_in(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put lists of public names into pages, and the table of contents below the front page."""
    source[0] = _PUBLIC.sub(list_names, source[0])
    if docname == root_doc:
        source[0] += (HERE / "contents.md").read_text()


def begin_examples(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Give an example that follows a section such as Raises a section of its own."""
    titles = [index for index, line in enumerate(lines) if index and re.fullmatch("-{3,}", line.strip())]
    example = next((index for index, line in enumerate(lines) if line.startswith(">>>")), None)
    if titles and example is not None and "Examples" not in (lines[index - 1] for index in titles):
        lines[example:example] = ["Examples", "--------"]


def write_index(app: Sphinx, error: Exception | None) -> None:
    """Let the site begin at ``index.html``."""
    if error is None:
        shutil.copyfile(Path(app.outdir, f"{root_doc}.html"), Path(app.outdir, "index.html"))


def setup(app: Sphinx) -> None:
    """Register the hooks."""
    app.connect("source-read", fill_in)
    app.connect("autodoc-process-docstring", begin_examples, priority=400)  # before napoleon
    app.connect("build-finished", write_index)
