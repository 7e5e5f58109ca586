"""Programs from files whose blocks lie in each other as they cannot, and other programs nobody builds."""

from __future__ import annotations

from typing import Any

import pytest

from paddlelike.core import AttrType
from paddlelike.errors import FormatError
from paddlelike.framework import Program
from paddlelike.framework.codec.schema import messages


def blocks(count: int, parents: Any = None) -> Any:
    """A program of that many blocks, each inside the one before it unless ``parents`` says otherwise."""
    program = messages().ProgramDesc()
    for number in range(count):
        block = program.blocks.add()
        block.idx = number
        block.parent_idx = number - 1 if parents is None else parents[number]
    return program


def runs(program: Any, index: int, inner: int, kind: AttrType = AttrType.BLOCK) -> None:
    """Block ``index`` gets an operator that runs block ``inner``."""
    op = program.blocks[index].ops.add(type="while")
    attr = op.attrs.add(name="sub_block", type=int(kind))
    attr.block_idx = inner
    attr.blocks_idx.append(inner)


def parsed(program: Any) -> Program:
    return Program.parse_from_string(program.SerializePartialToString())


def test_a_few_nested_levels_are_accepted():
    program = blocks(5)
    for number in range(4):
        runs(program, number, number + 1)
    assert parsed(program).num_blocks == 5


@pytest.mark.parametrize("parents", [[0], [-1, 1], [-1, 2, 0], [-1, -2]], ids=str)
def test_a_block_inside_of_a_later_block_is_refused(parents):
    with pytest.raises(FormatError, match="has parent"):
        parsed(blocks(len(parents), parents))


def test_a_block_that_names_itself_as_its_gradient_block_is_refused():
    program = blocks(3)
    program.blocks[2].forward_block_idx = 2
    with pytest.raises(FormatError, match="forward block 2"):
        parsed(program)


def test_thousands_of_levels_are_refused():
    with pytest.raises(FormatError, match="101 levels deep"):
        parsed(blocks(3000))


def test_blocks_with_too_many_paths_to_the_first_block_are_refused():
    program = blocks(60)
    for number in range(2, 60):
        program.blocks[number].forward_block_idx = number - 2
    with pytest.raises(FormatError, match=r"levels deep, on \d+ paths"):
        parsed(program)


@pytest.mark.parametrize("inner", [-1, 0, 3, 2**31 - 1])
def test_an_operator_that_runs_a_missing_block_is_refused(inner):
    program = blocks(3)
    runs(program, 1, inner)
    with pytest.raises(FormatError, match=f"'while' runs block {inner}; the program has 3 blocks"):
        parsed(program)


def test_blocks_that_run_each_other_are_refused():
    program = blocks(3, [-1, 0, 0])
    runs(program, 1, 2)
    runs(program, 2, 1)
    with pytest.raises(FormatError, match="run each other"):
        parsed(program)


def test_blocks_nested_so_that_operators_multiply_are_refused():
    program = blocks(40)
    for number in range(39):
        runs(program, number, number + 1)
        runs(program, number, number + 1)
    with pytest.raises(FormatError, match="most repeatedly"):  # a walk would have 2**39 operators
        parsed(program)


def test_a_list_of_blocks_as_value_of_a_block_attribute_is_refused():
    program = blocks(2)
    runs(program, 0, 1, AttrType.BLOCKS)
    with pytest.raises(FormatError, match="'sub_block' of operator 'while' is of type BLOCKS, "):
        parsed(program)


@pytest.mark.parametrize("name", ["op_role", "op_role_var", "op_namescope", "op_device"])
def test_attributes_of_every_operator_have_the_declared_type(name):
    program = blocks(1)
    op = program.blocks[0].ops.add(type="mul")
    op.attrs.add(name=name, type=int(AttrType.FLOATS)).floats.append(1.0)
    with pytest.raises(FormatError, match=f"{name!r} of operator 'mul' is of type FLOATS"):
        parsed(program)


@pytest.mark.parametrize("what", ["variable", "type", "slot", "argument", "attribute"])
def test_names_that_are_not_utf_8_are_refused(what):
    program = blocks(1)
    block = program.blocks[0]
    block.vars.add(name="variable").type.type = 7
    op = block.ops.add(type="type")
    op.inputs.add(parameter="slot").arguments.append("argument")
    op.attrs.add(name="attribute", type=0, i=1)
    data = program.SerializeToString().replace(what.encode(), b"\xff" * len(what), 1)
    with pytest.raises(FormatError, match="which is not UTF-8"):
        Program.parse_from_string(data)


def test_missing_required_fields_are_named():
    program = blocks(1)
    program.blocks[0].vars.add(name="x")
    with pytest.raises(FormatError, match=r"a ProgramDesc lacks the fields blocks\[0\].vars\[0\].type"):
        parsed(program)


def test_a_program_without_blocks_is_refused_but_empty_bytes_decode():
    with pytest.raises(FormatError, match="a program without blocks"):
        parsed(messages().ProgramDesc(version=messages().Version(version=1)))
    assert Program.parse_from_string(b"").num_blocks == 0  # as in Fluid


def test_pruning_keeps_thousands_of_operators_of_one_variable():
    program = blocks(1)
    program.blocks[0].vars.add(name="x").type.type = 7
    for _ in range(4000):
        op = program.blocks[0].ops.add(type="increment")
        op.inputs.add(parameter="X").arguments.append("x")
        op.outputs.add(parameter="Out").arguments.append("x")
    assert len(parsed(program)._prune(["x"]).global_block().ops) == 4000


def test_blocks_in_a_list_are_renumbered_when_others_are_removed():
    program = blocks(3, [-1, 0, 0])
    op = program.blocks[0].ops.add(type="listen_and_serv")
    op.attrs.add(name="optimize_blocks", type=int(AttrType.BLOCKS)).blocks_idx.append(2)
    clone = parsed(program).clone(for_test=True)
    assert clone.num_blocks == 2
    assert clone.global_block().ops[0].attr("optimize_blocks") == [1]
