"""Docstrings are completed alike whether Python keeps their indentation or, from 3.13 on, takes it away."""

from __future__ import annotations

import inspect

import pytest

from paddlelike.foundation.docstrings import add_section, complete_docstring


def scale(x: float, factor: float) -> float:
    """Return ``x`` times a factor.

    Parameters
    ----------
    factor
        What ``x`` is multiplied by.

    Notes
    -----
    It is exact.

    >>> scale(2.0, 3.0)
    6.0
    """
    return x * factor


COMPLETE = """Return ``x`` times a factor.

Parameters
----------
x
    A number.
factor
    What ``x`` is multiplied by.

Returns
-------
float
    The product.

Notes
-----
It is exact.

>>> scale(2.0, 3.0)
6.0"""


@pytest.mark.parametrize("dedented", [False, True])
def test_docstring_sections_are_added_in_order_with_and_without_indentation(
    dedented: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        scale, "__doc__", inspect.cleandoc(scale.__doc__ or "") if dedented else scale.__doc__
    )
    for _ in range(2):  # a second time changes nothing
        complete_docstring(scale, {"x": "    A number.\n", "Returns": "float\n    The product."})
        assert inspect.getdoc(scale) == COMPLETE


def test_a_section_that_a_docstring_already_has_stays() -> None:
    assert add_section(COMPLETE, "Returns", "int\n    Another.") == COMPLETE
