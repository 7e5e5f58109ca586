"""The site: ``nox -s docs``. Its sources are README.md, the guides and tutorials, and the docstrings.

The root of the repository is the source directory, so that links between pages hold here as they do there.
Each public function and class has a page of its own, made in ``tutorials/out/api``; the pages of
``tutorials/reference`` are tables of them. ``SITE_URL`` is where the site will stand, for ``sitemap.xml``.
"""

from __future__ import annotations

import html
import inspect
import os
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
    "SECURITY.md",
    "paddlelike/**/README.md",
    "tests/**/README.md",
    "tests/gallery/errors.md",
    "tutorials/*.md",
    "tutorials/[!o]*/*.md",
    "tutorials/out/api/*.md",
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
html_copy_source = html_show_copyright = False
html_use_index = html_domain_indices = False  # the search finds names
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_baseurl = os.environ.get("SITE_URL", "http://localhost:8000/")
suppress_warnings = ["ref.python"]  # words such as "type" in the places of types, which many classes have

#: ``<!-- public: fluid.layers nn -->`` in a page: the names of ``fluid.layers`` that ``nn`` below it defines.
_PUBLIC = re.compile(r"^<!-- public: (?P<module>[\w.]+)(?P<which>[\w ]*?) -->$", re.MULTILINE)


#: Long pages whose sections of the third level are opened one by one.
_FOLDED = ("CHANGELOG", "tests/benchmarks/README", "tests/gallery/errors")


def find_names(page: re.Match[str]) -> list[str]:
    """Return the paths of the public names of a module, or of those in the families and names given."""
    path, which = page["module"].partition(".")[2], page["which"].split()
    module = attrgetter(path)(fluid) if path else fluid
    names = [] if which else list(module.__all__)
    for one in which:
        home = f"{module.__name__}.{one}"
        found = [one] if one in module.__all__ else [n for n in module.__all__ if is_from(home, module, n)]
        if not found:
            raise ExtensionError(f"{page[0]}: {page['module']} has no name and no family {one!r}")
        names += found
    return [".".join(filter(None, [path, name])) for name in names or module.__all__]


def list_names(page: re.Match[str]) -> str:
    """Return a table of names: each with its page, and the first line of its docstring."""
    rows = ["| name | what it is |", "|---|---|"]
    for path in find_names(page):
        first = (inspect.getdoc(attrgetter(path)(fluid)) or "").partition("\n\n")[0]
        first = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", " ".join(first.split())).replace("``", "`")
        rows.append(f"| [`{path}`](../out/api/{path}.md) | {first.replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def write_pages(app: Sphinx) -> None:
    """Write a page for each public name that a page of ``tutorials/reference`` lists."""
    pages = HERE.parents[1] / "tutorials" / "out" / "api"
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir(parents=True)
    for source in sorted((HERE.parents[1] / "tutorials" / "reference").glob("*.md")):
        text = source.read_text()
        title = re.findall(r"^# (.*)", text, re.MULTILINE)[0]
        for path in [path for found in _PUBLIC.finditer(text) for path in find_names(found)]:
            directive = describe(f"paddlelike.{path}")
            up = f"[{title}](../../reference/{source.name})"
            (pages / f"{path}.md").write_text(
                f"---\norphan: true\n---\n\n# fluid.{path}\n\n{up}\n\n```{{eval-rst}}\n{directive}\n```\n"
            )


def is_from(home: str, module: object, name: str) -> bool:
    """Return whether a public name of a module is defined in the module ``home`` or below it."""
    return f"{getattr(inspect.unwrap(getattr(module, name)), '__module__', '')}.".startswith(f"{home}.")


def describe(path: str) -> str:
    found = attrgetter(path.partition(".")[2])(fluid)
    if inspect.isclass(found):
        return f".. autoclass:: {path}\n   :members:\n"
    return f".. auto{'function' if callable(found) else 'data'}:: {path}\n"


def fill_in(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put lists of public names into pages, and the table of contents below the front page."""
    source[0] = _PUBLIC.sub(list_names, source[0])
    if docname in _FOLDED:
        source[0] = re.sub(r"^### (.*)\n((?:(?!##).*\n?)*)", fold, source[0], flags=re.MULTILINE)
    if docname == root_doc:
        source[0] += (HERE / "contents.md").read_text()


def fold(section: re.Match[str]) -> str:
    """Return a section whose text is shown when its title is clicked."""
    return (
        f"<details>\n<summary>{html.escape(section[1])}</summary>\n\n{section[2].strip()}\n\n</details>\n\n"
    )


def begin_examples(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Give an example that follows a section such as Raises a section of its own."""
    titles = [index for index, line in enumerate(lines) if index and re.fullmatch("-{3,}", line.strip())]
    example = next((index for index, line in enumerate(lines) if line.startswith(">>>")), None)
    if titles and example is not None and "Examples" not in (lines[index - 1] for index in titles):
        lines[example:example] = ["Examples", "--------"]


def link_related(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Make the names of *See Also* links: ``conv3d`` to the page of ``paddlelike.layers.conv3d``."""
    words = name.split(".")
    top = next((i for i, word in enumerate(words) if word[0].isupper()), len(words) - 1)
    module = ".".join(words[:top])

    def link(found: re.Match[str]) -> str:
        shown = found[1]
        face, _, rest = shown.partition(".")
        target = f"paddlelike.{rest}" if face == "fluid" else f"{module}.{shown}"
        return f":py:obj:`{shown} <{target}>`"

    begin = next((i for i, line in enumerate(lines) if line.startswith(".. seealso::")), len(lines))
    for index in range(begin + 1, len(lines)):
        if lines[index] and not lines[index][0].isspace():
            break
        lines[index] = re.sub(r":(?:py:)?obj:`([\w.]+)`", link, lines[index])


def write_index(app: Sphinx, error: Exception | None) -> None:
    """Let the site begin at ``index.html``; list its pages, and the versions that stand beside this one."""
    if error is not None:
        return
    out = Path(app.outdir)
    shutil.copyfile(out / f"{root_doc}.html", out / "index.html")
    pages = (
        f"<url><loc>{html_baseurl}{page.relative_to(out).as_posix()}</loc></url>"
        for page in sorted(out.rglob("*.html"))
    )
    head = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    )
    (out / "sitemap.xml").write_text("\n".join([head, *pages, "</urlset>\n"]))
    if out.name == version:  # of a release
        there = [one for one in out.parent.iterdir() if re.fullmatch(r"\d+(\.\d+)*", one.name)]
        there.sort(key=lambda one: [int(part) for part in one.name.split(".")], reverse=True)
        rows = "".join(f'<li><a href="{one.name}/index.html">{one.name}</a></li>' for one in there)
        text = f"<!doctype html><html lang=en><meta charset=utf-8><title>{project}</title><h1>{project}</h1>"
        (out.parent / "index.html").write_text(f"{text}<ul>{rows}</ul></html>\n")


def setup(app: Sphinx) -> None:
    """Register the hooks."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", fill_in)
    app.connect("autodoc-process-docstring", begin_examples, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", link_related, priority=600)  # after napoleon
    app.connect("build-finished", write_index)
