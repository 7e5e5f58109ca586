"""Damage in the store of a server process: python damaged_store.py FOLDER DAMAGE CALL, run by the launcher.

The trainer changes the unnamed file of server 0 through /proc, calls the servers, and prints the error.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np

import paddlelike as fluid
import paddlelike.incubate.fleet.base.role_maker as role_maker
from paddlelike.distributed import growing_tables as tables
from paddlelike.incubate.fleet.parameter_server.distribute_transpiler import fleet

folder, damage, call = Path(sys.argv[1]), *sys.argv[2:]
ids = fluid.data("ids", [None, 1], "int64")
rows = tables.sparse_embedding(ids, [1, 9], table_class="SSDSparseTable", param_attr="emb")
loss = fluid.layers.mean(rows)
fleet.init(role_maker.PaddleCloudRoleMaker())
fleet.distributed_optimizer(fluid.optimizer.Adagrad(0.1)).minimize(loss)
if fleet.is_server():
    Path(f"server{fleet.server_index()}.pid").write_text(str(os.getpid()))
    fleet.init_server()
    fleet.run_server()
    sys.exit()

RECORD = 8 + 9 * 4 + 4  # an id, a row, a checksum
exe = fluid.Executor()
exe.run(fleet.startup_program)


def train(first: int, count: int) -> None:
    feed = {"ids": np.arange(first, first + count).reshape(-1, 1)}
    exe.run(fleet.main_program, feed=feed, fetch_list=[loss])


def save(delta: bool = False) -> None:
    fluid.io.save_persistables(exe, str(folder / "saved"), fleet.main_program, delta=delta)


def list_files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "saved").iterdir())}


train(0, 400)
train(400, 20)  # only these rows stay in memory
save()
before = list_files()
links = Path(f"/proc/{Path('server0.pid').read_text()}/fd").iterdir()
stores = [link for link in links if str(folder / "stores") in str(link.readlink())]
table = max(stores, key=lambda link: len(link.read_bytes().rstrip(b"\0")))  # not its counts or its moment
with table.open("r+b") as file:
    if damage == "cut":
        file.truncate(RECORD * 5)
    else:
        at = {"id": 0, "row": 3 * RECORD + 20, "checksum": 2 * RECORD - 1, "zeros": 0}[damage]
        file.seek(at)
        old = file.read(1)
        file.seek(at)
        file.write(bytes(40 * RECORD) if damage == "zeros" else bytes([old[0] ^ 4]))
try:
    {"save": save, "delta": lambda: save(delta=True), "train": lambda: train(0, 400)}[call]()
except Exception as error:
    print("said", json.dumps([type(error).__name__, str(error), list_files() == before]))  # noqa: T201
