"""Operators between variables and files, holders and readers: they act on something besides their outputs."""

from __future__ import annotations

from tests.ops.contract import Case

CASES: list[Case] = []

_FILES = "tests/io/test_save_and_load.py: what is saved is what is loaded, and nothing half changed"
_HOLDERS = "tests/io/test_inference.py: an executor fills and reads them without running them"
_READERS = "tests/reader: batches of a reader in place of a feed, EOFException after the last"
ELSEWHERE = {
    "save": _FILES,
    "load": _FILES,
    "save_combine": _FILES,
    "load_combine": _FILES,
    "feed": _HOLDERS,
    "fetch": _HOLDERS,
    "create_py_reader": _READERS,
    "create_double_buffer_reader": _READERS,
    "read": _READERS,
}
