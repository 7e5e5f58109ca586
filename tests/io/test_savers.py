"""Many savers of one directory: each waits for its turn, and none is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest

from paddlelike.storage.local import manifest_file
from tests.helpers.fork_server import Forked
from tests.helpers.saved_files import read_variables

pytestmark = pytest.mark.slow


def test_threads_and_processes_that_save_into_one_directory_take_turns(
    fork_server: str, tmp_path: Path
) -> None:
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


SCRIPT = """
import sys
import paddlelike as fluid
main, startup = fluid.Program(), fluid.Program()
with fluid.program_guard(main, startup):
    out = fluid.layers.fc(fluid.data("x", [None, 2]), 1)
    fluid.optimizer.Adam(0.1).minimize(fluid.layers.mean(out))
exe = fluid.Executor()
exe.run(startup)
report = fluid.io.save_persistables(exe, sys.argv[1] + "/m", main)
assert fluid.io.load_persistables(exe, sys.argv[1] + "/m", main), report
fluid.io.save_params(exe, sys.argv[1] + "/p", main, "all")
fluid.io.save_inference_model(sys.argv[1] + "/export", ["x"], [out], exe, main)
fluid.io.load_inference_model(sys.argv[1] + "/export", exe)
fluid.save(main, sys.argv[1] + "/net")
fluid.load(main, sys.argv[1] + "/net", exe)
checkpoints = fluid.io.Checkpoints(sys.argv[1] + "/run")
checkpoints.save(exe, main, 1)
assert checkpoints.restore(exe, main) == {"step": 1}
print(len(report.saved), [name for name in sys.modules if name.startswith("paddlelike.distributed")])
"""


def test_saves_and_loads_of_ordinary_programs_import_nothing_distributed(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.splitlines()[-1] == "11 []", result.stderr
