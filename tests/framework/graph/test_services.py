"""The functions that packages above the graph provide to the graph's methods."""

from __future__ import annotations

import subprocess
import sys

import pytest

from paddlelike.framework.codec import decode, encode, text
from paddlelike.framework.expressions import arithmetic, indexing
from paddlelike.framework.graph.services import services
from paddlelike.framework.passes import clone, views

SCRIPT = """
from paddlelike.framework.graph.{module} import {name}
from paddlelike.framework.graph.services import services
print(type(services().encoder).__name__)
"""


def test_the_package_installs_an_implementation_of_each() -> None:
    installed = services()
    assert (installed.encoder, installed.decoder, installed.text) == (encode, decode, text)
    assert (installed.passes, installed.views) == (clone, views)
    assert (installed.arithmetic, installed.indexing) == (arithmetic, indexing)


@pytest.mark.parametrize(("module", "name"), [("program", "Program"), ("variable", "Variable")])
def test_they_are_there_whichever_module_is_imported_first(module: str, name: str) -> None:
    script = SCRIPT.format(module=module, name=name)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "module\n"
