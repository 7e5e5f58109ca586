"""Rules: patterns, targets, their file, and what they make of values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import paddlelike as fluid
from paddlelike.errors import FormatError, LoadError
from paddlelike.io.rules.rule import Init, Rename, Skip, match_targets
from paddlelike.io.rules.rules import Rules
from tests.io.loading import executor, network, own, program_of, save, unchanged, value, values

F32 = "float32"


@pytest.fixture(autouse=True)
def scope() -> Iterator[fluid.Scope]:
    with fluid.scope_guard(fluid.Scope()):
        yield fluid.global_scope()


# Names


@pytest.mark.parametrize(
    ("source", "target", "name", "expected"),
    [
        pytest.param("w", "v", "w", ["v"], id="exact"),
        pytest.param("w", "v", "w1", [], id="exact-other"),
        pytest.param("enc/*", "*", "enc/fc_0.w_0", ["fc_0.w_0"], id="prefix"),
        pytest.param("*.*", "*_x_*", "a.b", ["a_x_b"], id="two"),
        pytest.param("fc_?.w", "l?", "fc_1.w", ["l1"], id="character"),
        pytest.param("fc_?.w", "l?", "fc_12.w", [], id="one-character-only"),
        pytest.param("a.b", "c", "axb", [], id="a-dot-is-a-dot"),
        pytest.param("a[0]", "c", "a[0]", ["c"], id="brackets-are-no-wildcard"),
        pytest.param(r"re:l(\d+)/(w|b)", r"fc_\1.\2_0", "l12/w", ["fc_12.w_0"], id="expression"),
        pytest.param(r"re:l(?P<n>\d+)", r"fc_\g<n>", "l7", ["fc_7"], id="named-group"),
        pytest.param(r"re:l\d", "x", "l77", [], id="the-whole-name"),
        pytest.param("w", ("a", "b"), "w", ["a", "b"], id="several-targets"),
    ],
)
def test_a_pattern_maps_names_to_target_names(
    source: str, target: Any, name: str, expected: list[str]
) -> None:
    assert match_targets(Rename(source, target), name) == expected


@given(st.text(st.characters(exclude_characters="*?"), min_size=1).filter(lambda s: not s.startswith("re:")))
def test_a_name_without_wildcards_matches_itself_only(name: str) -> None:
    assert match_targets(Rename(name, "x"), name) == ["x"]
    assert match_targets(Rename(name, "x"), name + "!") == []


def test_names_given_to_rename_are_not_patterns() -> None:
    (rule,) = Rules.of(rename={"a*": "b"})
    assert match_targets(rule, "a*") == ["b"]
    assert match_targets(rule, "ax") == []


@pytest.mark.parametrize(
    ("make", "words"),
    [
        pytest.param(
            lambda: Rename("re:(", "x"), "not a regular expression, or may never end", id="expression"
        ),
        pytest.param(lambda: Rename(("a", "b"), "x"), "concat=0", id="two-sources"),
        pytest.param(lambda: Rename(("a", "b"), "x", concat=0, rows=(0, 1)), "of the two", id="rows-of-two"),
        pytest.param(lambda: Init("x", "random"), "'keep', 'zero' or a number", id="init"),
        pytest.param(lambda: Init("x", True), "'keep', 'zero' or a number", id="init-bool"),
    ],
)
def test_invalid_rules_are_refused_when_they_are_made(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


# Their file

ALL = (
    Rules()
    .rename("enc/*", "*", transpose=True)
    .rename(["q.*", "k.*"], "qk.*", concat=1)
    .rename("qkv", ["q", "k", "v"], split=0, cast=True)
    .rename("emb", "table", overlap=True)
    .rename("big", "part", rows=(10, 20))
    .skip("re:.*_moment_\\d")
    .init("fc_2.*", "zero")
    .init("*", 0.5)
)


def test_rules_are_saved_as_readable_text_and_come_back(tmp_path: Path) -> None:
    ALL.save(tmp_path / "rules.json")
    assert Rules.load(tmp_path / "rules.json") == ALL
    text = (tmp_path / "rules.json").read_text()
    assert text.splitlines()[1] == '  {"from": "enc/*", "to": "*", "transpose": true},'
    assert [p.name for p in tmp_path.iterdir()] == ["rules.json"]
    Rules().save(tmp_path / "rules.json")
    assert Rules.load(tmp_path / "rules.json") == Rules()


def test_rules_print_one_per_line() -> None:
    assert str(ALL).splitlines()[:2] == ["enc/* -> * (transpose)", "q.*, k.* -> qk.* (concat=1)"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"paddlelike rules": 2, "rules": []}',
        '{"paddlelike rules": 1, "rules": {}}',
        '{"paddlelike rules": 1, "rules": [], "more": 1}',
        *(
            f'{{"paddlelike rules": 1, "rules": [{rule}]}}'
            for rule in (
                "1",
                "{}",
                '{"from": "a"}',
                '{"from": "a", "to": 1}',
                '{"from": "a", "to": []}',
                '{"from": "a", "to": {"b": 1}}',
                '{"from": [], "to": "a"}',
                '{"from": "re:(", "to": "a"}',
                '{"from": "a", "to": "b", "execute": "rm"}',
                '{"from": "a", "to": "b", "transpose": 1}',
                '{"from": "a", "to": "b", "rows": [1]}',
                '{"from": "a", "to": "b", "rows": ["x", 2]}',
                '{"from": "a", "to": "b", "split": true}',
                '{"skip": 1}',
                '{"init": "a", "value": "random"}',
                '{"init": "a", "value": null}',
            )
        ),
    ],
)
def test_a_file_that_holds_no_rules_is_a_format_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "rules.json").write_text(text)
    with pytest.raises(FormatError, match=r"rules\.json: (these are not rules|rule 1 )"):
        Rules.load(tmp_path / "rules.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
KEYS = st.sampled_from(
    ["from", "to", "skip", "init", "value", "transpose", "rows", "concat", "split", "overlap", "cast"]
)


@settings(max_examples=40)
@given(st.lists(st.dictionaries(KEYS, JSON, max_size=4), max_size=3))
def test_any_file_decodes_to_rules_or_raises_format_error(rules: list[dict[str, Any]]) -> None:
    try:
        read = Rules.decode(json.dumps({"paddlelike rules": 1, "rules": rules}))
    except FormatError:
        return
    assert len(read) == len(rules)


# What they make of values


def loaded(tmp_path: Path, program: fluid.Program, rules: Rules, **keywords: Any) -> fluid.io.LoadReport:
    return fluid.io.load_persistables(executor(), tmp_path, program, rules=rules, **keywords)


def test_transposed_matrices_are_joined_in_file_order(tmp_path: Path) -> None:
    q, k = (np.random.default_rng(i).random((2, 3), F32) for i in (0, 1))
    own(tmp_path, "q.weight", q)
    own(tmp_path, "k.weight", k)
    program = program_of(qk=([3, 4], F32))
    report = loaded(tmp_path, program, Rules().rename(["q.*", "k.*"], "qk", concat=1, transpose=True))
    assert report.renamed == {"qk": "q.weight + k.weight"}
    np.testing.assert_array_equal(value("qk"), np.concatenate([q.T, k.T], 1))


def test_a_split_value_is_divided_by_the_sizes_of_its_variables(tmp_path: Path) -> None:
    whole = np.arange(18, dtype=F32).reshape(6, 3)
    own(tmp_path, "qkv", whole)
    program = program_of(q=([1, 3], F32), k=([2, 3], F32), v=([3, 3], F32))
    assert loaded(tmp_path, program, Rules().rename("qkv", ["q", "k", "v"], split=0))
    for name, part in (("q", whole[:1]), ("k", whole[1:3]), ("v", whole[3:])):
        np.testing.assert_array_equal(value(name), part)


def test_rules_reorder_gates_and_drop_an_axis_of_a_bias(tmp_path: Path) -> None:
    weight, bias = np.arange(16, dtype=F32).reshape(2, 8), np.arange(8, dtype=F32)[None]
    own(tmp_path, "w", weight)
    own(tmp_path, "b", bias)
    rules = (
        Rules().rename("w", "weight", order=(1, 2, 0, 3), transpose=True).rename("b", "bias", order=(1, 0))
    )
    assert Rules.load(rules.save(tmp_path / "rules.json") or tmp_path / "rules.json") == rules
    program = program_of(weight=([8, 2], F32), bias=([8], F32))
    assert loaded(tmp_path, program, rules)
    np.testing.assert_array_equal(value("weight"), weight[:, [2, 3, 4, 5, 0, 1, 6, 7]].T)
    np.testing.assert_array_equal(value("bias"), [4, 5, 6, 7, 0, 1, 2, 3])
    with pytest.raises(LoadError, match=r"has shape \[1, 8\], whose last axis is not divisible by 3"):
        loaded(tmp_path, program_of(bias=([8], F32)), Rules().skip("w").rename("b", "bias", order=(1, 0, 2)))


def test_a_split_that_does_not_use_up_the_file_is_refused(tmp_path: Path) -> None:
    own(tmp_path, "qk", np.zeros((6, 3), F32))
    program = program_of(q=([1, 3], F32), k=([2, 3], F32))
    with pytest.raises(LoadError, match="6 along axis 0, the variables take 3"):
        loaded(tmp_path, program, Rules().rename("qk", ["q", "k"], split=0))


def test_two_variables_loaded_from_one_value_share_no_memory(tmp_path: Path) -> None:
    own(tmp_path, "w", np.ones(3, F32))
    program = program_of(a=([3], F32), b=([3], F32))
    fluid.io.load_persistables(executor(), tmp_path, program, rename={"w": ["a", "b"]})
    a, b = (fluid.global_scope().find_var(n).get_tensor().array for n in "ab")
    assert not np.shares_memory(a, b)
    np.testing.assert_array_equal(a, b)


def test_elements_are_converted_only_on_request(tmp_path: Path) -> None:
    own(tmp_path, "w", np.arange(3, dtype="float64"))
    program = program_of(w=([3], F32))
    with pytest.raises(LoadError, match=r"the file holds FP64\[3\], the program wants FP32\[3\]"):
        loaded(tmp_path, program, Rules())
    assert loaded(tmp_path, program, Rules().rename("w", "w", cast=True))
    assert value("w").dtype == F32
    np.testing.assert_array_equal(value("w"), [0, 1, 2])


def test_a_range_of_rows_is_read_without_the_rest(tmp_path: Path) -> None:
    table = np.arange(40_000, dtype=F32).reshape(10_000, 4)
    own(tmp_path, "w", table)
    program = program_of(w=([10, 4], F32))
    report = loaded(tmp_path, program, Rules().rename("w", "w", rows=(500, 510)))
    assert report.nbytes == 160
    np.testing.assert_array_equal(value("w"), table[500:510])
    with pytest.raises(LoadError, match="rows 9995 to 10005 were requested, but the file has shape"):
        loaded(tmp_path, program, Rules().rename("w", "w", rows=(9995, 10005)))


@pytest.mark.parametrize("grown", [True, False], ids=["grown", "shrunk"])
def test_a_table_of_another_size_keeps_the_overlapping_rows(tmp_path: Path, grown: bool) -> None:
    old = save(tmp_path / "a", network(words=6))["embedding_0.w_0"]
    main, startup = network(words=9 if grown else 4)
    executor().run(startup)
    first = value("embedding_0.w_0")
    rules = Rules().rename("embedding_0.w_0*", "embedding_0.w_0*", overlap=True)
    assert loaded(tmp_path / "a", main, rules)
    new = value("embedding_0.w_0")
    both = min(len(old), len(new))
    np.testing.assert_array_equal(new[:both], old[:both])
    np.testing.assert_array_equal(new[both:], first[both:])


def test_loading_an_overlap_requires_an_existing_value_or_init(tmp_path: Path) -> None:
    own(tmp_path, "w", np.ones((2, 2), F32))
    program = program_of(w=([3, 2], F32))
    rules = Rules().rename("w", "w", overlap=True)
    with pytest.raises(LoadError, match="pass init=, or load its value"):
        loaded(tmp_path, program, rules)
    assert loaded(tmp_path, program, rules, init="zero")
    np.testing.assert_array_equal(value("w"), [[1, 1], [1, 1], [0, 0]])


@pytest.mark.parametrize("form", ["directory", "combined", "names"])
def test_a_warm_start_skips_the_last_layer_when_it_differs(tmp_path: Path, form: str) -> None:
    """The new layer starts as its startup program says, the others go on where they were."""
    filename = None if form == "directory" else "all"
    saved = save(tmp_path / "ten", network(classes=10), filename)
    main, startup = network(classes=3)
    executor().run(startup)
    first = values(main)
    keywords: dict[str, Any] = {"skip": "fc_1.*"}
    if form == "names":  # no manifest has them
        (tmp_path / "ten" / "__manifest__").unlink()
        keywords["names"] = network(classes=10)[0]
    Rules().skip("fc_1.*").save(tmp_path / "rules.json")
    report = fluid.io.load_persistables(executor(), tmp_path / "ten", main, filename, **keywords)
    assert report
    assert set(report.skipped) == {n for n in saved if n.startswith("fc_1.")}
    for name, array in values(main).items():
        np.testing.assert_array_equal(array, first[name] if name.startswith("fc_1.") else saved[name])
    executor().run(main, feed={"ids": np.zeros((2, 1), "int64")})
    if form == "directory":
        again = loaded(tmp_path / "ten", main, Rules.load(tmp_path / "rules.json"))
        assert again.skipped == report.skipped


def test_the_first_rule_that_matches_decides(tmp_path: Path) -> None:
    own(tmp_path, "x.w", np.ones(2, F32))
    own(tmp_path, "y.w", np.full(2, 2, F32))
    program = program_of(w=([2], F32))
    assert loaded(tmp_path, program, Rules().skip("y.*").rename("*.w", "w"))
    np.testing.assert_array_equal(value("w"), [1, 1])
    with pytest.raises(LoadError, match="two rules set it"):
        loaded(tmp_path, program, Rules().rename("*.w", "w"))


def test_a_rule_with_the_full_name_of_a_missing_file_is_an_error_even_if_not_strict(tmp_path: Path) -> None:
    own(tmp_path, "w", np.ones(2, F32))
    program = program_of(w=([2], F32), v=([2], F32))
    for rename in ({"weight": "v"}, {"w": "vv"}):
        with pytest.raises(LoadError, match=r"weight|vv"):
            unchanged(
                lambda rename=rename: fluid.io.load_persistables(
                    executor(), tmp_path, program, rename=rename, strict=False
                )
            )


def test_init_sets_variables_that_no_file_holds(tmp_path: Path) -> None:
    own(tmp_path, "w", np.ones(2, F32))
    program = program_of(w=([2], F32), kept=([2], F32), zero=([2, 3], F32), half=([4], F32))
    fluid.global_scope().var("kept").get_tensor().set(np.full(2, 7, F32))
    rules = Rules().init("kept", "keep").init("zero", "zero").init("*", 0.5)
    fluid.io.load_persistables(executor(), tmp_path, program, rules=rules)
    assert {name: value(name).tolist() for name in ("w", "kept", "zero", "half")} == {
        "w": [1, 1], "kept": [7, 7], "zero": [[0] * 3] * 2, "half": [0.5] * 4
    }  # fmt: skip


def test_a_renamed_file_value_is_used_once(tmp_path: Path) -> None:
    own(tmp_path, "a", np.ones(2, F32))
    program = program_of(a=([2], F32), b=([2], F32))
    with pytest.raises(LoadError, match="a rule gives the file of that name to b"):
        fluid.io.load_persistables(executor(), tmp_path, program, rename={"a": "b"})


def test_selected_rows_are_not_transformed(tmp_path: Path) -> None:
    program = fluid.Program()
    program.global_block().create_var(
        name="t", type=fluid.core.VarDesc.VarType.SELECTED_ROWS, shape=[9, 2], dtype=F32, persistable=True
    )
    rows = fluid.global_scope().var("t").get_selected_rows()
    rows.set_rows([1])
    rows.set_height(9)
    rows.get_tensor().set(np.ones((1, 2), F32))
    fluid.io.save_persistables(executor(), str(tmp_path / "a"), program)
    with pytest.raises(LoadError, match="SelectedRows are loaded as they are"):
        loaded(tmp_path / "a", program, Rules().rename("t", "t", transpose=True))


def test_the_same_rules_fit_a_dict_for_set_program_state(tmp_path: Path) -> None:
    main, startup = network()
    executor().run(startup)
    fluid.save(main, str(tmp_path / "m"))
    state = {f"model.{name}": array for name, array in fluid.load_program_state(str(tmp_path / "m")).items()}
    rules = Rules().rename("model.*", "*").skip("fc_1.*")
    other, startup = network(classes=3)
    with fluid.scope_guard(fluid.Scope()):
        executor().run(startup)
        with pytest.raises(LoadError):
            fluid.io.fit_state(state, other, rules=Rules().rename("model.*", "*"), strict=True)
        fitting = fluid.io.fit_state(state, other, rules=Rules().rename("model.*", "*"))
        assert "fc_1.w_0" not in fitting
        fluid.set_program_state(other, fluid.io.fit_state(state, other, rules=rules))
        np.testing.assert_array_equal(value("fc_0.w_0"), state["model.fc_0.w_0"])


def test_rules_compare_add_and_hash_as_values() -> None:
    assert Rules([Skip("a")]) + Rules([Init("b")]) == Rules().skip("a").init("b")
    assert {Rules().skip("a"): 1}[Rules().skip("a")] == 1
    with pytest.raises(TypeError, match="a rule is"):
        Rules(["a"])  # type: ignore[list-item]
