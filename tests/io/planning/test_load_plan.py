"""Plans of loads, and loads that take a part: what they say, and that a plan changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError, MissingFileError
from paddlelike.framework.hints import Named
from paddlelike.io.planning.proposals import propose
from paddlelike.io.rules.rules import Rules
from tests.io.load.reads import counting_reads, needs_read_counts
from tests.io.loading import (
    executor,
    network,
    own,
    persistables,
    program_of,
    save,
    unchanged,
    value,
    values,
)

F32 = "float32"


@pytest.fixture(autouse=True)
def scope() -> Iterator[fluid.Scope]:
    with fluid.scope_guard(fluid.Scope()):
        yield fluid.global_scope()


@pytest.fixture
def started() -> fluid.Program:
    """A network with ten classes, whose startup program has run."""
    main, startup = network()
    executor().run(startup)
    return main


def plan(*args: Any, **keywords: Any) -> fluid.io.LoadPlan:
    return unchanged(lambda: fluid.io.plan_load(*args, **keywords))


def whats(plan: fluid.io.LoadPlan) -> dict[str, str]:
    return {row.variable or row.file or "": row.what for row in plan.rows}


# What a plan says


def test_a_plan_without_problems_is_true_and_changes_nothing(tmp_path: Path, started: fluid.Program) -> None:
    saved = save(tmp_path / "a", network())
    made = plan(tmp_path / "a", started)
    assert made
    assert whats(made) == dict.fromkeys(saved, "load")
    assert made.problems == []
    assert str(made).splitlines()[0] == f"would load {tmp_path}/a: 11 load"


@needs_read_counts
def test_a_plan_reads_headers_only(tmp_path: Path, started: fluid.Program) -> None:
    own(tmp_path / "a", "w", np.zeros((3000, 1000), F32))
    program = program_of(w=([3000, 1000], F32))
    plan(tmp_path / "a", program)
    with counting_reads() as count:
        plan(tmp_path / "a", program)
        assert count() < 20_000


def test_a_plan_is_a_table(tmp_path: Path) -> None:
    own(tmp_path, "old", np.zeros((2, 3), F32))
    own(tmp_path, "x", np.zeros(4, F32))
    own(tmp_path, "y", np.zeros(4, "int64"))
    program = program_of(new=([2, 3], F32), x=([4], F32), y=([4], F32), z=([7], F32), k=([1], F32))
    made = plan(tmp_path, program, rename={"old": "new"}, skip="z")
    refused, head, *lines, hint = str(made).splitlines()
    assert refused == f"would refuse {tmp_path}: 1 rename, 1 load, 1 does not fit, 1 skip, 1 missing"
    assert head == "variable  file  program     file has    what"
    misfit = "does not fit: the file holds INT64[4], the program wants FP32[4]"
    assert lines == [
        f"y         y     FP32[4]     INT64[4]    {misfit}",
        "k               FP32[1]                 missing: there is no such file",
        "new       old   FP32[2, 3]  FP32[2, 3]  rename",
        "x         x     FP32[4]     FP32[4]     load",
        "z               FP32[7]                 skip",
    ]
    assert hint.startswith("hint: the program must be the network that saved these files (strict=False")


def test_a_large_plan_prints_its_problems_first(tmp_path: Path) -> None:
    for number in range(100):
        own(tmp_path, f"v_{number}", np.zeros(1, F32))
    program = program_of(**{f"v_{number}": ([1], F32) for number in range(100)}, wide=([1], F32))
    lines = str(plan(tmp_path, program)).splitlines()
    assert len(lines) == 45
    assert lines[2].startswith("wide")
    assert "... and 60 more (see rows)" in lines


def test_a_refused_load_lists_the_problems_of_its_plan(tmp_path: Path, started: fluid.Program) -> None:
    save(tmp_path / "a", network(classes=3))
    made = plan(tmp_path / "a", started)
    assert not made
    with pytest.raises(LoadError) as caught:
        unchanged(lambda: fluid.io.load_persistables(executor(), tmp_path / "a", started))
    for row in made.problems:
        assert f"{row.variable}: {row.why}" in str(caught.value)


def test_a_missing_directory_is_an_error_for_a_plan_too(tmp_path: Path, started: fluid.Program) -> None:
    with pytest.raises(MissingFileError, match="does not exist"):
        plan(tmp_path / "nowhere", started)


@pytest.mark.parametrize("suffix", ["", ".pdparams"])
def test_state_files_and_dicts_can_be_planned(tmp_path: Path, started: fluid.Program, suffix: str) -> None:
    fluid.save(started, str(tmp_path / "m"))
    assert plan(str(tmp_path / "m") + suffix, started)
    state = fluid.load_program_state(str(tmp_path / "m"))
    assert plan(state, started)
    state["fc_0.w_0"] = state["fc_0.w_0"].T
    assert whats(plan(state, started))["fc_0.w_0"] == "does not fit"


# Names that have drifted


def _build(*widths: int) -> None:
    hidden = fluid.data("x", [None, 4])
    for width in widths:
        hidden = fluid.layers.fc(hidden, width)
    fluid.optimizer.Adam(0.1).minimize(fluid.layers.mean(hidden))


@pytest.mark.parametrize("times", [1, 2], ids=["twice", "thrice"])
@pytest.mark.parametrize("widths", [(3,), (4, 4, 3)], ids=["one layer", "three layers"])
def test_a_network_built_again_in_its_program_is_recognised(
    tmp_path: Path, widths: tuple[int, ...], times: int
) -> None:
    _build(*widths)
    executor().run(fluid.default_startup_program())
    fluid.io.save_persistables(executor(), tmp_path)
    for _ in range(times):
        _build(*widths)
    hint = fluid.io.plan_load(tmp_path).hint or ""
    assert "holds the network more than once: 'fc_" in hint
    assert "beside 'fc_0.w_0'" in hint
    assert "strict" not in hint  # it would leave the values of the other half to chance


def test_a_network_with_an_extra_layer_is_not_reported_as_built_again(tmp_path: Path) -> None:
    _build(4)
    executor().run(fluid.default_startup_program())
    fluid.io.save_persistables(executor(), tmp_path)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        _build(4, 4, 3)
        assert "more than once" not in (fluid.io.plan_load(tmp_path).hint or "")


def test_a_network_built_twice_is_recognised_and_its_names_proposed(tmp_path: Path) -> None:
    saved = save(tmp_path / "a", network())
    main, startup = network(times=2)
    executor().run(startup)
    made = plan(tmp_path / "a", main)
    assert "built twice" in (made.hint or "")
    assert "the program needs 'embedding_1.w_0', the files have 'embedding_0.w_0'" in (made.hint or "")
    assert "rules()" in (made.hint or "")
    assert "fc_2.w_0: there is no such file (perhaps fc_0.w_0)" in str(made.refusal())
    assert len(made.proposals) == len(saved)
    assert "proposed: fc_0.w_0 -> fc_2.w_0 (equal except for its numbers)" in str(made)
    assert plan(tmp_path / "a", main, rules=made.rules())
    report = fluid.io.load_persistables(executor(), tmp_path / "a", main, rules=made.rules())
    assert report.renamed["fc_3.w_0"] == "fc_1.w_0"
    now = values(main)
    for proposal in made.proposals:
        np.testing.assert_array_equal(now[proposal.variable], saved[proposal.file])


def test_a_load_error_that_rules_could_fix_hints_at_plan_load(tmp_path: Path) -> None:
    own(tmp_path, "encoder.weight", np.zeros((2, 3), F32))
    with pytest.raises(LoadError, match=r"plan_load\(\.\.\.\)\.rules\(\)"):
        fluid.io.load_persistables(executor(), tmp_path, program_of(w=([2, 3], F32)))


@pytest.mark.parametrize(
    ("files", "wanted", "pairs"),
    [
        pytest.param({"net/w": [2], "net/b": [2]}, {"w": [2], "b": [2]},
                     {"w": "net/w", "b": "net/b"}, id="prefix-in-the-files"),
        pytest.param({"w": [2], "b": [2]}, {"net.w": [2], "net.b": [2]},
                     {"net.w": "w", "net.b": "b"}, id="prefix-in-the-program"),
        pytest.param({"weight": [2, 3], "bias": [3]}, {"fc_0.w_0": [2, 3], "fc_0.b_0": [3]},
                     {"fc_0.w_0": "weight", "fc_0.b_0": "bias"}, id="shapes"),
        pytest.param({"l9.x": [2], "l10.x": [2]}, {"a": [2], "b": [2]},
                     {"a": "l9.x", "b": "l10.x"}, id="order-is-that-of-numbers"),
        pytest.param({"p": [2], "q": [2]}, {"a": [2]}, {}, id="not-unique"),
        pytest.param({"p": [2], "q": [3]}, {"a": [3], "b": [4]}, {"a": "q"}, id="only-what-fits"),
        pytest.param({"fc_9.w_0": [2], "fc_9.w_0_velocity_0": [2]},
                     {"fc_0.w_0": [2], "fc_0.w_0_velocity_0": [2]},
                     {"fc_0.w_0": "fc_9.w_0", "fc_0.w_0_velocity_0": "fc_9.w_0_velocity_0"}, id="kinds"),
        pytest.param({"k.w_0": [2], "k.w_0_moment_0": [2]}, {"m.w_0_moment_0": [2], "m.w_0": [2]},
                     {"m.w_0": "k.w_0", "m.w_0_moment_0": "k.w_0_moment_0"}, id="shapes-and-kinds"),
        pytest.param({"conv_2.w_0": [1], "conv_10.w_0": [1]}, {"conv_3.w_0": [1], "conv_11.w_0": [1]},
                     {"conv_3.w_0": "conv_2.w_0", "conv_11.w_0": "conv_10.w_0"}, id="numbers-as-numbers"),
    ],
)  # fmt: skip
def test_near_names_and_shapes_are_proposed(
    files: dict[str, Any], wanted: dict[str, Any], pairs: dict[str, str]
) -> None:
    kind = fluid.core.VarDesc.VarType.FP32
    proposals = propose(
        [Named(name, kind, tuple(shape)) for name, shape in wanted.items()],
        [Named(name, kind, tuple(shape)) for name, shape in files.items()],
        lambda variable, file: variable.shape == file.shape,
    )
    assert {p.variable: p.file for p in proposals} == pairs


def test_proposals_become_rules_by_full_name() -> None:
    made = fluid.io.LoadPlan("a", (), proposals=plan_proposals())
    assert Rules.decode(_text(made.rules())) == made.rules()
    assert len(made.rules()) == 2


def plan_proposals() -> Any:
    from paddlelike.io.planning.proposals import Proposal

    return Proposal("a*", "b", ""), Proposal("re:x", "c", "")


def _text(rules: Rules) -> str:
    import tempfile

    path = Path(tempfile.mkdtemp()) / "rules.json"
    rules.save(path)
    return path.read_text()


# Loads that take a part


def test_strict_false_loads_matching_values_and_reports_the_rest(
    tmp_path: Path, started: fluid.Program
) -> None:
    saved = save(tmp_path / "a", network(classes=3))
    (tmp_path / "a" / "fc_0.b_0").unlink()
    own(tmp_path / "a", "stranger", np.zeros(1, F32))
    before = values(started)
    report = fluid.io.load_persistables(executor(), tmp_path / "a", started, strict=False)
    assert not report
    assert report.missing == ("fc_0.b_0",)
    assert set(report.misfits) == {n for n in saved if n.startswith("fc_1.")}
    assert report.unexpected == ("stranger",)
    assert "missing: fc_0.b_0" in str(report)
    assert "does not fit: fc_1.w_0: the file has shape [8, 3], the program wants [8, 10]" in str(report)
    for name, array in values(started).items():
        left = name in report.missing or name in report.misfits
        np.testing.assert_array_equal(array, before[name] if left else saved[name])


def test_a_load_report_is_true_if_values_were_left_out_on_purpose(
    tmp_path: Path, started: fluid.Program
) -> None:
    save(tmp_path / "a", network(classes=3))
    report = fluid.io.load_persistables(executor(), tmp_path / "a", started, strict=False, init="keep")
    assert report
    assert report.kept
    assert not report.misfits
    assert "left as they were" in str(report)


def test_a_load_that_is_not_strict_fails_if_nothing_fits(tmp_path: Path, started: fluid.Program) -> None:
    own(tmp_path / "a", "stranger", np.zeros(1, F32))
    with pytest.raises(LoadError, match="nothing was loaded"):
        unchanged(lambda: fluid.io.load_persistables(executor(), tmp_path / "a", started, strict=False))
    with pytest.raises(LoadError, match="every variable is skipped"):
        unchanged(lambda: fluid.io.load_persistables(executor(), tmp_path / "a", started, skip="*"))


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        pytest.param("keep", None, id="keep"),
        pytest.param("zero", 0.0, id="zero"),
        pytest.param(0.25, 0.25, id="number"),
        pytest.param({"fc_0.*": 2, "*": "keep"}, 2.0, id="patterns"),
    ],
)
def test_variables_missing_from_the_files_are_kept_or_initialized(
    tmp_path: Path, started: fluid.Program, init: Any, expected: float | None
) -> None:
    save(tmp_path / "a", network())
    (tmp_path / "a" / "fc_0.b_0").unlink()
    before = value("fc_0.b_0")
    version = fluid.global_scope().find_var("fc_0.b_0").version
    report = fluid.io.load_persistables(executor(), tmp_path / "a", started, init=init)
    assert report
    assert (report.kept if expected is None else report.initialized) == ("fc_0.b_0",)
    np.testing.assert_array_equal(value("fc_0.b_0"), before if expected is None else expected)
    assert (fluid.global_scope().find_var("fc_0.b_0").version > version) == (expected is not None)


def test_init_does_not_allow_values_of_the_wrong_shape(tmp_path: Path, started: fluid.Program) -> None:
    save(tmp_path / "a", network(classes=3))
    with pytest.raises(LoadError, match=r"does not fit|do not fit"):
        unchanged(lambda: fluid.io.load_persistables(executor(), tmp_path / "a", started, init="zero"))


def test_init_refuses_a_number_for_a_variable_of_unknown_size(tmp_path: Path) -> None:
    own(tmp_path, "w", np.zeros(1, F32))
    program = program_of(w=([1], F32), v=([-1, 2], F32))
    with pytest.raises(LoadError, match="is not initialised by a number"):
        fluid.io.load_persistables(executor(), tmp_path, program, init="zero")


def test_a_combined_file_with_known_names_loads_the_values_that_fit(
    tmp_path: Path, started: fluid.Program
) -> None:
    saved = save(tmp_path / "a", network(classes=3), "all")
    with pytest.raises(LoadError, match=r"the file has shape \[8, 3\]"):
        unchanged(lambda: fluid.io.load_persistables(executor(), tmp_path / "a", started, "all"))
    report = fluid.io.load_persistables(executor(), tmp_path / "a", started, "all", strict=False)
    assert set(report.loaded) == {n for n in saved if not n.startswith("fc_1.")}
    np.testing.assert_array_equal(value("fc_0.w_0"), saved["fc_0.w_0"])


def test_the_error_for_a_combined_file_of_parameters_names_the_right_call(
    tmp_path: Path, started: fluid.Program
) -> None:
    fluid.io.save_params(executor(), str(tmp_path), started, "params")
    with pytest.raises(LoadError, match="holds exactly the 5 parameters of this program: load_params"):
        unchanged(lambda: fluid.io.load_persistables(executor(), tmp_path, started, "params"))
    report = fluid.io.load_persistables(executor(), tmp_path, started, "params", init="keep")
    assert len(report.loaded) == 5  # by the names that the manifest has


def test_older_arguments_can_be_given_by_position(tmp_path: Path, started: fluid.Program) -> None:
    save(tmp_path / "a", network(), "all")
    exe = executor()
    assert fluid.io.load_vars(exe, tmp_path / "a", started, persistables(started), None, "all")
    assert fluid.io.load_persistables(exe, tmp_path / "a", started, "all")
    with pytest.raises(TypeError):
        fluid.io.load_vars(exe, tmp_path / "a", started, None, None, None, False)  # type: ignore[misc]


# While somebody else saves


def test_a_directory_that_is_replaced_during_the_load_is_loaded_again_whole(
    tmp_path: Path, started: fluid.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path / "a", network())
    new = {name: array + 1 for name, array in values(started).items()}
    from paddlelike.io.contents.directory import DirectoryContents

    read = DirectoryContents.read
    calls = []

    def replaced_meanwhile(self: Any, *args: Any, **keywords: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            with fluid.scope_guard(fluid.Scope()):
                for name, array in new.items():
                    fluid.global_scope().var(name).get_tensor().set(array)
                fluid.io.save_persistables(executor(), str(tmp_path / "a"), started)
        return read(self, *args, **keywords)

    monkeypatch.setattr(DirectoryContents, "read", replaced_meanwhile)
    assert fluid.io.load_persistables(executor(), tmp_path / "a", started)
    assert len(calls) == 2
    for name, array in values(started).items():
        np.testing.assert_array_equal(array, new[name])


def test_a_load_restores_the_garbage_collector_setting(tmp_path: Path, started: fluid.Program) -> None:
    import gc

    save(tmp_path / "a", network())
    fluid.io.load_persistables(executor(), tmp_path / "a", started)
    assert gc.isenabled()
    with pytest.raises(LoadError):
        fluid.io.load_persistables(executor(), tmp_path / "nowhere", started)
    assert gc.isenabled()


def test_an_interrupt_while_values_are_stored_is_delayed_until_the_last_one(
    tmp_path: Path, started: fluid.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = save(tmp_path / "a", network())
    adopt = fluid.LoDTensor.adopt
    calls = []

    def interrupted(self: Any, *args: Any) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        adopt(self, *args)

    monkeypatch.setattr(fluid.LoDTensor, "adopt", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fluid.io.load_persistables(executor(), tmp_path / "a", started)
    for name, array in values(started).items():
        np.testing.assert_array_equal(array, saved[name])
