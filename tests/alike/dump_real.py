"""Ask the real Fluid 1.8.5 how every case ends: `python -m tests.alike.dump_real OUT.json.gz [PART]`.

To be run by a Python that has paddlepaddle 1.8.5.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import warnings
from pathlib import Path

os.environ.update(CPU_NUM="2", OMP_NUM_THREADS="1", GLOG_minloglevel="3")
warnings.simplefilter("ignore")

import paddle.fluid as fluid

from tests.alike.cases import CASES
from tests.alike.recording import record
from tests.layers.dump_real import canonical


def outcome(case):
    fluid.framework._name_scope = fluid.framework.NameScope()
    return record(fluid, canonical, case)


if __name__ == "__main__":
    path, part = sys.argv[1], "".join(sys.argv[2:])
    records = {}
    if part and Path(path).exists():
        with gzip.open(path) as file:
            records = {name: found for name, found in json.loads(file.read()).items() if name in CASES}
    for name, case in sorted(CASES.items()):
        if part in name:
            sys.stderr.write(name + "\n")
            records[name] = outcome(case)
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(json.dumps(records, sort_keys=True, separators=(",", ":")).encode())
    os._exit(0)  # threads of readers that the real one leaves behind
