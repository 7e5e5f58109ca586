"""Bytes that are not a program are refused."""

from __future__ import annotations

import pytest

import paddlelike as fluid
from paddlelike.errors import EnforceNotMet


@pytest.mark.parametrize("data", [b"\xffgarbage", b"\x0a\xff"], ids=["garbage", "cut"])
def test_bytes_that_are_no_program_are_refused(data: bytes) -> None:
    with pytest.raises(EnforceNotMet):
        fluid.Program.parse_from_string(data)
