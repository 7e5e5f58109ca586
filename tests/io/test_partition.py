"""What saves and loads of ordinary programs import: nothing for distributed ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
