"""Run by a Python with the real DyNet: loads our pair of files, computes, and writes a pair of its own."""

import json
import sys

import dynet as dy
import numpy as np


def main():
    with open(sys.argv[1]) as file:
        job = json.load(file)
    collection = dy.ParameterCollection()
    objects = dy.load(job["ours"], collection)
    xs = np.array(job["xs"], dtype="float32")
    found = {}
    for name, one in zip(job["names"], objects):  # noqa: B905  (Python 3.8)
        dy.renew_cg()
        inputs = [dy.inputVector(x) for x in xs]
        if isinstance(one, (dy.Parameters, dy.LookupParameters)):
            found[name] = one.as_array().tolist()
        elif isinstance(one, dy.BiRNNBuilder):
            found[name] = [y.npvalue().tolist() for y in one.transduce(inputs)]
        else:
            found[name] = [y.npvalue().tolist() for y in one.initial_state().transduce(inputs)]
    dy.load(job["normalized"], dy.ParameterCollection())
    whole = dy.ParameterCollection()
    whole.add_parameters((2, 3), name="w")
    whole.add_lookup_parameters((4, 2))
    whole.populate(job["whole"])
    found["whole"] = [p.as_array().tolist() for p in whole.parameters_list() + whole.lookup_parameters_list()]
    whole.save(job["whole"] + ".real")
    dy.save(job["theirs"], objects)
    with open(job["found"], "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
