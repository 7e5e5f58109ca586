"""Programs as bytes and as text."""

from __future__ import annotations

import pytest

import paddlelike as fluid
from paddlelike.core import AttrType
from paddlelike.errors import EnforceNotMet, GraphError
from paddlelike.framework.codec.schema import messages
from paddlelike.io.calls import fingerprint
from tests.helpers.canonical import canonical


@pytest.mark.parametrize("data", [b"\xffgarbage", b"\x0a\xff"], ids=["garbage", "cut"])
def test_bytes_that_are_not_a_program_are_refused(data: bytes) -> None:
    with pytest.raises(EnforceNotMet):
        fluid.Program.parse_from_string(data)


L = fluid.layers


def test_bytes_decode_to_the_same_program(main: fluid.Program) -> None:
    data = main.desc.serialize_to_string()
    back = fluid.Program.parse_from_string(data)
    assert canonical(back) == canonical(main)
    assert back.desc.serialize_to_string() == data
    assert back.all_parameters() == []
    # text has variables by creation, which bytes do not tell
    assert sorted(str(back).splitlines()) == sorted(str(main).splitlines())


def test_equal_programs_have_equal_bytes(main: fluid.Program) -> None:
    assert main.clone().desc.serialize_to_string() == main.clone().desc.serialize_to_string()
    assert canonical(main.clone()) == canonical(main)  # its variables are in another order, as in Fluid


def test_an_attribute_that_is_not_valid_utf8_raises_a_package_error() -> None:
    program = fluid.Program()
    for path in ("a", "a\udcff"):
        out = program.global_block().create_var(name=f"out {len(path)}", shape=[2], dtype="float32")
        program.global_block().append_op("load", outputs={"Out": out}, attrs={"file_path": path})
    for encode in (lambda: str(program), program.desc.serialize_to_string):
        with pytest.raises(GraphError, match=r"a.udcff' cannot be in a ProgramDesc"):
            encode()
    assert fingerprint(program) is None


def test_nan_and_empty_attributes_are_kept_as_read(main: fluid.Program) -> None:
    """Its operator is written as it was read: attributes in their order, fields that nobody knows."""
    program = messages().ProgramDesc.FromString(main.desc.serialize_to_string())
    for name, value in (("a", [float("nan"), 1.0]), ("b", [])):
        program.blocks[0].ops[0].attrs.add(name=name, type=AttrType.FLOAT64S, float64s=value, i=7)
    data = program.SerializeToString(deterministic=True)
    back = fluid.Program.parse_from_string(data)
    assert back.desc.serialize_to_string() == data
    back.global_block().ops[0].attrs["b"] = [2.0]  # the operator changes, not this attribute
    attrs = messages().ProgramDesc.FromString(back.desc.serialize_to_string()).blocks[0].ops[0].attrs
    assert {attr.name: attr.i for attr in attrs if attr.name in "ab"} == {"a": 7, "b": 0}


@pytest.mark.parametrize("details", [False, True])
def test_the_text_is_a_program_desc(main: fluid.Program, details: bool) -> None:
    from google.protobuf import text_format

    from paddlelike.framework.codec.schema import messages

    text = main.to_string(True, with_details=details)
    if details:
        names = (
            "error_clip",
            "stop_gradient",
            "trainable",
            "optimize_attr",
            "regularizer",
            "do_model_average",
        )
        text = "".join(line for line in text.splitlines(keepends=True) if not line.strip().startswith(names))
    parsed = text_format.Parse(text, messages().ProgramDesc())
    if details:
        parsed.version.version = 1008005  # which Fluid does not print here
    else:
        assert parsed.SerializeToString() == main.desc.serialize_to_string()
    assert canonical(parsed.SerializeToString()) == canonical(main)


def test_details_include_attributes_that_exist_only_in_python(main: fluid.Program) -> None:
    weight = main.global_block().var("fc_0.w_0")
    assert weight.to_string(True, True).splitlines()[-6:] == [
        "error_clip: None", "stop_gradient: False", "trainable: True",
        "optimize_attr: {'learning_rate': 1.0}", "regularizer: None", "do_model_average: True",
    ]  # fmt: skip
    assert "error_clip" not in str(weight)
    assert str(main) == main.to_string(True)
