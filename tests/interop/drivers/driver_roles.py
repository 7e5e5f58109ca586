"""What real Fluid understands of environments: python3.7 driver_roles.py job.json (see test_roles.py)."""

import json
import os
import sys

from paddle.fluid.incubate.fleet.base import role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet

with open(sys.argv[1]) as file:
    job = json.load(file)
found = []
for environment in job["environments"]:
    os.environ.update(environment)
    fleet.init(getattr(role_maker, job["maker"])())
    found.append(
        {
            "is_worker": fleet.is_worker(),
            "is_server": fleet.is_server(),
            "is_first_worker": fleet.is_first_worker(),
            "index": fleet.worker_index(),
            "server_index": fleet.server_index(),
            "workers": fleet.worker_num(),
            "servers": fleet.server_endpoints(),
            "server_num": fleet.server_num(),
            "text": fleet.server_endpoints(to_string=True),
        }
    )
    for name in environment:
        del os.environ[name]
with open(job["answer"], "w") as file:
    json.dump(found, file)
