#!/usr/bin/env bash
# DyNet 2.1 writes NaN and infinity into its text files, and cannot read them: it keeps what it read before.
# A parameter that was saved as NaN loads as a plausible number, that of the parameter before it, without an error.
# A training that went to NaN and was saved comes back looking healthy.
# Seen: dyNET38 2.2 on Python 3.8: parameters 0.5, NaN, infinity are saved and load as 0.5, 0.5, 0.5.
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
"${PYTHON38:-python3.8}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q "dyNET38==2.2" "numpy==1.23.5"
cd "$folder"
"$folder/venv/bin/python" - <<'PY' 2>"$folder/errors" || { tail -n 3 "$folder/errors"; exit 1; }
import dynet as dy, numpy as np
saved = dy.ParameterCollection()
numbers = [0.5, float("nan"), float("inf")]
for number in numbers:
    saved.add_parameters((1,), init=dy.NumpyInitializer(np.array([number], "float32")))
saved.save("model.txt")
loaded = dy.ParameterCollection()
parameters = [loaded.add_parameters((1,)) for _ in numbers]
loaded.populate("model.txt")
found = [float(one.as_array()[0]) for one in parameters]
print(open("model.txt").read(), "saved:", numbers, "loaded:", found)
assert found == [0.5, 0.5, 0.5], "NaN is read otherwise now"
PY
