"""HTML pages in one file: styles and scripts are inline, values are JSON, and nothing else may run.

A policy in the page lists the hashes of its style and script, so that a browser runs no others. It forbids
all connections (a served page may connect to its own server). The scripts insert texts from files as text,
never as HTML.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any, Final

from paddlelike.foundation.garbage import pause_collection
from paddlelike.view.page.contents import collect_contents

#: How every page begins.
MARK: Final = "<!doctype html>\n<!-- made by paddlelike -->\n"
_PAGE: Final = ("base.js", "variables.js", "sizes.js", "graph.js", "program.js", "sections.js", "main.js")


@pause_collection
def format_page(
    path: str | os.PathLike[str],
    *,
    program: str | None = None,
    against: str | None = None,
    statistics: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """Return the page of a path; see :func:`paddlelike.view.page.collect_contents`.

    >>> import tempfile, numpy as np
    >>> home = tempfile.mkdtemp()
    >>> np.savez(home + "/a.npz", **{"</script><script>alert(1)": np.zeros(2)})
    >>> format_page(home).count("</script>")  # its own two
    2
    """
    return format_contents(
        collect_contents(path, program=program, against=against, statistics=statistics, progress=progress)
    )


def format_contents(contents: dict[str, Any]) -> str:
    """Return the page for the result of :func:`paddlelike.view.page.collect_contents`."""
    name = os.path.basename(os.path.abspath(contents["path"])) or contents["path"]
    return format_document(name, {**contents, "name": name}, scripts=_PAGE)


def is_page(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a page of this package, so that a newer one may replace it."""
    try:
        if not os.path.isfile(path):  # a pipe would be waited for
            return False
        with open(path, "rb") as file:
            return file.read(len(MARK)) == MARK.encode()
    except OSError:
        return False


def format_document(
    title: str,
    contents: object,
    *,
    scripts: Sequence[str],
    styles: Sequence[str] = ("page.css",),
    served: bool = False,
) -> str:
    """Return a page of one file.

    Parameters
    ----------
    contents
        The values that the scripts find in ``data``; JSON can represent them.
    scripts, styles
        Names of files in ``paddlelike/view/page/assets/``.
    served
        Let the page connect to the server that it comes from.
    """
    style = "".join(_read_asset(name) for name in styles)
    script = "".join(_read_asset(name) for name in scripts)
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        f"connect-src {chr(39)}{'self' if served else 'none'}{chr(39)}; base-uri 'none'; form-action 'none'"
    )
    return (
        f'{MARK}<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f'<link rel="icon" href="data:,">\n<title>{html.escape(title)} - paddlelike</title>\n'
        f"<style>{style}</style>\n</head>\n<body>\n<noscript>This page needs JavaScript.</noscript>\n"
        f'<script type="application/json" id="data">{encode_json(contents)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def encode_json(value: object) -> str:
    r"""Return a value as JSON for use inside HTML; numbers that are not finite become text.

    >>> encode_json({"</script>": float("nan")})
    '{"\\u003c/script\\u003e":"nan"}'
    """
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)  # ASCII: also surrogates are escaped
    except ValueError:
        text = json.dumps(_make_finite(value), separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _make_finite(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _make_finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_make_finite(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _read_asset(name: str) -> str:
    return files("paddlelike.view.page").joinpath("assets", name).read_text("utf-8")


def _hash(text: str) -> str:
    """Return the hash by which a Content-Security-Policy recognizes an inline element."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
