"""Programs read from bytes run only operators that compute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import UntrustedError
from tests.helpers.fresh import fresh_programs


def build_loader(path: Path) -> bytes:
    """Return a program that reads a tensor from a file."""
    program = fluid.Program()
    block = program.global_block()
    block.create_var(name="y", shape=[2], dtype="float32")
    block.append_op(type="load", outputs={"Out": ["y"]}, attrs={"file_path": str(path)})
    return program.desc.serialize_to_string()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with fresh_programs() as (main, startup):
        start = fluid.initializer.Constant(3.0)
        fluid.layers.create_parameter([2], "float32", name="secret", default_initializer=start)
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.save_persistables(exe, str(tmp_path), main)
    return tmp_path / "secret"


COPIES: dict[str, Callable[[fluid.Program], fluid.Program]] = {
    "itself": lambda program: program,
    "clone": lambda program: program.clone(),
    "for-test": lambda program: program.clone(for_test=True),
    "pruned": lambda program: program._prune(["y"]),
    "parsed-again": lambda program: fluid.Program.parse_from_string(program.desc.serialize_to_string()),
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_an_operator_that_opens_files_is_refused(
    file: Path, copied: Callable[[fluid.Program], fluid.Program]
) -> None:
    program = copied(fluid.Program.parse_from_string(build_loader(file)))
    with pytest.raises(UntrustedError, match=r"'load' -> \['y'\] \(file_path=.*secret'\)") as caught:
        fluid.Executor().run(program, fetch_list=["y"])
    assert "parse_from_string(data, trusted=True)" in str(caught.value)


def test_a_compiled_program_that_opens_files_is_refused(file: Path) -> None:
    program = fluid.Program.parse_from_string(build_loader(file))
    compiled = fluid.CompiledProgram(program).with_data_parallel()
    with pytest.raises(UntrustedError, match="'load'"):
        fluid.Executor().run(compiled, fetch_list=["y"])


def test_an_operator_in_a_sub_block_is_refused(file: Path) -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        condition = fluid.layers.fill_constant([1], "bool", True)

        def load() -> None:
            block = main.current_block()
            block.create_var(name="y", shape=[2], dtype="float32")
            block.append_op(type="load", outputs={"Out": ["y"]}, attrs={"file_path": str(file)})

        fluid.layers.cond(condition, load, None)
    program = fluid.Program.parse_from_string(main.desc.serialize_to_string())
    with pytest.raises(UntrustedError, match="'load'"):
        fluid.Executor().run(program)


def test_a_trusted_program_and_one_of_this_process_run(file: Path) -> None:
    data = build_loader(file)
    program = fluid.Program.parse_from_string(data, trusted=True)
    (value,) = fluid.Executor().run(program.clone(), fetch_list=["y"])
    np.testing.assert_array_equal(value, [3, 3])


def test_operators_that_a_user_appends_to_a_decoded_program_are_trusted(tmp_path: Path) -> None:
    with fresh_programs() as (main, _):
        fluid.layers.fill_constant([2], "float32", 1.0)
    program = fluid.Program.parse_from_string(main.desc.serialize_to_string())
    attrs = {"file_path": str(tmp_path / "out")}
    program.global_block().append_op(type="save", inputs={"X": ["fill_constant_0.tmp_0"]}, attrs=attrs)
    fluid.Executor().run(program)
    assert (tmp_path / "out").exists()


def test_a_long_list_of_operators_is_truncated_in_the_error() -> None:
    program = fluid.Program()
    block = program.global_block()
    for number in range(11):
        block.create_var(name=f"y{number}", shape=[2], dtype="float32")
        block.append_op(type="load", outputs={"Out": [f"y{number}"]}, attrs={"file_path": "f"})
    program = fluid.Program.parse_from_string(program.desc.serialize_to_string())
    with pytest.raises(UntrustedError, match=r"'y7'.*, 3 more"):
        fluid.Executor().run(program)
