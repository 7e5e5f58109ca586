#!/usr/bin/env bash
# Orbax 0.12.8 refuses to save an array without elements, and restores tuples as lists and named tuples as dicts.
# A model with an empty table cannot be saved at all; code that unpacks a state by its type gets another type back.
# Both need a template at the restore, or another layout of the state.
# Seen: orbax-checkpoint 0.12.8, jax 0.10.2: ValueError "Cannot save arrays with zero size"; tuple -> list, namedtuple -> dict.
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q orbax-checkpoint==0.12.8 jax==0.10.2
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PY' 2>"$folder/errors" || { tail -n 3 "$folder/errors"; exit 1; }
import collections, os
import numpy as np, orbax.checkpoint as ocp
Pair = collections.namedtuple("Pair", "a b")
checkpointer = ocp.PyTreeCheckpointer()
state = {"tuple": (np.ones(2), 1.5), "pair": Pair(np.ones(2), 3)}
checkpointer.save(os.path.abspath("kinds"), state)
found = {name: type(value).__name__ for name, value in checkpointer.restore(os.path.abspath("kinds")).items()}
print("saved: tuple, Pair; restored:", found)
try:
    checkpointer.save(os.path.abspath("empty"), {"table": np.zeros((0, 3)), "bias": np.ones(3)})
    refused = ""
except ValueError as error:
    refused = str(error)
print("an empty array:", refused)
assert found == {"tuple": "list", "pair": "dict"} and "zero size" in refused, "that changed"
PY
