"""Programs in Graphviz's language."""

from __future__ import annotations

import re

import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError
from paddlelike.inspection.drawing import format_dot


def make_program(name: str) -> fluid.Program:
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data(name, [None, 4]), 3))
        fluid.optimizer.SGD(0.1).minimize(loss)
    return main


def test_edges_are_those_of_the_operators() -> None:
    main = make_program("x")
    text = format_dot(main)
    wanted = sum(
        len(set(op.input_arg_names)) + len(set(op.output_arg_names)) for op in main.global_block().ops
    )
    assert text.count(" -> ") == wanted
    assert text.count("shape=box") == len(main.global_block().ops)


def test_names_cannot_leave_their_quotes() -> None:
    text = format_dot(make_program('x"]; evil [label="\x1b'))
    labels = re.findall(r'label=("(?:[^"\\]|\\.)*")', text)
    assert any("evil" in label for label in labels)
    assert not re.search(r"^\s*evil", text, re.MULTILINE)
    assert "\x1b" not in text


def test_an_unknown_block_is_refused() -> None:
    with pytest.raises(GraphError, match="there is no block 3"):
        format_dot(make_program("x"), 3)
