"""One library as a process of its own: runs the operators it is asked to.

    python contender.py fluid|paddlelike|fast|torch

It reads lines "CASE PASS SECONDS", where a pass is "forward" or "both", and answers each with a line of JSON:
processor seconds of a run, and the sum of the magnitudes of what was computed. Python 3.7 runs it, for Fluid 1.8.5.
"""

import gc
import importlib
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from cases import CASES


def answer(step, seconds):
    """Return the processor seconds of a run: the mean over about ``seconds``."""
    gc.disable()
    begin, count = time.process_time(), 0
    while count < 1 or time.process_time() - begin < seconds:
        step()
        count += 1
    gc.enable()
    return (time.process_time() - begin) / count


def main():
    library = sys.argv[1]
    if library in ("paddlelike", "fast"):
        os.environ["FLAGS_use_fast_kernels"] = str(int(library == "fast"))
    build = importlib.import_module("in_torch" if library == "torch" else "in_fluid").build
    name, step, total = "", None, 0.0
    for line in sys.stdin:
        case, both, seconds = line.split()
        if name != case + both:
            step, total = build(CASES[case], both == "both", library)  # one case at a time holds memory
            name = case + both
            step()
        print(json.dumps({"cpu": answer(step, float(seconds)), "sum": total}), flush=True)


if __name__ == "__main__":
    main()
