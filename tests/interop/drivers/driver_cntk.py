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


def evaluate(function, feeds, prefix):
    """Return the outputs of a function; sequences are fed as a list, and come back one after the other."""
    feed = {}
    for one in function.arguments:
        value = feeds["%s/in/%s" % (prefix, one.name)]
        lengths = "%s/lengths/%s" % (prefix, one.name)
        feed[one] = np.split(value, np.cumsum(feeds[lengths])[:-1]) if lengths in feeds.files else value
    made = function.eval(feed)
    outputs = [made[one] for one in function.outputs] if isinstance(made, dict) else [made]
    return [np.concatenate(one) if isinstance(one, list) else np.asarray(one) for one in outputs]


def run_models(job):
    """Evaluate every model of an archive with its inputs."""
    found = {}
    with np.load(job["models"]) as feeds:
        for name in sorted({key.split("/")[0] for key in feeds.files}):
            function = cntk.Function.load(feeds[name + "/model"].tobytes())
            for index, out in enumerate(evaluate(function, feeds, name)):
                found["%s/%d" % (name, index)] = out
    np.savez(job["found"], **found)


def main():
    with open(sys.argv[1]) as file:
        job = json.load(file)
    {"values": read_values, "models": run_models}[job["task"]](job)


if __name__ == "__main__":
    main()
