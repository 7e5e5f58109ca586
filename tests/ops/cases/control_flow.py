"""Operators that run blocks: nothing to check without a program around them."""

from __future__ import annotations

from tests.ops.contract import Case

CASES: list[Case] = []

ELSEWHERE = {"conditional_block": "tests/layers/test_control_flow.py: it runs a block of a program"}
