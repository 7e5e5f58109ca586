"""Run by a Python with the real CNTK: loads our files and writes down what it finds in them."""

import json
import sys

import cntk
import numpy as np


def read_values(job):
    """Load a function that combines values, keep them, and save it again."""
    function = cntk.Function.load(job["ours"])
    np.savez(job["found"], **{one.uid: np.asarray(one.value) for one in function.parameters})
    assert [one.uid for one in function.parameters] == [one.name for one in function.parameters]
    function.save(job["theirs"])


def main():
    with open(sys.argv[1]) as file:
        job = json.load(file)
    {"values": read_values}[job["task"]](job)


if __name__ == "__main__":
    main()
