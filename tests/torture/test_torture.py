"""What the table of kills and damage says of this library."""

from __future__ import annotations

import pytest

from tests.torture.__main__ import torture


@pytest.mark.slow
def test_kills_lose_no_save_and_all_damage_is_reported() -> None:
    cells = torture(["paddlelike"], 3, 0, 1)[-1].split(" | ")
    assert cells[1:3] == ["3 / 0 / 0"] * 2
    assert cells[3] in ("", "3 / 0 / 0")  # only root fills a file system of its own
    assert [cell.split(" / ")[1] for cell in cells[5:]] == ["0", "0", "0 |"]
