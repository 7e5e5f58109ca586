"""Ask the real Fluid 1.8.5 how it names variables: `python -m tests.layers.dump_naming OUT.json.gz`.

To be run by a Python that has paddlepaddle 1.8.5.
"""

from __future__ import annotations

import gzip
import json
import sys
import warnings

warnings.simplefilter("ignore")

import paddle.fluid as fluid

sys.modules["paddlelike"] = fluid  # what the zoo imports

from tests.layers.naming import WAYS, list_names, list_networks


def record(network, way):
    fluid.framework._name_scope = fluid.framework.NameScope()
    guards = fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.core.Scope())
    fluid.reader.data_loader_unique_name_generator.ids.clear()
    with fluid.unique_name.guard(), guards[0], guards[1]:
        return list_names(fluid, network, way)


if __name__ == "__main__":
    names = {way: {network: record(network, way) for network in list_networks(fluid)} for way in WAYS}
    with gzip.GzipFile(sys.argv[1], "wb", mtime=0) as file:
        file.write(json.dumps(names, sort_keys=True, separators=(",", ":")).encode())
