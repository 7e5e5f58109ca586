"""Answer cases one after the other: `python -m tests.alike.operators.driver CASES ANSWERS FIRST`.

Runs under a Python that has paddlepaddle 1.8.5. Each answer is written as soon as it is known, so that the
one who asks sees at which case this process ended.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", GLOG_minloglevel="3", CPU_NUM="1")
warnings.simplefilter("ignore")

import paddle.fluid as fluid

from tests.alike.operators.asking import ask


def main(cases, answers, first):
    todo = json.loads(Path(cases).read_text())
    with open(answers, "a") as file:
        file.write("\n")
        file.flush()
        for index in range(int(first), len(todo)):
            file.write(json.dumps([index, ask(fluid, todo[index])]) + "\n")
            file.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)
