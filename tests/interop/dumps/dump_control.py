"""Ask real Fluid 1.8.5 what it makes of the networks in a module of tests/helpers.

    python3.7 dump_control.py OUT.json.gz [MODULE]

MODULE is control_networks by default.

Runs under an interpreter that has paddlepaddle 1.8.5. Writes {network: record}:

main, startup   the programs' bytes (base64 of zlib), without `op_callstack`
losses          of every step, of a trained network
results         what a decoder fetched, as nested lists
"""

import gzip
import importlib.util
import json
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

import numpy as np
import paddle.fluid as fluid
from real_programs import encode_program


def load_networks(name):
    path = Path(__file__).resolve().parents[2] / "helpers" / (name + ".py")
    spec = importlib.util.spec_from_file_location(name, str(path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(out, module="control_networks"):
    networks = load_networks(module)
    records = {name: trained(networks, net) for name, net in networks.TRAINED.items()}
    records.update((name, decoded(networks, net)) for name, net in networks.DECODED.items())
    with gzip.GzipFile(out, "wb", mtime=0) as file:
        file.write(json.dumps(records, sort_keys=True, separators=(",", ":")).encode())
    print(len(records), "networks")


def trained(networks, network):
    with Building(networks) as (program, startup):
        loss, feed = network(fluid)
        fluid.optimizer.SGD(networks.RATE).minimize(loss)
    result = {"main": encode_program(program), "startup": encode_program(startup)}
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        steps = [exe.run(program, feed=feed, fetch_list=[loss])[0] for _ in range(networks.STEPS)]
    result["losses"] = [float(value[0]) for value in steps]
    return result


def decoded(networks, network):
    with Building(networks) as (program, startup):
        fetches, feed = network(fluid)
    result = {"main": encode_program(program), "startup": encode_program(startup)}
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        found = exe.run(program, feed=feed, fetch_list=fetches, return_numpy=False)
    result["results"] = [np.array(value).tolist() for value in found]
    return result


class Building:
    """Programs of a new process."""

    def __init__(self, networks):
        self.programs = fluid.Program(), fluid.Program()
        for program in self.programs:
            program.random_seed = networks.SEED
        fluid.framework._name_scope = fluid.framework.NameScope()
        self.guards = [fluid.unique_name.guard(), fluid.program_guard(*self.programs)]

    def __enter__(self):
        for guard in self.guards:
            guard.__enter__()
        return self.programs

    def __exit__(self, *error):
        for guard in reversed(self.guards):
            guard.__exit__(*error)


if __name__ == "__main__":
    main(*sys.argv[1:])
