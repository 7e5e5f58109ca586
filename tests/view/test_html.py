"""What notebooks and prompts show of objects."""

from __future__ import annotations

import pickle
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.inspection import compare, diagnose, inspect, list_layers

EVIL = "x<script>alert(1)</script>\"'&"


class Page(HTMLParser):
    """The elements and texts of HTML; every element must be closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One object of each kind; their variables have names that are HTML."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x = fluid.data(EVIL, [None, 4])
        y = fluid.layers.fc(x, 3, param_attr=fluid.ParamAttr(name="w<b>"))
        fluid.optimizer.Adam(0.1).minimize(fluid.layers.mean(y))
    executor = fluid.Executor()
    left, right = str(tmp_path_factory.mktemp("left<i>")), str(tmp_path_factory.mktemp("right"))
    with fluid.scope_guard(scope):
        executor.run(startup)
        saved = fluid.io.save_persistables(executor, left, main)
        scope.find_var("w<b>").get_tensor().set(np.full((4, 3), np.nan, np.float32))
        fluid.io.save_persistables(executor, right, main)
        (Path(right) / "fc_0.b_0").unlink()
        plan = fluid.io.plan_load(right, main)
        loaded = fluid.io.load_persistables(executor, left, main)
    holder = scope.find_var("w<b>")
    rows = fluid.core.SelectedRows(range(10000), 20000)
    return {
        "Program": main,
        "LayerTable": list_layers(main),
        "Variable": x,
        "Parameter": main.all_parameters()[0],
        "LoDTensor": holder.get_tensor(),
        "SelectedRows": rows,
        "ScopeVariable": holder,
        "Scope": scope,
        "ParamAttr": fluid.ParamAttr(name=EVIL, initializer=fluid.initializer.Constant(2.0)),
        "Executor": executor,
        "SaveReport": saved,
        "LoadReport": loaded,
        "LoadPlan": plan,
        "Verification": fluid.io.verify(right),
        "Difference": compare(left, right),
        "Inspection": inspect(right),
        "Diagnosis": diagnose(right),
    }


KINDS = [
    "Program",
    "LayerTable",
    "Variable",
    "Parameter",
    "LoDTensor",
    "SelectedRows",
    "ScopeVariable",
    "Scope",
    "ParamAttr",
    "Executor",
    "SaveReport",
    "LoadReport",
    "LoadPlan",
    "Verification",
    "Difference",
    "Inspection",
    "Diagnosis",
]


@pytest.mark.parametrize("kind", KINDS)
def test_html_is_well_formed_and_harmless(shown: dict[str, Any], kind: str) -> None:
    page = Page(shown[kind]._repr_html_())
    assert page.tags <= {"div", "b", "pre", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}
    assert page.attributes <= {"style"}
    assert "".join(page.texts).strip()


@pytest.mark.parametrize("kind", KINDS)
def test_reprs_are_short_and_plain(shown: dict[str, Any], kind: str) -> None:
    text = repr(shown[kind])
    assert len(text) < 600
    assert " object at 0x" not in text


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("Program", [EVIL, "fc_0", "mul elementwise_add"]),
        ("Variable", [EVIL, "mul, mul_grad", "stops here"]),
        ("LoDTensor", ["float32 [4, 3], 48 bytes"]),
        ("ScopeVariable", ["w<b>"]),
        ("Scope", ["w<b>", "[4, 3]", "fc_0.b_0_moment1_0"]),
        ("ParamAttr", [EVIL, "ConstantInitializer(value=2.0, force_cpu=False)"]),
        ("LoadPlan", ["fc_0.b_0", "missing"]),
        ("Verification", ["missing: fc_0.b_0"]),
        ("Difference", ["w<b>", "removed", "fc_0.b_0"]),
        ("Inspection", ["w<b>", "NaN"]),
        ("Diagnosis", ["NaN"]),
    ],
)
def test_html_shows_names_shapes_and_values(shown: dict[str, Any], kind: str, texts: list[str]) -> None:
    found = "\n".join(Page(shown[kind]._repr_html_()).texts)
    assert [text for text in texts if text not in found] == []


def test_long_values_are_truncated() -> None:
    scope = fluid.Scope()
    for index in range(1000):
        scope.var(f"v{index}").get_tensor().set(np.zeros(1))
    assert repr(scope) == "Scope(v0, v1, v2, v3, v4, v5, v6, v7 and 992 more)"
    texts = Page(scope._repr_html_()).texts
    assert "and 900 more" in texts
    assert "v100" not in texts


def test_values_that_are_not_numbers_are_shown() -> None:
    scope = fluid.Scope()
    scope.var("none")
    assert "no value" in scope._repr_html_()
    assert "no value" in scope.find_var("none")._repr_html_()
    assert "empty" in fluid.core.LoDTensor()._repr_html_()
    tensor = fluid.core.LoDTensor()
    tensor.set(np.zeros((0, 3), np.float32))
    assert "[0, 3]" in tensor._repr_html_()


def test_a_program_prints_as_in_fluid_and_is_short_at_a_prompt(shown: dict[str, Any]) -> None:
    main = shown["Program"]
    assert str(main) == main.to_string(True)
    assert f"<Program: {len(main.global_block().ops)} operators, " in repr(main)
    assert repr(pickle.loads(pickle.dumps(main))) == repr(main)
