"""Operators that reach out of the program have tests of their own."""

from tests.ops.contract import Case

CASES: list[Case] = []
ELSEWHERE = {
    "print": "tests/ops/test_callbacks.py: it writes",
    "py_func": "tests/ops/test_callbacks.py: it calls a function of the process",
}
