"""Programs run once per batch of a dataset; values are printed and handled periodically."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.executor.datasets import FetchHandler, run_dataset


class Dataset:
    """Five batches: 0, 1, 2, 3, 4."""

    def feeds(self) -> Any:
        return ({"x": np.full((1, 1), i, "float32")} for i in range(5))


@pytest.fixture
def doubled() -> Any:
    return fluid.layers.scale(fluid.data("x", [None, 1]), 2.0)


def run(exe: fluid.Executor, **options: Any) -> None:
    given = {"fetch_list": None, "fetch_info": None, "print_period": 2, "fetch_handler": None} | options
    run_dataset(exe, fluid.default_main_program(), Dataset(), fluid.global_scope(), **given)


def test_fetched_values_are_printed_once_per_print_period(
    exe: fluid.Executor, doubled: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run(exe, fetch_list=[doubled], fetch_info=["twice"])
    assert capsys.readouterr().out == "batch 2: twice: [[2.]]\nbatch 4: twice: [[6.]]\n"


def test_a_handler_gets_values_by_its_names(exe: fluid.Executor, doubled: Any) -> None:
    seen = []

    class Collect(FetchHandler):
        def handler(self, res_dict: dict[str, Any]) -> None:
            seen.append({name: value.item() for name, value in res_dict.items()})

    run(exe, fetch_handler=Collect({"y": doubled}, period_secs=0))
    assert seen == [{"y": 2.0 * i} for i in range(5)]
    seen.clear()
    run(exe, fetch_handler=Collect({"y": doubled}, period_secs=60))
    assert seen == [{"y": 0.0}]


def test_the_handler_of_the_base_class_prints(
    exe: fluid.Executor, doubled: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run(exe, fetch_handler=FetchHandler({"y": doubled}, period_secs=60))
    assert capsys.readouterr().out == "y: [[0.]]\n"


def test_fetch_handlers_refuse_mismatched_arguments(exe: fluid.Executor, doubled: Any) -> None:
    with pytest.raises(ValueError, match="fetch_info holds 1 texts for 2 variables"):
        run(exe, fetch_list=[doubled, "x"], fetch_info=["only"])
    with pytest.raises(ValueError, match="var_dict is None"):
        FetchHandler()
    with pytest.raises(RuntimeError, match="dataset is None"):
        run_dataset(exe, fluid.default_main_program(), None, None, None, None, 1, None)
