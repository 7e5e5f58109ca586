"""Make the golden file anew: ``python -m tests.distributed.transpiler PYTHON_WITH_FLUID_185``."""

import json
import lzma
import sys
import tempfile
from pathlib import Path

from tests.distributed.transpiler.cases import CASES
from tests.distributed.transpiler.golden import PATH
from tests.distributed.transpiler.real import ask

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as workplace:
        records = ask(sys.argv[1], CASES, Path(workplace))
    broken = {name: record["error"] for name, record in records.items() if "error" in record}
    assert not broken, broken
    PATH.write_bytes(lzma.compress(json.dumps(records, sort_keys=True, separators=(",", ":")).encode()))
