"""A reader finds the room for a line of code from folder names alone: a family has one name in every room."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from inspect import getclosurevars, unwrap
from pathlib import Path
from typing import Any

import pytest

from paddlelike import layers
from paddlelike.framework.opdef import registry
from paddlelike.interop.cntk.writing.graph import load_writers
from paddlelike.interop.onnx.exporter.graph import load_table

PROJECT = Path(__file__).parent.parent.parent
PACKAGE = PROJECT / "paddlelike"

#: Folders and modules that are not families.
WITHOUT_FAMILY = {
    "ops/kernels": (
        "addition areas broadcasting class_sampling cold_rows engines fast growing_rows lod pieces recording "
        "rounding sorting special threads"
    ),
    "layers": (
        "checks collective emit fluid_modules helper layer_function_generator learning_rate_scheduler utils"
    ),
    "compiled/lowering": "",
    "interop/onnx/exporter/families": "",
    "interop/onnx/importer/families": "machine_learning",
    "interop/cntk/reading": "build readers step",
    "interop/cntk/writing": "graph writers",
    "tests/ops": "harness kernels math_cases sequence_cases",
    "tests/layers": "calls dump_naming dump_real naming",
}


def list_rooms(folder: Path) -> set[str]:
    """Return the names of the folders and modules in a folder."""
    return {
        path.stem
        for path in folder.iterdir()
        if (path.is_dir() and (path / "__init__.py").exists()) or path.suffix == ".py"
        if not path.name.startswith(("_", "test_", "conftest"))
    }


FAMILIES = list_rooms(PACKAGE / "ops") - {"kernels", "later", "operands"}


@pytest.mark.parametrize("folder", WITHOUT_FAMILY)
def test_operator_families_have_the_same_name_in_every_folder(folder: str) -> None:
    path = PROJECT / folder if folder.startswith("tests/") else PACKAGE / folder
    assert list_rooms(path) - set(WITHOUT_FAMILY[folder].split()) <= FAMILIES


def find_families(
    functions: Mapping[str, Callable[..., Any]], package: str
) -> Iterator[tuple[str, str, str]]:
    """Yield operators whose function is in another family: the type, its family, that of the function."""
    for type_, function in functions.items():
        op = registry.all_ops()[type_]
        op = op.forward_of or op
        own = op.__module__.removeprefix("paddlelike.ops.").partition(".")[0]
        other = function.__module__.removeprefix(package + ".").partition(".")[0]
        if own != other:
            yield type_, own, other


@pytest.mark.parametrize(
    ("load", "package"),
    [
        (load_table, "paddlelike.interop.onnx.exporter.families"),
        (load_writers, "paddlelike.interop.cntk.writing"),
    ],
)
def test_operators_are_defined_in_their_family_folder(
    load: Callable[[], Mapping[str, Any]], package: str
) -> None:
    assert list(find_families(load(), package)) == []


def test_layers_are_in_the_family_folder_of_their_operator() -> None:
    found = {}
    for name in set(layers.__all__) - {"load"}:  # the operator of files; the layer is an input of a program
        op = registry.all_ops().get(name) or registry.all_ops().get(f"{name}2")
        if op is not None:
            own, wanted = unwrap(getattr(layers, name)).__module__, op.__module__
            if own.split(".")[2] != wanted.split(".")[2]:
                found[name] = own, wanted
    assert found == {}


@pytest.mark.slow
def test_lowerings_are_in_the_family_folder_of_their_operator() -> None:
    pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)
    from paddlelike.compiled.lowerings import load_lowerings

    functions = {}
    for type_, row in load_lowerings().items():
        function = unwrap(getclosurevars(row.function).nonlocals.get("function", row.function))
        if function.__module__.startswith("paddlelike.compiled.lowering."):
            functions[type_] = function
    assert len(functions) > 100
    found = find_families(functions, "paddlelike.compiled.lowering")
    assert [
        row for row in found if row[1] != "second_order"
    ] == []  # those are beside their forward operators


def test_a_folder_holds_at_most_15_modules() -> None:
    folders = [
        path.parent for part in ("paddlelike", "tests") for path in (PROJECT / part).rglob("__init__.py")
    ]
    counts = {
        folder.relative_to(PROJECT).as_posix(): len(
            [p for p in folder.glob("*.py") if p.name not in ("__init__.py", "conftest.py")]
        )
        for folder in folders
    }
    assert {folder: count for folder, count in counts.items() if count > 15} == {}


#: Made by commands, in archives, or beside what the page is about.
NOT_KEPT = {"build/site/", "run/", "tutorials/out/", "tutorials/out/notebooks/"} | {
    "grad0/",
    "infer_full_feed/",
    "infer_in/",
    "infer_out/",
}


def test_pages_name_files_and_folders_that_exist() -> None:
    parts = ("paddlelike", "tests", "tutorials", "findings", ".ci")
    files = [
        path for part in parts for path in (PROJECT / part).rglob("*") if "__pycache__" not in path.parts
    ]
    there = [f"/{path.relative_to(PROJECT).as_posix()}{'/' * path.is_dir()}" for path in files]
    there += [f"/{part}/" for part in parts] + [f"/{path.name}" for path in PROJECT.glob("*.py")]
    pages = [*PROJECT.glob("*.md"), *(path for path in files if path.suffix == ".md")]
    missing = [
        f"{page.relative_to(PROJECT)}: {name}"
        for page in pages
        if page.name != "CHANGELOG.md"  # which tells what was
        for name in re.findall(r"`(\w[\w./-]*(?:\.py|/))`", page.read_text())
        if name not in NOT_KEPT and not any(path.endswith(f"/{name}") for path in there)
    ]
    assert missing == []


def test_the_tables_of_readmes_name_modules_that_exist() -> None:
    missing = []
    for page in sorted(PACKAGE.rglob("README.md")):
        for row in re.findall(r"^\|.*", page.read_text(), re.MULTILINE):
            words = re.findall(r"`([\w./]+)`", row)
            homes = [
                page.parent,
                PACKAGE,
                PROJECT,
                *(page.parent / word for word in words if word.endswith("/")),
            ]
            modules = [word for word in words if word.endswith(".py")]
            missing += [(page, one) for one in modules if not any((home / one).exists() for home in homes)]
    assert missing == []


#: Modules outside ``ops/`` with lists of five operators or more, and why: what others call or do.
LISTS = {
    "fluid/contrib/mixed_precision/__init__.py": "lists that scripts of Fluid read and change",
    "fluid/contrib/model_stat.py": "the activations that Fluid counts",
    "fluid/contrib/slim/quantization/activations.py": "defaults of arguments of Fluid's passes",
    "fluid/contrib/slim/quantization/base.py": "the operators that Fluid's passes quantize",
    "framework/environment.py": "a table in every program that Fluid saves",
    "framework/expressions/arithmetic.py": "the operators of Python's comparisons",
    "interop/cntk/checkpoints/updates.py": "the learners of CNTK",
    "interop/cntk/writing/elementwise.py": "functions of CNTK",
    "interop/fluid18.py": "what the kernels of another version of Paddle take and compute",
    "interop/onnx/exporter/families/elementwise/activation.py": "functions of ONNX",
    "interop/paddle3/block_writer.py": "forms of operators in files of Paddle 3",
    "interop/paddle3/row_reader.py": "forms of operators in files of Paddle 3",
    "interop/paddle3/upgrades.py": "forms of operators in files of Paddle 3",
    "interop/paddle3/write.py": "forms of operators in files of Paddle 3",
    "layers/fluid_modules.py": "the modules in which Fluid has its layers",
}


def find_lists(path: Path) -> Iterator[list[str]]:
    """Yield the texts of each literal of a module but ``__all__``: elements, keys, or words."""
    for statement in ast.parse(path.read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Constant):
                yield str(node.value).split()
            parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
            yield [str(part.value) if isinstance(part, ast.Constant) else "" for part in parts]


def test_facts_of_operators_stand_with_them_and_not_in_lists_elsewhere() -> None:
    types = registry.all_ops().keys()
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] != "ops"
        for names in find_lists(path)
        if len(names) >= 5 and sum(name in types for name in names) >= 0.75 * len(names)
    }
    assert sorted(found) == sorted(LISTS)
