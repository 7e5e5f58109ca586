#!/usr/bin/env bash
# torch.save (PyTorch 2.13.0, 2.14.1) does not say that the disk is full: its RuntimeError names positions inside the archive.
# It is not an OSError and has no errno, not even in the chain of its causes, so that training which frees space and saves
# again on ENOSPC never does. The old form (_use_new_zipfile_serialization=False) raises OSError 28. What was saved before is lost.
# Seen: torch 2.13.0 and 2.14.1, Linux: "[enforce fail at inline_container.cc:...] . unexpected pos 704 vs 598" for /dev/full.
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PY' 2>"$folder/errors" || { tail -n 3 "$folder/errors"; exit 1; }
import torch

def save(**options):
    """Return the error of a save on a full device, and the numbers of it and its causes."""
    try:
        torch.save({"w": torch.zeros(1_000_000)}, "/dev/full", **options)
    except Exception as error:
        numbers, each = [], error
        while each is not None:
            numbers.append(getattr(each, "errno", None))
            each = each.__cause__ or each.__context__
        return type(error).__name__, str(error).splitlines()[0], numbers
    return "no error", "", []

new, old = save(), save(_use_new_zipfile_serialization=False)
print("by default:", *new)
print("old form:", *old)
assert new[0] == "RuntimeError" and 28 not in new[2] and "space" not in new[1], "that changed"
assert old[0] == "OSError" and 28 in old[2], "that changed"
PY
