"""The face: Fluid 1.8.5's public names with their parameters (signatures185.txt), and what is left out."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import paddlelike as fluid
from paddlelike import left_out
from paddlelike.lazy import read_stub
from tests.ops.harness.collect import LATER

LINES = (Path(__file__).parent / "signatures185.txt").read_text().splitlines()

#: Methods of variables and optimizers for the dynamic graph.
DYNAMIC = {
    "Variable.backward", "Variable.clear_gradient", "Variable.detach", "Variable.gradient", "Variable.numpy",
    "Variable.set_value", "clear_gradients", "current_step_lr", "set_dict", "state_dict",
}  # fmt: skip

#: What is there to say that it cannot be used here, and what to use instead.
REFUSED = [
    "ComplexVariable",
    "enable_dygraph",
    "enable_imperative",
    "framework.ComplexVariable",
    "io.default_collate_fn",
    "io.DataLoader",
    "optimizer.DGCMomentumOptimizer",
    "optimizer.PipelineOptimizer",
    "profiler.cuda_profiler",
]


def is_left_out(name: str) -> bool:
    if name.startswith("io.DataLoader."):
        return False
    return any(name == one or name.startswith(f"{one}.") for one in REFUSED) or dynamic(name)


def dynamic(name: str) -> bool:
    return name.rpartition(".")[2] in DYNAMIC or ".".join(name.split(".")[-2:]) in DYNAMIC


def path_of(line: str) -> str:
    return line.partition("(")[0].removeprefix("fluid.")


def find(path: str) -> Any:
    """A name of the face; some attributes are those of objects."""
    owner, _, name = path.rpartition(".")
    if not owner or hasattr(attrgetter(owner)(fluid), name):
        return attrgetter(path)(fluid)
    thing = attrgetter(owner)(fluid)
    if thing is fluid.Variable:
        return getattr(fluid.data("x", [None, 1]), name)
    return getattr(thing() if inspect.isclass(thing) else thing, name)


@pytest.mark.parametrize("owner", sorted({path_of(line).rpartition(".")[0] for line in LINES}))
def test_every_name_of_fluid_exists_with_its_parameters(owner: str) -> None:
    for line in LINES:
        path = path_of(line)
        if path.rpartition(".")[0] != owner or is_left_out(path):
            continue
        found = find(path)
        if "(" in line:
            check_parameters(line, list(inspect.signature(found).parameters.values()))


def check_parameters(line: str, ours: list[inspect.Parameter]) -> None:
    theirs = re.findall(r"[^,\s(]+(?:=(?:'[^']*'|[^,]*))?", line.partition("(")[2].removesuffix(")"))
    more = {inspect.Parameter.KEYWORD_ONLY} | ({inspect.Parameter.VAR_KEYWORD} if "**" not in line else set())
    positional = [p for p in ours if p.kind not in more]
    assert [p.name for p in positional] == [one.partition("=")[0].lstrip("*") for one in theirs], line
    for mine, wanted in zip(positional, theirs, strict=True):
        if "=" in wanted:
            assert default(mine) == wanted.partition("=")[2], line
    assert all(p.default is not p.empty for p in ours if p.kind is p.KEYWORD_ONLY), line


def default(one: inspect.Parameter) -> str:
    return str(one.default) if isinstance(one.default, fluid.core.VarDesc.VarType) else repr(one.default)


def test_classes_have_the_members_of_fluid(capsys: pytest.CaptureFixture[str]) -> None:
    paths = [path_of(line) for line in LINES]
    members = [path for path in paths if inspect.isclass(attrgetter(path.rpartition(".")[0] or "io")(fluid))]
    missing = [path for path in members if not is_there(path)]
    with capsys.disabled():
        print(f"\nmembers of classes: {len(members) - len(missing)} of {len(members)}")  # noqa: T201
    assert [path for path in missing if not is_left_out(path)] == []
    assert len(members) > 300


def is_there(path: str) -> bool:
    try:
        find(path)
    except (AttributeError, TypeError, fluid.core.EnforceNotMet):
        return False
    return True


@pytest.mark.parametrize("name", REFUSED)
def test_refused_names_raise_with_a_hint(name: str) -> None:
    found = attrgetter(name)(fluid)
    with pytest.raises(fluid.core.EnforceNotMet) as caught:
        found() if inspect.isclass(found) else found().__enter__()
    assert caught.value.hint


@pytest.mark.parametrize("name", sorted(DYNAMIC))
def test_names_of_the_dynamic_graph_are_absent_or_refused(name: str) -> None:
    if name.startswith("Variable."):
        with pytest.raises(AttributeError):
            find(name)
    else:
        with pytest.raises(fluid.core.EnforceNotMet, match="imperative mode"):
            getattr(fluid.optimizer.SGD(0.1), name)()


def test_the_package_lists_its_names_in_order() -> None:
    assert fluid.__all__ == sorted(fluid.__all__) == dir(fluid)
    assert all(hasattr(fluid, name) for name in fluid.__all__)
    public = {name for name in vars(fluid) if not name.startswith("_")}
    modules = {module.name for module in pkgutil.iter_modules(fluid.__path__)}
    unlisted = set(read_stub(Path(fluid.__file__).with_suffix(".pyi")))  # as Fluid's Linear, say
    assert public - set(fluid.__all__) <= unlisted | modules | set(left_out.MODULES) | {
        name.partition(".")[0] for name in fluid._FURTHER
    }


def test_type_checkers_see_all_public_names() -> None:
    stub = ast.parse(Path(fluid.__file__).with_suffix(".pyi").read_text())
    (listed,) = (node.value for node in stub.body if isinstance(node, ast.Assign))
    assert ast.literal_eval(listed) == fluid.__all__


def public_names(module: str) -> list[str]:
    """The names that ``fluid.<module>`` must list."""
    paths = (Path(__file__).parent / "public_names.txt").read_text().split()
    return [path.rpartition(".")[2] for path in paths if path.rpartition(".")[0] == module]


@pytest.mark.parametrize(
    "module",
    ["", "average", "clip", "initializer", "input", "metrics", "nets", "param_attr", "unique_name"],
)
def test_a_module_lists_its_public_names_and_no_others(module: str) -> None:
    found = attrgetter(module)(fluid) if module else fluid
    listed = set(found.__all__) - (set(LATER) if module == "layers" else set())
    assert sorted(listed) == public_names(f"fluid.{module}".rstrip("."))


@pytest.mark.parametrize(
    "module",
    [
        "backward",
        "core",
        "executor",
        "framework",
        "io",
        "layers",
        "optimizer",
        "profiler",
        "reader",
        "regularizer",
        "transpiler",
    ],
)
def test_modules_keep_their_public_names(module: str) -> None:
    names = public_names(f"fluid.{module}")
    assert names
    assert set(attrgetter(module)(fluid).__all__) >= set(names)


def test_every_public_function_and_class_is_documented() -> None:
    for name in fluid.__all__:
        found = getattr(fluid, name)
        assert (inspect.getdoc(found) or "").strip(), name
        members = vars(found).items() if inspect.isclass(found) else ()
        for member, value in members:
            if inspect.isfunction(value) and not member.startswith("_"):
                assert (inspect.getdoc(value) or "").strip(), f"{name}.{member}"


MODULES = [name for name in fluid.__all__ if inspect.ismodule(getattr(fluid, name))]


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_found_by_import_and_by_attribute(name: str) -> None:
    assert importlib.import_module(f"paddlelike.{name}") is getattr(fluid, name)


@pytest.mark.parametrize(
    "module", ["backward", "executor", "framework", "io", "initializer", "optimizer", "reader", "unique_name"]
)
def test_modules_have_every_name_they_list(module: str) -> None:
    found = getattr(fluid, module)
    assert all(hasattr(found, name) for name in found.__all__)


def in_a_new_process(script: str) -> str:
    """What a script prints, without the last line's end."""
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.rstrip("\n")


def test_importing_the_package_loads_no_further_modules() -> None:
    script = "import sys, paddlelike; print(sorted(name for name in sys.modules if 'paddlelike' in name))"
    below = (
        "errors foundation foundation.near_names foundation.tracebacks hooks lazy left_out left_out.reasons"
    )
    names = f"batch {below}"
    assert in_a_new_process(script) == str(["paddlelike", *(f"paddlelike.{name}" for name in names.split())])


def test_training_and_saving_import_no_server_code_and_no_extras(tmp_path: Path) -> None:
    """What only some calls need is imported when they need it."""
    late = ["networkx", "h5py", "onnx", "grpc", "fsspec", "safetensors", "rich", "matplotlib", "asyncio"]
    late += [f"paddlelike.{name}" for name in ("distributed.server", "distributed.fleet", "metrics")]
    script = f"""
import sys
import numpy as np
import paddlelike as fluid
x = fluid.data("x", [None, 3])
loss = fluid.layers.reduce_mean(fluid.layers.fc(x, 1))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
exe.run(feed={{"x": np.ones((2, 3), "float32")}}, fetch_list=[loss])
fluid.io.save_persistables(exe, {str(tmp_path / "saved")!r})
print([name for name in {late} if name in sys.modules])
"""
    assert in_a_new_process(script) == "[]"


@pytest.mark.parametrize("module", ["load.load", pytest.param("save.save", marks=pytest.mark.slow)])
def test_importing_a_subpackage_does_not_replace_the_function_of_its_name(module: str) -> None:
    script = f"""
import paddlelike.io.{module}
import paddlelike as fluid
print(callable(fluid.io.load), callable(fluid.io.save), fluid.load is fluid.io.load)
"""
    assert in_a_new_process(script) == "True True True"


@pytest.mark.parametrize(
    ("name", "original"),
    [
        ("communicator", "distributed.communicator"),
        pytest.param("compiler", "executor", marks=pytest.mark.slow),
        pytest.param("data_generator", "reader.data_generator", marks=pytest.mark.slow),
        pytest.param("transpiler", "distributed.transpiler", marks=pytest.mark.slow),
        ("transpiler.config", "distributed.transpiler.config"),
        ("transpiler.distribute_transpiler", "distributed.transpiler"),
    ],
)
def test_modules_are_importable_by_their_fluid_names(name: str, original: str) -> None:
    script = f"""
import sys
import paddlelike.{name}
print(sys.modules["paddlelike.{name}"] is sys.modules["paddlelike.{original}"])
"""
    assert in_a_new_process(script) == "True"


@pytest.mark.parametrize("name", ["compiler.nothing", "communicator.nothing", "incubate.nothing", "nothing"])
def test_importing_a_missing_module_raises_module_not_found_error(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"No module named 'paddlelike.{name}'"):
        importlib.import_module(f"paddlelike.{name}")


def test_a_missing_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'paddlelike' has no attribute 'nothing'"):
        fluid.nothing  # noqa: B018
