"""wrapped_decorator, annotations, log_helper, default_scope_funcs, install_check, program_utils."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Iterator

import pytest

import paddlelike as fluid
from paddlelike.fluid import (
    annotations,
    default_scope_funcs,
    distribute_lookup_table,
    install_check,
    log_helper,
    program_utils,
    wrapped_decorator,
)
from tests.helpers.golden_data import GOLDEN


def test_decorated_functions_keep_name_and_signature() -> None:
    @wrapped_decorator.wrap_decorator
    def twice(function: Callable[..., int]) -> Callable[..., int]:
        return lambda *args, **kwargs: 2 * function(*args, **kwargs)

    @twice
    def add(x: int, y: int = 1) -> int:
        """Add."""
        return x + y

    assert (add(2), add(2, y=5), add.__name__, add.__doc__) == (6, 14, "add", "Add.")
    assert list(inspect.signature(add).parameters) == ["x", "y"]


def test_the_table_that_is_sharded_by_id_is_found_with_its_ids_and_rows() -> None:
    ids = fluid.data("ids", [None, 1], "int64")
    program, options = fluid.default_main_program(), {"is_sparse": True, "param_attr": "emb"}
    assert distribute_lookup_table.find_distributed_lookup_table(program) is None
    rows = [fluid.layers.embedding(ids, (100, 4), is_distributed=True, **options) for _ in range(2)]
    fluid.layers.embedding(ids, (100, 4), is_sparse=True)
    assert distribute_lookup_table.find_distributed_lookup_table(program) == "emb"
    assert distribute_lookup_table.find_distributed_lookup_table_inputs(program, "emb") == [ids, ids]
    assert distribute_lookup_table.find_distributed_lookup_table_outputs(program, "emb") == rows


def test_context_managers_exit_on_errors() -> None:
    steps = []

    @wrapped_decorator.signature_safe_contextmanager
    def opened(name: str) -> Iterator[str]:
        steps.append("in")
        try:
            yield name
        finally:
            steps.append("out")

    with opened("a") as name:
        assert name == "a"
    with pytest.raises(ZeroDivisionError), opened("a"):
        raise ZeroDivisionError
    assert steps == ["in", "out"] * 2
    assert list(inspect.signature(opened).parameters) == ["name"]


def test_deprecated_functions_warn_at_each_call(capsys: pytest.CaptureFixture[str]) -> None:
    @annotations.deprecated("1.5", "new", extra_message="soon")
    def old(x: int) -> int:
        """Old."""
        return x

    assert old(3) == 3
    assert capsys.readouterr().err == "API old is deprecated since 1.5. Please use new instead.\nsoon\n"
    assert "is deprecated since 1.5" in (old.__doc__ or "")


def test_a_logger_writes_only_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    logger = log_helper.get_logger("paddlelike.tests.log", logging.INFO, fmt="%(levelname)s: %(message)s")
    try:
        logger.info("a line")
        logger.debug("not shown")
        assert not logger.propagate
    finally:
        logger.handlers.clear()
    assert capsys.readouterr().err == "INFO: a line\n"


def test_scopes_are_stacked_per_thread() -> None:
    default_scope_funcs.var("outer")
    seen: list[bool] = []

    def inner() -> None:
        default_scope_funcs.var("inner")
        seen.append(default_scope_funcs.find_var("outer") is not None)

    default_scope_funcs.scoped_function(inner)
    assert seen == [True]
    assert default_scope_funcs.find_var("inner") is None
    thread = threading.Thread(target=lambda: seen.append(default_scope_funcs.find_var("outer") is None))
    thread.start()
    thread.join()
    assert seen == [True, True]


def test_install_check_trains_a_small_network(capsys: pytest.CaptureFixture[str]) -> None:
    install_check.run_check()
    assert "is installed and works" in capsys.readouterr().out


def test_a_program_is_printed_as_fluid_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    fluid.layers.fc(fluid.data("x", [-1, 3]), 2, bias_attr=False)
    count = fluid.layers.fill_constant([1], "int64", 3)
    with fluid.layers.Switch() as switch, switch.case(fluid.layers.less_than(count, count)):
        fluid.layers.fill_constant([1], "int64", 4, out=count)
    program_utils.program_to_code(fluid.default_main_program())
    assert capsys.readouterr().out == (GOLDEN / "program_to_code.txt").read_text()
