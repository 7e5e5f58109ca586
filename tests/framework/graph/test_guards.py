"""Guards put back what was there."""

from __future__ import annotations

import pytest

import paddlelike as fluid

L = fluid.layers


def test_guards_put_back_what_was_there_even_after_an_error() -> None:
    before = fluid.default_main_program(), fluid.default_startup_program()
    with pytest.raises(KeyError), fluid.program_guard(fluid.Program(), fluid.Program()):
        raise KeyError
    with (
        pytest.raises(KeyError),
        fluid.unique_name.guard("p_"),
        fluid.name_scope("s"),
        fluid.device_guard("cpu"),
    ):
        raise KeyError
    x = L.relu(fluid.data("x", [None, 4]))
    assert x.name == "relu_0.tmp_0"
    op = x.op
    assert (op.attr("op_namescope"), op.attr("op_device")) == ("/", "")
    assert (fluid.default_main_program(), fluid.default_startup_program()) == before


def test_a_guard_takes_programs_only() -> None:
    for programs in ((None,), ("main",), (fluid.Program(), "startup")):
        with pytest.raises(TypeError, match="expected a Program"), fluid.program_guard(*programs):
            pass


def test_names_of_control_variables_are_new() -> None:
    """They begin as in Fluid 1.8.5, and a random number follows."""
    names = {fluid.framework.generate_control_dev_var_name() for _ in range(9)}
    assert len(names) == 9
    assert all(name.startswith("__control_var@") for name in names)
