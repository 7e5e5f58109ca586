"""Run by a Python with the real Theano: loads our bundle, and dumps shared variables with its arrays."""

import json
import sys

import numpy as np
import theano
from theano.misc import pkl_utils


def main():
    with open(sys.argv[1]) as file:
        job = json.load(file)
    with open(job["ours"], "rb") as file:
        found = pkl_utils.load(file)
    np.savez(job["found"], **found["arrays"])
    assert found["again"] is found["arrays"]["W"]
    shared = [theano.shared(value, name=name) for name, value in sorted(found["arrays"].items())]
    with open(job["theirs"], "wb") as file:
        pkl_utils.dump({"shared": shared, "epoch": found["epoch"]}, file)


if __name__ == "__main__":
    main()
