"""Patterns: the same answers as Python's ``re``, without its endless searches."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
from hypothesis import given, strategies as st

from paddlelike.errors import FormatError
from paddlelike.io.rules.patterns import LONGEST, Pattern
from paddlelike.io.rules.rule import Rename, match_targets
from paddlelike.io.rules.rules import Rules

ATOMS = st.sampled_from(
    ["a", "b", "_", ".", r"\d", r"\w", r"\.", "[ab]", "[^a]", "[]a]", r"[\d_]", "1", r"\x61"]
)
QUANTIFIERS = st.sampled_from(
    ["", "", "", "*", "+", "?", "{2}", "{1,3}", "{,2}", "{1,}", "*?", "+?", "??", "{1,2}?"]
)


def _more(inner: Any) -> Any:
    group = st.tuples(st.sampled_from(["(", "(?:"]), inner, st.just(")"), QUANTIFIERS).map("".join)
    return st.one_of(
        group,
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join),
    )


EXPRESSIONS = st.recursive(st.tuples(ATOMS, QUANTIFIERS).map("".join), _more, max_leaves=8)
NAMES = st.text("ab_.1", max_size=8)


@given(EXPRESSIONS, NAMES)
def test_patterns_match_as_in_re(text: str, name: str) -> None:
    found = Pattern(text).match(name)
    expected = re.compile(text, re.DOTALL).fullmatch(name)
    assert (found is None) == (expected is None)
    assert found is None or len(found.groups()) == len(expected.groups())


PARTS = st.lists(st.tuples(ATOMS, QUANTIFIERS), max_size=5)


@given(PARTS, st.data())
def test_groups_match_as_in_re(parts: list[tuple[str, str]], data: Any) -> None:
    text = "_?".join(f"({atom}{quantifier})" for atom, quantifier in parts)
    name = data.draw(st.from_regex(re.compile(text, re.ASCII), fullmatch=True, alphabet="ab_.1"))
    expected = re.compile(text, re.DOTALL).fullmatch(name)
    found = Pattern(text).match(name)
    assert expected is not None
    assert found is not None
    assert found.groups() == expected.groups()


@given(st.text(max_size=12), NAMES)
def test_an_invalid_expression_raises_value_error(text: str, name: str) -> None:
    try:
        found = Pattern(text).match(name)
    except (ValueError, FutureWarning):  # the warning is of re: a set that may mean another thing one day
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert (found is None) == (re.compile(text, re.DOTALL).fullmatch(name) is None)


@pytest.mark.parametrize(
    ("text", "name", "groups"),
    [
        (r"^(a+?)(a*)$", "aaa", ("a", "aa")),
        (r"(a|ab)(c|bcd)(d*)", "abcd", ("a", "bcd", "")),
        (r"(a)|(b)", "b", ("", "b")),
        (r"(\w+)\b-\b(\w+)", "x-y", ("x", "y")),
        (r"\A(\w\B\w)\Z", "xy", ("xy",)),
        (r"(a{2})(a{,2})(a{1,})", "aaaaaa", ("aa", "aa", "aa")),
        ("a{x}", "a{x}", ()),
        ("(?:|a)(b)", "ab", ("b",)),
        ("(.*)", "a\nb", ("a\nb",)),
    ],
)
def test_the_supported_syntax_of_expressions_matches_as_re_does(
    text: str, name: str, groups: tuple[str, ...]
) -> None:
    found = Pattern(text).match(name)
    assert found is not None
    assert found.groups() == groups


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(", r"missing \)"), (")", "unbalanced"), ("[a", "unterminated"), ("*a", "nothing to repeat"),
        ("^*", "nothing to repeat"), ("a**", "multiple repeat"), ("a{3,2}", "min repeat"),
        ("[b-a]", "bad character range"), ("\\", "is not one of"), (r"(a)\1", r"\\1 is not one of"),
        ("(?=a)", "a group begins with"), ("(?i)a", "a group begins with"), ("(?P<n>a)(?P<n>b)", "two gr"),
        ("a{5000}", "more than 1000 steps"), ("((a{30}){30}){30}", "more than 1000 steps"),
        ("a{99999999999999999999}", "more than 1000 steps"), ("(" * 5000, "nested groups"),
        ("|" * 60000, "more than 1000 steps"), (".a" * 30000, "more than 1000 steps"),
    ],
)  # fmt: skip
def test_unsupported_syntax_of_expressions_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Pattern(text)


@pytest.mark.parametrize(
    "text", ["(a|a)*b", "(a*)*b", "(a+)+$b", "(.*)*x", "a*" * 300 + "b", "(?:a?){100}a{100}b", "((a*)*|b)*c"]
)
def test_expressions_that_re_never_finishes_end_quickly(text: str) -> None:
    assert Pattern(text).match("a" * 200) is None


def test_long_names_without_wildcards_match_themselves() -> None:
    assert match_targets(Rename("a.b/" * 1000, "x"), "a.b/" * 1000) == ["x"]


def test_patterns_with_many_wildcards_end_quickly() -> None:
    assert match_targets(Rename("*a" * 60 + "*b", "x"), "a" * 200) == []
    assert match_targets(Rename("*", "x"), "a" * LONGEST) == ["x"]
    assert match_targets(Rename("*", "x"), "a" * (LONGEST + 1)) == []


@pytest.mark.parametrize("target", [r"\2", r"\g<m>", r"\g<2>", r"\n", "\\"])
def test_a_target_that_names_a_missing_group_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match=r"refers to|backslash"):
        Rename(r"re:(?P<n>\d)", target)
    assert match_targets(Rename("?", target), "5") == [target]


def test_groups_are_inserted_into_targets() -> None:
    assert match_targets(Rename(r"re:(?P<n>\d)(x)?", r"\g<n>/\1/\2/\\"), "5") == ["5/5//\\"]


def test_a_file_with_an_endless_expression_is_refused_or_ends() -> None:
    (rule,) = Rules.decode('{"paddlelike rules": 1, "rules": [{"from": "re:(a|aa)+$", "to": "b"}]}')
    assert match_targets(rule, "a" * 500 + "!") == []
    with pytest.raises(FormatError, match=r"rule 1 .* may never end: .*a group begins with"):
        Rules.decode('{"paddlelike rules": 1, "rules": [{"skip": "re:(?=(a+)+$)"}]}')
