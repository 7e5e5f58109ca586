"""What the table of kills and damage says of this library."""

from __future__ import annotations

import pytest

from tests.torture.__main__ import torture


@pytest.mark.slow
def test_no_kill_loses_a_save_and_no_damage_is_silent() -> None:
    cells = torture(["paddlelike"], 3, 0, 1)[-1].split(" | ")
    assert cells[1:4] == ["3", "0", "0"]
    assert (cells[8], cells[10], cells[12]) == ("0", "0", "0 |")
