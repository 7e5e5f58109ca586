#!/usr/bin/env bash
# MXNet 1.9.1 turns every numpy array into float32, int64 ids and bools too, and rounds 1.5 to 1 with rint.
# Ids above 16,777,216 become other ids without a word. rint takes halves down; C's and numpy's rint take them to even.
# mx.nd.array(x, dtype=x.dtype) keeps the dtype.
# Seen: mxnet 1.9.1, Python 3.8: array([16777217], int64) -> float32 [16777216.]; rint(1.5, 2.5) 1, 2 where numpy gives 2, 2.
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
"${PYTHON38:-python3.8}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q mxnet==1.9.1 numpy==1.23.5
cd "$folder"
"$folder/venv/bin/python" - <<'PY' 2>"$folder/errors" || { tail -n 3 "$folder/errors"; exit 1; }
import mxnet as mx, numpy as np
ids = mx.nd.array(np.array([16777217]))
rounded = mx.nd.rint(mx.nd.array([1.5, 2.5])).asnumpy().tolist()
print("ids:", ids.dtype.__name__, ids.asnumpy().tolist(), "rint:", rounded, "numpy:", np.rint([1.5, 2.5]).tolist())
assert ids.dtype is np.float32 and ids.asnumpy().tolist() == [16777216.0]
assert rounded == [1.0, 2.0], "rint rounds otherwise now"
PY
