"""Generated names: counters per key, prefixes, guards."""

from __future__ import annotations

import copy

import pytest

from paddlelike import unique_name


def test_unique_name_counters_are_per_key() -> None:
    with unique_name.guard():
        assert [unique_name.generate(key) for key in ("fc", "fc", "conv", "fc")] == [
            "fc_0", "fc_1", "conv_0", "fc_2",
        ]  # fmt: skip


def test_a_guard_starts_new_counters_and_restores_the_old_ones() -> None:
    with unique_name.guard():
        unique_name.generate("fc")
        with unique_name.guard("new_"):
            assert unique_name.generate("fc") == "new_fc_0"
        with unique_name.guard(b"bytes_"):
            assert unique_name.generate("fc") == "bytes_fc_0"
        assert unique_name.generate("fc") == "fc_1"


def test_a_switch_returns_the_generator_to_switch_back_to() -> None:
    with unique_name.guard():
        unique_name.generate("fc")
        old, _ = unique_name.switch()
        assert unique_name.generate("fc") == "fc_0"
        unique_name.switch(old)
        assert unique_name.generate("fc") == "fc_1"


def test_a_copy_of_the_current_counters_continues_from_their_values() -> None:
    with unique_name.guard():
        unique_name.generate("fc")
        copied = copy.deepcopy(unique_name.generator)
        assert unique_name.generate("fc") == "fc_1"
        with unique_name.guard(copied):
            assert unique_name.generate("fc") == "fc_1"
    with pytest.raises(AttributeError, match="generators"):
        unique_name.generators  # noqa: B018
