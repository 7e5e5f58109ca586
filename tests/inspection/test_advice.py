"""The calls that `diagnose` names open the files, here and in real Paddle 1.8.5, 2.6.2 and 3.3.1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.inspection import advice
from tests.interop.real import FLUID185, PADDLE262, PADDLE331

VERSIONS = {"1.8.5": "1.8", "2.6.2": "2.x", "3.3.1": "3.x"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a file of each kind, as the current one."""
    folder = tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        advice.make_files(folder)
        yield folder


@pytest.mark.filterwarnings("ignore:.*holds values that no variable can hold:UserWarning")
@pytest.mark.parametrize("path", advice.CASES)
def test_each_suggested_call_opens_the_file_and_all_systems_find_the_same_values(
    files: Path, path: str
) -> None:
    recorded, calls = advice.read_recorded(), advice.list_calls(path)
    ours = [advice.follow_here(path, call, case) for who, call, case in calls if who == "paddlelike"]
    assert ours
    assert all(found and "error" not in found for found in ours)
    values = _sort(ours[0])
    for each in ours[1:]:
        assert _sort(each) == values
    for who, call, _ in calls:
        for version, label in VERSIONS.items():
            if label in who:
                theirs = _sort(recorded[version][call])
                assert theirs
                for shape, total in theirs:
                    assert any(
                        shape == one and total == pytest.approx(other, rel=1e-4, abs=1e-6)
                        for one, other in values
                    ), (version, call)


def _sort(found: dict[str, Any]) -> list[Any]:
    """Return shapes and sums; Fluid 1.8 has one element where later versions have a number."""
    assert "error" not in found, found
    return sorted((shape or [1], total) for shape, total in found.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "_", [pytest.param("", marks=[*FLUID185.needed, *PADDLE262.needed, *PADDLE331.needed])]
)
def test_real_systems_open_the_files_with_the_suggested_calls(files: Path, tmp_path: Path, _: str) -> None:
    advice.compact("saved/chain")
    found, recorded = advice.follow_there(tmp_path), advice.read_recorded()
    assert found.keys() == recorded.keys()
    for version in found:
        assert found[version] == recorded[version], version
