#!/usr/bin/env bash
# VisualDL 2.5.3 keeps scalars as float32: what LogReader gives back is not what LogWriter was given.
# Counts of samples above 16,777,216 stand still or jump by two, and a loss of 0.1 is 0.10000000149.
# Curves that are continued from a log, or compared with a saved number, differ.
# Seen: visualdl 2.5.3: 16777217, 16777219, 0.1 are read back as 16777216.0, 16777220.0, 0.10000000149011612.
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q visualdl==2.5.3 setuptools==69.5.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import os
from visualdl import LogReader, LogWriter
numbers = [16777217, 16777219, 0.1]
with LogWriter(logdir="log") as writer:
    for step, number in enumerate(numbers):
        writer.add_scalar(tag="samples", step=step, value=number)
(name,) = os.listdir("log")
found = [one.value for one in LogReader(file_path=os.path.join("log", name)).get_data("scalar", "samples")]
print("written:", numbers, "read:", found)
assert found == [16777216.0, 16777220.0, 0.10000000149011612], "the precision changed"
PY
