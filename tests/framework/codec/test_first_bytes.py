"""A program of any size is read as what it is."""

from __future__ import annotations

import pytest

import paddlelike as fluid


@pytest.mark.parametrize("room", range(0, 160, 20))
def test_a_message_whose_first_bytes_look_like_json_is_a_message(room: int) -> None:
    begins = set()
    for length in range(room, room + 20):
        program = fluid.Program()
        program.global_block().create_var(name="x" * (length + 1), shape=[1], dtype="float32")
        data = program.desc.serialize_to_string()
        begins.add(data[:2])
        assert fluid.Program.parse_from_string(data).desc.serialize_to_string() == data
    if room == 80:
        assert b"\n{" in begins
