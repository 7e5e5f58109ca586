"""Programs as bytes and back.

What real Fluid builds for the same calls is compared in tests/alike.
"""

from __future__ import annotations

import paddlelike as fluid
from tests.helpers.canonical import canonical

L = fluid.layers


def test_bytes_come_back_as_the_same_program(main: fluid.Program) -> None:
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
