"""Views by steps of elements."""

import re
from pathlib import Path

import numpy as np
import pytest

import paddlelike
from paddlelike.core.views import count_steps, view_bytes_at, view_strided


def test_a_view_shows_the_elements_at_its_steps() -> None:
    array = np.arange(24).reshape(2, 3, 4)
    view = view_strided(array, (2, 2, 3), (12, 8, 1))
    np.testing.assert_array_equal(view, array[:, ::2, :3])
    assert np.shares_memory(view, array)
    assert not view.flags.writeable


def test_strides_of_axes_with_one_element_are_ignored() -> None:
    array = np.moveaxis(np.arange(12.0).reshape(1, 1, 3, 4), 1, -1)  # numpy keeps a stride of 12 elements
    assert array.strides[-1] == 12 * array.itemsize
    assert array.flags.c_contiguous
    assert count_steps(array.shape) == (12, 4, 1, 1)
    assert view_strided(array, (2, 6), (4, 1)).tolist() == [[0, 1, 2, 3, 4, 5], [4, 5, 6, 7, 8, 9]]


@pytest.mark.parametrize(
    ("shape", "steps"),
    [((2, 4), (3, 1)), ((7,), (1,)), ((3,), (3,)), ((2,), (-1,)), ((2, 2, 2), (3, 2, 1))],
    ids=["last row", "one more", "wide step", "before the first", "three axes"],
)
def test_a_view_beyond_its_array_is_refused(shape: tuple[int, ...], steps: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="strides is incompatible"):
        view_strided(np.arange(6), shape, steps)


def test_a_view_of_part_of_an_array_stays_inside_that_part() -> None:
    whole = np.arange(10)
    with pytest.raises(ValueError, match="strides is incompatible"):
        view_strided(whole[:6], (7,), (1,))


def test_an_array_with_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match="not C-contiguous"):
        view_strided(np.arange(8)[::2], (2,), (1,))


def test_bytes_at_an_address_match_the_array() -> None:
    array = np.arange(5, dtype="<i4")
    assert bytes(view_bytes_at(array.ctypes.data, array.nbytes)) == array.tobytes()
    with pytest.raises(ValueError, match="are not memory of an array"):
        view_bytes_at(0, 4)


def test_no_other_module_makes_views_from_strides_or_addresses() -> None:
    package = Path(paddlelike.__file__).parent
    unguarded = re.compile(r"\bas_strided\b|\bfrom_address\b|\bstring_at\b|\.strides = ")
    found = {
        path.relative_to(package).as_posix(): name[0]
        for path in package.rglob("*.py")
        if (name := unguarded.search(path.read_text(encoding="utf-8")))
    }
    assert set(found) == {"core/views.py"}, found
