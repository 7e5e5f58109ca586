"""The messages of programs: golden bytes, the real system's files, fields nobody knows, damage."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, strategies as st

from paddlelike.core import AttrType, VarType
from paddlelike.errors import FormatError
from paddlelike.framework.codec.schema import messages, parse
from tests.helpers.golden_data import GOLDEN

REAL = sorted(
    path
    for pattern in ("*/programs/*.pb", "*/inference/__model__", "*/inference_combined/model")
    for path in GOLDEN.glob(pattern)
) + sorted(GOLDEN.glob("**/*.pdmodel"))

PROGRAM = bytes.fromhex(
    "0a 51"  # blocks
    "08 00  10 ffffffffffffffffff01"  # idx 0, parent_idx -1
    "1a 1a"  # vars
    "0a 01 78"  # name x
    "12 13  08 07  1a 0f  0a 0d  08 05  10 ffffffffffffffffff01"  # LOD_TENSOR of FP32 [-1]
    "18 01"  # persistable
    "22 26"  # ops
    "0a 06  0a 01 58  12 01 78"  # X = [x]
    "12 05  0a 03 4f7574"  # Out = []
    "1a 05 7363616c65"  # scale
    "22 0e  0a 05 7363616c65  10 01  25 0000003f"  # FLOAT scale = 0.5
    "22 04  08 85c33d"  # version 1008005
)


def test_a_small_program_has_the_bytes_of_paddle():
    m = messages()
    program = m.ProgramDesc()
    block = program.blocks.add(idx=0, parent_idx=-1)
    var = block.vars.add(name="x", persistable=True)
    var.type.type = VarType.LOD_TENSOR
    var.type.lod_tensor.tensor.data_type = VarType.FP32
    var.type.lod_tensor.tensor.dims.append(-1)
    op = block.ops.add(type="scale")
    op.inputs.add(parameter="X", arguments=["x"])
    op.outputs.add(parameter="Out")
    op.attrs.add(name="scale", type=AttrType.FLOAT, f=0.5)
    program.version.version = 1008005
    data = program.SerializeToString()
    assert data == PROGRAM
    assert parse(m.ProgramDesc, data) == program


@pytest.mark.parametrize("path", REAL, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_a_real_program_is_read_and_written_back(path):
    data = path.read_bytes()
    program = parse(messages().ProgramDesc, data)
    assert program.SerializeToString() == data
    program.DiscardUnknownFields()  # there are none
    assert program.SerializeToString() == data


@pytest.mark.parametrize("version", ["1.8.5", "2.6.2"])
def test_every_field_number_matches_paddle(version):
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto()
    messages().ProgramDesc.DESCRIPTOR.file.CopyToProto(file)
    ours = dict(described(file, ""))
    theirs = json.loads((GOLDEN / "messages.json").read_text())[version]
    for name, fields in theirs.items():
        assert {key: ours[name].get(key) for key in fields} == fields, name


def described(parent, prefix):
    """Every message and enumeration in the form of the golden table."""
    types = ["double", "float", "int64", "", "int32", "", "", "bool", "string"]
    for enum in parent.enum_type:
        yield prefix + enum.name, {value.name: value.number for value in enum.value}
    for message in parent.nested_type if prefix else parent.message_type:
        yield (
            prefix + message.name,
            {
                field.name: [
                    field.number,
                    [None, "optional", "required", "repeated"][field.label],
                    field.type_name.rpartition(".proto.")[2] or types[field.type - 1],
                    *([field.default_value] if field.HasField("default_value") else []),
                ]
                for field in message.field
            },
        )
        yield from described(message, f"{prefix}{message.name}.")


def test_unknown_fields_are_preserved():
    var = messages().VarDesc(name="x")
    var.type.type = VarType.RAW
    data = var.SerializeToString() + bytes.fromhex("f207 03 616263")  # field 126
    assert parse(messages().VarDesc, data).SerializeToString() == data


def test_attributes_of_paddle_2_are_read_back():
    m = messages()
    attr = m.OpDesc.Attr(name="value", type=AttrType.SCALARS)
    attr.scalars.add(type=m.Scalar.FLOAT64, r=0.5)
    attr.scalars.add(type=m.Scalar.COMPLEX128, c=m.Complex(r=1, i=-1))
    attr.float64s.extend([0.25])
    again = parse(m.OpDesc.Attr, attr.SerializeToString())
    assert (again.scalars[1].c.i, again.float64s[0]) == (-1, 0.25)
    assert again.SerializeToString().hex().startswith("0a0576616c7565101181 01".replace(" ", ""))


def test_enumerations_match_the_dtype_table():
    m = messages()
    assert dict(m.VarType.Type.items()) == {kind.name: kind for kind in VarType}
    assert {value.name: value.number for value in m.OpDesc.Attr.DESCRIPTOR.fields_by_name[
        "type"].enum_type.values} == {kind.name: kind for kind in AttrType}  # fmt: skip


def test_messages_have_the_defaults_of_paddle():
    m = messages()
    assert m.BlockDesc().forward_block_idx == -1
    assert m.VarDesc().persistable is False
    assert m.ProgramDesc().version.version == 0


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("ProgramDesc", "0a 02 08 00", "a ProgramDesc lacks the fields blocks.0..parent_idx"),
        ("ProgramDesc", "80 02 7d 71 00", "5 bytes are not a valid ProgramDesc"),
        ("VarDesc", "0a 01 78 12 02 08 63", "a VarDesc lacks the fields type.type"),
        ("OpDesc", "1a 05 73", "3 bytes are not a valid OpDesc"),
    ],
)
def test_bytes_that_are_not_a_program_are_a_format_error(name, data, message):
    with pytest.raises(FormatError, match=message):
        parse(getattr(messages(), name), bytes.fromhex(data))


@given(st.binary(max_size=60), st.integers(0, len(PROGRAM)))
def test_damaged_bytes_parse_as_another_program_or_raise_format_error(patch, at):
    data = PROGRAM[:at] + patch + PROGRAM[at + len(patch) :]
    for damaged in (data, PROGRAM[:at], patch):
        with contextlib.suppress(FormatError):
            parse(messages().ProgramDesc, damaged)
