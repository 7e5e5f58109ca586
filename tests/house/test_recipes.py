"""The recipes of CONTRIBUTING.md, carried out by their own text in a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(
    r'^ *```(?:(?:python|text) file="([^"]+)"(?: after="([^"]+)")?|bash run)\n(.*?)^ *```$', re.M | re.S
)


def apply_blocks(text: str, project: Path) -> list[str]:
    """Run the blocks of the recipes, or write them into the files that they name; return these names."""
    names = []
    for name, after, block in _BLOCK.findall(text):
        if not name:
            subprocess.run(["bash", "-ec", textwrap.dedent(block)], cwd=project, check=True)
            continue
        code, path = textwrap.dedent(block), project / name
        old = path.read_text() if path.exists() else ""
        if after:
            assert old.splitlines().count(after) == 1, f"{name} has not one line {after!r}"
            indent = "    " if after.endswith(("[", "{")) else ""
            new = old.replace(f"{after}\n", f"{after}\n{textwrap.indent(code, indent)}", 1)
        else:
            new = f"{old}\n\n{code}" if old else code
        path.write_text(new)
        names.append(name)
    return names


def test_the_recipes_add_an_operator_a_layer_an_optimizer_a_format_and_a_store(tmp_path: Path) -> None:
    left = shutil.ignore_patterns("__pycache__", "golden")
    for folder in ("paddlelike", "tests"):
        shutil.copytree(PROJECT / folder, tmp_path / folder, ignore=left)
    (tmp_path / "tests" / "golden").symlink_to(PROJECT / "tests" / "golden")
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    names = apply_blocks((PROJECT / "CONTRIBUTING.md").read_text(), tmp_path)
    assert len(names) == 12
    checks = ["tests/ops/test_ops.py", "tests/ops/kernels/test_traceable.py"]
    touched = [*checks, *sorted({name for name in names if "/test_" in name})]
    pytest_ = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    command = [*pytest_, "-k", "cube or sign or Toy", *touched]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = [line for line in done.stdout.splitlines() if " PASSED" in line]
    parts = ["test_ops.py.*value.*cube", "test_ops.py.*gradient.*cube", "test_traceable.py.*cube"]
    parts += ["test_elementwise.py::test_cube", "test_signs.py::"]
    for part in [*parts, "::TestToy::", "::TestToyStore::", "::TestToyDirectory::"]:
        assert any(re.search(part, line) for line in passed), f"no test of {part}:\n{done.stdout}"
    fuzz = [sys.executable, "-m", "tests.fuzz", "--target", "format_toy", "--count", "20"]
    subprocess.run(fuzz, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    check_engines(tmp_path, environment)
    # Without JAX, too, the quick check finds a kernel that JAX cannot evaluate.
    path = tmp_path / "paddlelike/ops/elementwise/unary.py"
    path.write_text(
        path.read_text().replace("lambda x: x * x * x", "lambda x: np.power(x, 3, np.empty_like(x))")
    )
    command = [*pytest_, "-k", "cube", *checks]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert len(failed) == 1, done.stdout
    assert "test_traceable.py" in failed[0]


def check_engines(project: Path, environment: dict[str, str]) -> None:
    """Compile the new operator and export it, where JAX and ONNX are installed."""
    for module in ("jax", "onnx", "onnxruntime"):
        pytest.importorskip(module, exc_type=ImportError)
    subprocess.run([sys.executable, "-c", ENGINES], cwd=project, env=environment, check=True)


ENGINES = """
from pathlib import Path
import numpy as np
import paddlelike as fluid
from tests.compiled.harness.sweep import check_case
from tests.interop.onnx.test_operators import build, run_here, run_onnx
from tests.ops.harness.collect import CASES

(case,) = (case for case in CASES if case.type == "cube")
assert check_case(case) == ["cube", "cube_grad"]
program, feed, outputs = build(case)
fluid.export_onnx(program, "cube.onnx", list(feed), outputs)
np.testing.assert_allclose(run_onnx(Path("cube.onnx"), feed), run_here(program, feed, outputs), rtol=1e-6)
"""
