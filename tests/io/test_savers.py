"""Many savers of one directory: each waits for its turn, and none is refused."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest

from paddlelike.storage.local import manifest_file
from tests.helpers.fork_server import Forked
from tests.helpers.saved_files import read_variables

pytestmark = pytest.mark.slow


def test_threads_and_processes_that_save_into_one_directory_queue(fork_server: str, tmp_path: Path) -> None:
    """Blocking or not, with values that stay: what is kept is decided where no other save comes between."""
    with ExitStack() as running:
        savers = [
            running.enter_context(
                closing(
                    Forked(
                        fork_server,
                        "tests.io.savers",
                        {"DIR": str(tmp_path / "m"), "COUNT": "4", "THREADS": "8", "NUMBER": str(number)},
                    )
                )
            )
            for number in range(4)
        ]
        for one in savers:
            said, errors = one.communicate(300)
            assert json.loads(said) == [], errors
    assert manifest_file.verify(tmp_path / "m")
    values = read_variables(tmp_path / "m")
    whose = {int(np.frombuffer(data[-4:], "float32")[0]) for data in values.values()}
    assert len(whose) == 1  # all files are of one saver
