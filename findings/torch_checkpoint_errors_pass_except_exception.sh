#!/usr/bin/env bash
# torch.distributed.checkpoint (PyTorch 2.13.0, 2.14.1) raises CheckpointException, which is a BaseException and not an Exception.
# `except Exception` around a load, as in code that falls back to an older checkpoint, does not catch it: the process ends.
# A damaged or unfinished checkpoint is the usual cause; `except CheckpointException`, named, works.
# Seen: torch 2.13.0 and 2.14.1, a checkpoint with an empty data file: CheckpointException, MRO (CheckpointException, BaseException, object).
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PY' 2>"$folder/errors" || { tail -n 3 "$folder/errors"; exit 1; }
import pathlib
import torch, torch.distributed.checkpoint as checkpoint

checkpoint.save({"w": torch.ones(3)}, checkpoint_id="saved", no_dist=True)
for path in pathlib.Path("saved").glob("*.distcp"):
    path.write_bytes(b"")
caught, error = False, None
try:
    try:
        checkpoint.load({"w": torch.zeros(3)}, checkpoint_id="saved", no_dist=True)
    except Exception:
        caught = True
except BaseException as passed:
    error = passed
print("caught by `except Exception`:", caught, "- passed on:", [one.__name__ for one in type(error).__mro__])
assert not caught and type(error).__name__ == "CheckpointException", "that changed"
PY
