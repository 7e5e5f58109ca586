"""What the table of kills and damage says of this library."""

from __future__ import annotations

import pytest

from tests.torture.__main__ import torture


@pytest.mark.slow
def test_kills_lose_no_save_and_all_damage_is_reported() -> None:
    cells = torture(["paddlelike"], 3, 0, 1)[-1].split(" | ")
    assert cells[1:4] == ["3", "0", "0"]
    assert (cells[8], cells[10], cells[12]) == ("0", "0", "0 |")
