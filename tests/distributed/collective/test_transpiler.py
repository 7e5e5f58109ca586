"""The programs of workers are those that Paddle 1.8.5 makes."""

from __future__ import annotations

import json
import lzma
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError
from paddlelike.framework.graph.guards import reset_name_scope
from paddlelike.transpiler.collective import GradAllReduce, LocalSGD
from tests.distributed.collective.cases import CASES, PAIR, build, transpile
from tests.helpers.canonical import assert_same_program, canonical
from tests.helpers.golden_data import GOLDEN

RECORDS = json.loads(lzma.decompress((GOLDEN / "collective185.json.xz").read_bytes()))


@pytest.mark.parametrize("name", CASES)
def test_programs_match_paddle_185(name: str) -> None:
    for mine, theirs in zip(make_programs(CASES[name]), RECORDS[name], strict=True):
        form = json.loads(json.dumps(canonical(mine)))
        describe_as_recorded(form, theirs)
        assert_same_program(form, theirs)


def describe_as_recorded(mine: Any, theirs: Any) -> None:
    """Leave operators of CUDA builds the attributes that a build for CPUs records."""
    for op, other in zip(mine["blocks"][0]["ops"], theirs["blocks"][0]["ops"], strict=False):
        if op["type"] in ("c_gen_nccl_id", "gen_nccl_id"):
            op["attrs"] = {name: op["attrs"][name] for name in other["attrs"]}
            flag = op["attrs"].get("use_hierarchical_allreduce")
            if flag is not None:
                flag[:] = ["INT", int(flag[1])]


def test_a_program_is_transpiled_once() -> None:
    main, startup = make_programs(CASES["grad_sgd_rank0"])
    before = main.desc.serialize_to_string()
    with pytest.raises(GraphError, match="transpiled before"):
        LocalSGD().transpile(startup, main, 0, PAIR, PAIR[0])
    assert main.desc.serialize_to_string() == before


@pytest.mark.parametrize(
    ("rank", "endpoints", "current", "message"),
    [
        (0, PAIR[:1], PAIR[0], "two endpoints or more"),
        (0, [PAIR[0]] * 2, PAIR[0], "name a worker twice"),
        (0, PAIR, "10.0.0.9:1", "'10.0.0.9:1' is not among 127.0.0.1:6170, 127.0.0.1:6171"),
        (1, PAIR, PAIR[0], "rank is 1, but the current endpoint '127.0.0.1:6170' is number 0"),
        (-1, PAIR, PAIR[0], "rank is -1"),
    ],
    ids=["alone", "twice", "unknown", "another rank", "negative"],
)
def test_arguments_that_do_not_fit_are_errors(
    rank: int, endpoints: list[str], current: str, message: str
) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        build(fluid, CASES["grad_sgd_rank0"])
    before = startup.desc.serialize_to_string()
    with pytest.raises(ValueError, match=message):
        GradAllReduce().transpile(startup, main, rank, endpoints, current)
    assert startup.desc.serialize_to_string() == before


def test_configs_that_do_not_fit_are_errors() -> None:
    config = fluid.DistributeTranspilerConfig()
    config.mode = "collective"
    transpiler = fluid.DistributeTranspiler(config)
    with pytest.raises(TypeError, match="trainers is 2, expected the endpoints of all workers"):
        transpiler.transpile(0, trainers=2)
    with pytest.raises(
        ValueError, match="collective_mode is None, expected one of 'grad_allreduce', 'local_sgd'"
    ):
        transpiler.transpile(0, trainers=",".join(PAIR), current_endpoint=PAIR[0])
    config.mode = "nccl2"
    with pytest.raises(ValueError, match=r"trainer_id is 1 and current_endpoint '127\.0\.0\.1:6170'"):
        transpiler.transpile(1, trainers=",".join(PAIR), current_endpoint=PAIR[0])


def test_a_program_of_nccl2_that_is_not_compiled_warns_once_that_it_trains_alone() -> None:
    main, _ = make_programs(CASES["nccl2_rank0"])
    plain = fluid.Program()
    with fluid.program_guard(plain, fluid.Program()), fluid.unique_name.guard():
        build(fluid, CASES["nccl2_rank0"])
    exe, initial = fluid.Executor(), plain._startup
    exe.run(initial)
    feed = {"x": np.ones((2, 4), "float32"), "y": np.ones((2, 1), "float32")}
    with pytest.warns(UserWarning, match="transpiled for 2 workers in the mode nccl2.* trains alone"):
        exe.run(main, feed=feed)
    exe.run(main, feed=feed)  # warnings are errors
    exe.run(make_programs(CASES["nccl2_rank0"])[0].clone(for_test=True), feed=feed)


def make_programs(case: dict[str, Any]) -> tuple[fluid.Program, fluid.Program]:
    main, startup = fluid.Program(), fluid.Program()
    reset_name_scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        build(fluid, case)
        transpile(fluid, case, main, startup)
    return main, startup
