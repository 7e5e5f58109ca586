"""Programs as text: protobuf's, with details on request."""

from __future__ import annotations

import pytest

import paddlelike as fluid
from tests.helpers.canonical import canonical

L = fluid.layers


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


def test_details_tell_what_only_python_knows(main: fluid.Program) -> None:
    weight = main.global_block().var("fc_0.w_0")
    assert weight.to_string(True, True).splitlines()[-6:] == [
        "error_clip: None", "stop_gradient: False", "trainable: True",
        "optimize_attr: {'learning_rate': 1.0}", "regularizer: None", "do_model_average: True",
    ]  # fmt: skip
    assert "error_clip" not in str(weight)
    assert str(main) == main.to_string(True)
