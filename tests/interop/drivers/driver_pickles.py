"""Run by an old Python with numpy: reads a state file, or pickles arrays by every protocol it has."""

import json
import pickle
import sys

import numpy as np

ARRAYS = [
    ("fc_0.w_0", np.arange(6, dtype="float32").reshape(2, 3) - 2.5),
    ("fc_0.b_0", np.array([1e300, -0.0, float("inf")])),
    ("emb", np.arange(-300, 300, dtype="int64").reshape(300, 2)),
    ("flags", np.array([True, False])),
    ("half", np.array([0.5, 65504], dtype="float16")),
    ("bytes", np.arange(256, dtype="uint8")),
    ("one", np.array([200], dtype="uint8")),
    ("none", np.zeros((0, 4), dtype="float32")),
    ("scalar", np.array(2.5, dtype="float32")),
    ("turned", np.asfortranarray(np.arange(6, dtype="float32").reshape(2, 3))),
    ("big", np.arange(4, dtype=">i4")),
]


def main():
    what, path = sys.argv[1:]
    if what == "write":
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            with open("%s.%d" % (path, protocol), "wb") as file:
                pickle.dump(dict(ARRAYS), file, protocol)
        held = dict(ARRAYS)
    else:
        with open(path, "rb") as file:
            held = pickle.load(file, encoding="latin1")
    facts = {}
    for name, array in held.items():
        plain = array.astype(array.dtype.newbyteorder("<"))
        facts[name] = [plain.dtype.str, list(plain.shape), plain.tobytes().hex()]
    print(json.dumps([sys.version.split()[0], np.__version__, facts]))


if __name__ == "__main__":
    main()
