"""The names of Python, numpy and Pillow that the interpreter of a script provides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Final, Self

from paddlelike.import_paddle import add_to_path

#: Packages beside the standard library whose removed names stop old scripts.
_PACKAGES: Final = frozenset({"numpy", "PIL", "scipy"})
_NOT_IMPORTED: Final = frozenset({"this", "antigravity", "idlelib", "turtle", "turtledemo", "__main__"})

#: Built-in functions of Python 2, and what to write instead.
PYTHON_2_BUILTINS: Final = {
    "basestring": "str", "buffer": "memoryview", "cmp": "(a > b) - (a < b)",
    "execfile": "exec(open(...).read())", "file": "open", "long": "int", "raw_input": "input",
    "reduce": "functools.reduce",
    "reload": "importlib.reload", "unichr": "chr", "unicode": "str", "xrange": "range",
}  # fmt: skip
#: Modules of Python 2, and those of today.
PYTHON_2_MODULES: Final = {
    "ConfigParser": "configparser", "HTMLParser": "html.parser", "Queue": "queue",
    "SocketServer": "socketserver",
    "StringIO": "io", "Tkinter": "tkinter", "__builtin__": "builtins", "cPickle": "pickle", "cStringIO": "io",
    "commands": "subprocess", "copy_reg": "copyreg",
    "exceptions": "builtins", "httplib": "http.client", "md5": "hashlib",
    "sets": "set", "thread": "_thread", "urllib2": "urllib.request", "urlparse": "urllib.parse",
}  # fmt: skip
#: Names that are gone, and what to write instead.
_STEPS: Final = {
    "PIL.Image.ANTIALIAS": "write PIL.Image.LANCZOS",
    "string.letters": "write string.ascii_letters",
    "sys.maxint": "write sys.maxsize",
    "itertools.izip": "write zip",
    "itertools.imap": "write map",
    "itertools.ifilter": "write filter",
    "urllib.urlretrieve": "write urllib.request.urlretrieve",
    "urllib.urlopen": "write urllib.request.urlopen",
    "urllib.urlencode": "write urllib.parse.urlencode",
    "os.getcwdu": "write os.getcwd",
}

_ANSWER: Final = """
import contextlib, importlib, json, sys, warnings
warnings.simplefilter("ignore")
out, sys.stdout = sys.stdout, sys.stderr
for line in sys.stdin:
    module, *names = line.strip().split(".")
    try:
        found, path = importlib.import_module(module), module
        for name in names:
            path += "." + name
            if not hasattr(found, name) and hasattr(found, "__path__"):
                with contextlib.suppress(ImportError):
                    importlib.import_module(path)
            found = getattr(found, name)
        why = None
    except Exception as error:
        why = str(error).partition("\\n")[0] or type(error).__name__
    out.write(json.dumps(why) + "\\n")
    out.flush()
"""


class PythonNames:
    """Looks up names in a Python process that is set up in the same way as scripts under ``paddlelike run``.

    It is a context manager. The process starts at the first name, and imports only the standard library,
    numpy, scipy and Pillow, never code of the scanned folder.
    """

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.communicate()

    def find_problem(self, path: str) -> str | None:
        """Return why a name does not exist; None if it exists or its package is not examined."""
        root = path.partition(".")[0]
        if root in _NOT_IMPORTED or (root not in _PACKAGES and root not in sys.stdlib_module_names):
            return None
        if path not in self._known:
            self._known[path] = self._ask(path)
        return self._known[path]

    def _ask(self, path: str) -> str | None:
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603  (a fixed command)
                [sys.executable, "-P", "-c", _ANSWER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=add_to_path(os.environ),
                cwd=tempfile.gettempdir(),
                text=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(path, file=self._process.stdin, flush=True)
        answer: str | None = json.loads(self._process.stdout.readline())
        return answer


def advise(path: str) -> str:
    """Return what to write instead of a name that is gone."""
    return _STEPS.get(path, "find its name of today, or run the script with the versions of its time")
