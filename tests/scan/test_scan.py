"""The verdicts of a scan, beside what a run of the same script shows."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from paddlelike.errors import MissingFileError
from paddlelike.scan import ScriptFinding, scan
from tests.helpers.fork_server import Forked
from tests.scan.run_module import find_environment

FLUID = "import paddle.fluid as fluid\n"

#: A script, its verdict, and the name that stops it.
SCRIPTS = {
    "a network": (FLUID + "x = fluid.data('x', [None, 3])\nfluid.layers.fc(input=x, size=2)", "runs", ""),
    "dygraph": (FLUID + "with fluid.dygraph.guard():\n    pass", "stops", "paddle.fluid.dygraph.guard"),
    "dygraph that is only imported": ("from paddle.fluid.dygraph import Linear\nprint(Linear)", "runs", ""),
    "a layer of dygraph": (
        FLUID + "class Net(fluid.dygraph.Layer):\n    pass\nNet()", "runs", "",
    ),
    "Paddle 2": ("import paddle\npaddle.nn.Linear(2, 3)", "stops", "paddle.nn"),
    "a module of Paddle 2": ("import paddle.nn.functional as F", "stops", "paddle.nn"),
    "enable_static": ("import paddle\npaddle.enable_static()", "runs", ""),
    "enable_static where it is there": (
        "import paddle\nif hasattr(paddle, 'enable_static'):\n    paddle.nn.Linear(2, 3)", "runs", "",
    ),
    "a name that is nowhere": (FLUID + "fluid.layers.fcc", "stops", "paddle.fluid.layers.fcc"),
    "an argument that is nowhere": (FLUID + "fluid.ParamAttr(nme='w')", "stops", "paddle.fluid.ParamAttr"),
    "an alias": (
        "from paddle import fluid as f\nhere = f.layers\nhere.nope()", "stops", "paddle.fluid.layers.nope",
    ),
    "names in a tuple": (FLUID + "f, n = fluid.layers, 1\nf.nope()", "stops", "paddle.fluid.layers.nope"),
    "a case": (
        FLUID + "match 1:\n    case 1:\n        fluid.layers.nope", "may stop", "paddle.fluid.layers.nope",
    ),
    "a name of a member of another object": (
        FLUID + "class Net:\n    def __init__(self):\n        self.nope = 1\nfluid.layers.nope", "may stop",
        "paddle.fluid.layers.nope",
    ),
    "a handler that raises": (
        FLUID + "try:\n    fluid.layers.nope\nexcept Exception:\n    print(1)\n    raise", "stops",
        "paddle.fluid.layers.nope",
    ),
    "all names of a module": ("from paddle.fluid.layers import *\nprint(fc)", "runs", ""),
    "a name that a try catches": (
        FLUID + "try:\n    fluid.layers.nope\nexcept AttributeError:\n    pass", "runs", "",
    ),
    "a handler that stops": (
        FLUID + "try:\n    import paddle.nn\nexcept ImportError:\n    fluid.layers.nope", "stops",
        "paddle.fluid.layers.nope",
    ),
    "a field of a message": (
        "from paddle.fluid.proto.framework_pb2 import VarType\nprint(VarType.TensorDesc().dims)", "runs", "",
    ),
    "a function that is called": (
        FLUID + "def main(use):\n    fluid.layers.nope\nmain(use=True)", "stops",
        "paddle.fluid.layers.nope",
    ),
    "a branch that a value decides": (
        FLUID + "def main(use):\n    if use:\n        fluid.layers.nope\nmain(use=False)", "may stop",
        "paddle.fluid.layers.nope",
    ),
    "a device that an argument decides": (
        FLUID + "import sys\nplace = fluid.CUDAPlace(0) if sys.argv[1:] else fluid.CPUPlace()", "may stop",
        "CUDAPlace",
    ),
    "a function that nothing calls": (
        FLUID + "def main():\n    fluid.layers.nope", "may stop", "paddle.fluid.layers.nope",
    ),
    "an argument of the command line": (
        FLUID + "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--dygraph', action='store_true')\nargs = parser.parse_args()\n"
        "if args.dygraph:\n    fluid.dygraph.guard()", "may stop", "paddle.fluid.dygraph.guard",
    ),
    "an exit": (FLUID + "import sys\nsys.exit(0)\nfluid.layers.nope", "runs", ""),
    "a name that numpy dropped, and paddlelike restores": ("import numpy as np\nprint(np.int)", "runs", ""),
    "a name that nobody restores": ("import numpy as np\nnp.frobnicate", "stops", "numpy.frobnicate"),
    "Python 2": ("print 'loss'", "stops", "script.py"),
    "a name of Python 2": ("for i in xrange(3):\n    pass", "stops", "xrange"),
    "a module of Python 2": ("import cPickle", "stops", "cPickle"),
    "a module of Python 2 with its successor": (
        "try:\n    import cPickle as pickle\nexcept ImportError:\n    import pickle", "runs", "",
    ),
    "a module of today, or else that of Python 2": (
        "try:\n    import queue\nexcept ImportError:\n    import Queue as queue", "runs", "",
    ),
    "a module of Paddle before Fluid with its successor": (
        "try:\n    import paddle.v2 as paddle\nexcept ModuleNotFoundError:\n    import paddle", "runs", "",
    ),
    "memory of a GPU": (
        FLUID + "fluid.cuda_pinned_places()", "stops", "cuda_pinned_places",
    ),
    "a message": (
        "from paddle.fluid.proto import framework_pb2\nframework_pb2.VarType.TensorDesc()", "runs", "",
    ),
    "an optimizer that is refused": (
        FLUID + "fluid.optimizer.DGCMomentumOptimizer(0.1, 0.9, 1)", "stops",
        "paddle.fluid.optimizer.DGCMomentumOptimizer",
    ),
    "tests": (
        FLUID + "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n"
        "        fluid.layers.nope\nunittest.main()", "may stop", "paddle.fluid.layers.nope",
    ),
}  # fmt: skip


def stopping(findings: tuple[ScriptFinding, ...]) -> list[str]:
    return [one.name for one in findings if one.kind != "unseen"]


@pytest.mark.parametrize("title", SCRIPTS)
def test_each_script_gets_the_expected_verdict(title: str, tmp_path: Path) -> None:
    text, verdict, name = SCRIPTS[title]
    (tmp_path / "script.py").write_text(text)
    (script,) = scan(tmp_path).scripts
    assert script.verdict == verdict
    assert stopping(script.findings)[:1] == ([name] if name else [])


@pytest.mark.slow
@pytest.mark.parametrize("title", [title for title, row in SCRIPTS.items() if row[1] != "may stop"])
def test_each_script_runs_as_its_verdict_predicts(title: str, tmp_path: Path, fork_server: str) -> None:
    text, verdict, _ = SCRIPTS[title]
    (tmp_path / "script.py").write_text(text)
    environment = find_environment(tmp_path, "paddlelike", "run", "script.py")
    with closing(Forked(fork_server, "tests.scan.run_module", environment)) as done:
        _, errors = done.communicate()
        assert bool(done.wait()) == (verdict == "stops"), errors


def test_modules_in_the_folder_are_scanned(tmp_path: Path) -> None:
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "__init__.py").write_text("from .mlp import build\n")
    (tmp_path / "nets" / "mlp.py").write_text(
        "import paddle.fluid as fluid\n\n\ndef build():\n    return fluid.layers.nope(1)\n"
    )
    (tmp_path / "train.py").write_text("from nets import build\nbuild()\n")
    found = {one.path: one for one in scan(tmp_path).scripts}
    assert found["train.py"].verdict == "stops"
    (finding,) = found["train.py"].findings
    assert (finding.file, finding.line) == (str(Path("nets", "mlp.py")), "5")
    assert found[str(Path("nets", "mlp.py"))].verdict == "may stop"


@pytest.mark.parametrize("mark", ["", "setup.py"], ids=["folder", "project"])
def test_a_script_gets_the_same_verdict_alone_and_in_its_folder(tmp_path: Path, mark: str) -> None:
    home = tmp_path / "tools" if mark else tmp_path  # the modules are beside the script, or above it
    home.mkdir(exist_ok=True)
    if mark:
        (tmp_path / mark).touch()
    (tmp_path / "nets.py").write_text(
        "import paddle.fluid as fluid\n\n\ndef build():\n    return fluid.layers.nope(1)\n\n\n"
        "def other():\n    return fluid.layers.neither(1)\n"
    )
    (home / "train.py").write_text("from nets import build\nbuild()\n")
    (home / "never.py").write_text("import nets\n")
    for name in ("train.py", "never.py"):
        (alone,) = scan(home / name).scripts
        (among,) = [one for one in scan(tmp_path).scripts if one.path == alone.path]
        assert alone == among
        wanted = {
            "train.py": [("nope", True), ("neither", False)],
            "never.py": [("nope", False), ("neither", False)],
        }
        found = [(one.name.rpartition(".")[2], one.certain) for one in alone.findings]
        assert sorted(found) == sorted(wanted[name])


def test_modules_that_scripts_share_are_judged_by_each_script_for_itself(tmp_path: Path) -> None:
    def write(name: str, text: str) -> None:
        (tmp_path / name).write_text("import paddle.fluid as fluid\n" + text)

    write("old.py", "fluid.nope\nname = 'fc'\n")
    write("middle.py", "import old\n")
    write("settings.py", "class Settings:\n    gpu = False\n\n\nsettings = Settings()\n")
    write("a_sets.py", "from settings import settings\nsettings.gpu = True\n")
    write("b_reads.py", "from settings import settings\nif settings.gpu:\n    fluid.neither\n")
    write("c_tries.py", "try:\n    import middle\nexcept AttributeError:\n    fluid.caught\n")
    write("d_needs.py", "import middle\n")
    write("e_may.py", "def rarely():\n    import middle\n")
    write("f_exits.py", "import g_end\nfluid.nope\n")
    write("g_end.py", "import sys\nsys.exit()\n")
    found = {one.path: one for one in scan(tmp_path).scripts}
    names = {
        path: [(one.name.rpartition(".")[2], one.certain) for one in script.findings]
        for path, script in found.items()
    }
    assert names == {
        "old.py": [("nope", True)],
        "middle.py": [("nope", True)],
        "settings.py": [],
        "a_sets.py": [],
        "b_reads.py": [("neither", False)],
        "c_tries.py": [("caught", True)],
        "d_needs.py": [("nope", True)],
        "e_may.py": [("nope", False)],
        "f_exits.py": [],
        "g_end.py": [],
    }
    for path, script in found.items():
        assert scan(tmp_path / path).scripts == (script,)


def test_an_import_runs_the_packages_of_a_module_first(tmp_path: Path) -> None:
    (tmp_path / "nets" / "deep").mkdir(parents=True)
    for file, text in {
        "nets/__init__.py": "import paddle.fluid as fluid\nfrom .deep.a import one\nfluid.nope\n",
        "nets/deep/__init__.py": "",
        "nets/deep/a.py": "from .b import two\none = 1\n",
        "nets/deep/b.py": "from .a import one\ntwo = 2\n",  # in a circle
        "train.py": "from nets.deep.b import two\n",
    }.items():
        (tmp_path / file).write_text(text)
    (train,) = [one for one in scan(tmp_path).scripts if one.path == "train.py"]
    assert [(one.file, one.line, one.certain) for one in train.findings] == [("nets/__init__.py", "3", True)]
    assert scan(tmp_path / "train.py").scripts == (train,)


def test_a_notebook_is_read_cell_by_cell(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# A title"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import paddle.fluid as fluid"]},
        {"cell_type": "code", "source": ["!ls\n", "\n", "fluid.layers.nope"]},
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    (script,) = scan(tmp_path).scripts
    assert [(one.line, one.name) for one in script.findings] == [
        ("cell 2, line 3", "paddle.fluid.layers.nope")
    ]


def test_scanning_runs_no_code(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    line = f"open({str(mark)!r}, 'w')\n"
    for name in ("script.py", "numpy.py", "sitecustomize.py", "collections.py"):
        (tmp_path / name).write_text(line + "import numpy, collections\nnumpy.zeros, collections.deque\n")
    scan(tmp_path)
    assert not mark.exists()


def test_code_that_the_scan_cannot_follow_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import paddle\ngetattr(paddle, input())\neval(input())\n")
    (script,) = scan(tmp_path).scripts
    assert script.verdict == "runs"
    assert {(one.line, one.name, one.kind) for one in script.findings} == {
        ("2", "paddle.*", "unseen"),
        ("3", "eval", "unseen"),
    }


@pytest.mark.parametrize("text", ["x = (", "", "\0", "def f(:\n", "if 1:\n\tx\n        y", "\ufeffimport os"])
def test_any_file_can_be_scanned(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(text)
    assert len(scan(tmp_path).scripts) == 1


def test_scanning_recursive_functions_ends(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("from a import *\ndef f(n):\n    return f(n + 1) + g(n)\ng = f\nf(0)\n")
    assert scan(tmp_path / "a.py").scripts[0].verdict == "runs"


def test_scanning_deep_nesting_and_deep_calls_ends(tmp_path: Path) -> None:
    chain = "    if n == 0:\n        pass\n" + "".join(
        f"    elif n == {i}:\n        pass\n" for i in range(60)
    )
    functions = [f"def f{i}(n):\n{chain}    else:\n        f{i + 1}(n)\n" for i in range(39)]
    text = FLUID + "".join(functions) + "def f39(n):\n    pass\nf0(input())\nfluid.layers.nope\n"
    (tmp_path / "script.py").write_text(text)
    (script,) = scan(tmp_path).scripts
    assert script.verdict == "stops"
    assert stopping(script.findings) == ["paddle.fluid.layers.nope"]


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="no such file or directory"):
        scan(tmp_path / "absent")
