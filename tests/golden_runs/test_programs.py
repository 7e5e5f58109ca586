"""The four networks are the same programs here and in real Fluid 1.8.5."""

from __future__ import annotations

import pytest

import paddlelike as fluid
from paddlelike.framework.codec.schema import messages
from tests.helpers.canonical import assert_same_program, canonical
from tests.helpers.fresh import fresh_programs
from tests.helpers.golden_data import GOLDEN, manifest, program
from tests.helpers.networks import NETWORKS, SEED
from tests.helpers.runs import building
from tests.zoo.encoded import digest

pytestmark = pytest.mark.parametrize("name", NETWORKS)


def test_forward_programs_match_fluid(name: str) -> None:
    with fresh_programs(SEED) as (main, startup):
        NETWORKS[name].build(fluid)
        assert_same_program(canonical(main), program(name, "main_forward"))
        assert_same_program(canonical(startup), program(name, "startup_forward"))


def test_training_programs_match_fluid(name: str) -> None:
    with building(name) as run:
        assert_same_program(canonical(run.main), program(name, "main_train"))
        assert_same_program(canonical(run.startup), program(name, "startup_train"))


def test_programs_have_the_bytes_of_fluid(name: str) -> None:
    with building(name) as run:
        ours = {"main_train": run.main, "startup_train": run.startup, "main_forward_for_test": run.for_test}
        for which, built in ours.items():
            real = (GOLDEN / name / "programs" / f"{which}.pb").read_bytes()
            got = built.desc.serialize_to_string()
            assert digest(got, messages().ProgramDesc) == digest(real, messages().ProgramDesc), which


def test_clones_for_test_match_fluid(name: str) -> None:
    with building(name) as run:
        assert_same_program(canonical(run.for_test), program(name, "main_forward_for_test"))
        clone = run.main.clone(for_test=True)
        assert_same_program(canonical(clone), program(name, "main_train_for_test"))


def test_minimize_returns_pairs_in_order_of_creation(name: str) -> None:
    with building(name) as run:
        _, pairs = run.minimized
        assert [[p.name, g.name] for p, g in pairs] == manifest(name)["params_grads"]


def test_persistables_and_their_kinds_match_fluid(name: str) -> None:
    with building(name) as run:
        got = {
            v.name: {
                "kind": "Parameter" if fluid.io.is_parameter(v) else "Variable",
                "trainable": getattr(v, "trainable", None),
                "belongs_to_optimizer": bool(fluid.io.is_belong_to_optimizer(v)),
                "shape": list(v.shape),
                "dtype": v.dtype.name,
            }
            for v in run.main.list_vars()
            if fluid.io.is_persistable(v)
        }
        assert got == manifest(name)["persistables"]


@pytest.mark.parametrize("which", ["main_train", "startup_train", "main_train_for_test"])
def test_a_real_program_survives_reading_and_writing(name: str, which: str) -> None:
    data = (GOLDEN / name / "programs" / f"{which}.pb").read_bytes()
    again = fluid.Program.parse_from_string(data)
    assert_same_program(canonical(again), program(name, which))
    assert len(again.desc.serialize_to_string()) == len(data)  # op_callstack included
