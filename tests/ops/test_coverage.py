"""Every operator of Paddle 1.8.5 is here, or is left out for a reason.

The pytest summary says how many there are (`operators: N of 437`), and lists the rest.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import paddlelike as fluid
from paddlelike.errors import LeftOutError
from paddlelike.framework.opdef import registry
from paddlelike.left_out.reasons import OPERATORS
from tests.helpers.golden_data import table

REAL = table("operators185")


def find_missing() -> set[str]:
    return set(REAL) - set(registry.all_ops())


def test_every_operator_exists_or_has_a_reason_to_be_absent(
    record_property: Callable[[str, object], None],
) -> None:
    missing = find_missing()
    lines = [f"  {name}: {reason.why}" for name, reason in OPERATORS.items()]
    record_property("summary", "\n".join([f"operators: {len(REAL) - len(missing)} of {len(REAL)}", *lines]))
    assert missing - set(OPERATORS) == set()
    assert set(OPERATORS) - missing == set(), "these are here now"


def test_an_operator_that_is_left_out_says_so_and_what_to_use_instead() -> None:
    with pytest.raises(LeftOutError, match=r"share the memory of FusedOutput.*\n.*layers\.concat"):
        fluid.default_main_program().global_block().append_op("coalesce_tensor", {}, {}, {})
