"""Train a sparse table on parameter servers of Paddle 2.6.2 and save it, or load one and print its rows.

``python dump_server_tables.py TARGET [RULE] [SERVERS] [MODE] [LOAD]`` with Paddle 2.6.2 and protobuf 4: 40
steps, then ``fleet.save_persistables`` with the mode; with LOAD no step: the rows of the ids as JSON.
"""

import json
import os
import socket
import subprocess
import sys
import time

IDS = [index * (1 << 40) + 7 for index in range(1, 9)]


def train(target, rule, mode, load):
    import numpy as np
    import paddle
    from paddle.distributed import fleet

    paddle.enable_static()
    fleet.init(fleet.PaddleCloudRoleMaker())
    ids = paddle.static.data("ids", [None, 1], "int64", lod_level=1)
    y = paddle.static.data("y", [None, 1], "float32")
    rows = paddle.static.nn.sparse_embedding(ids, [100, 4], param_attr=paddle.ParamAttr(name="emb"))
    rows = paddle.static.nn.sequence_lod.sequence_pool(rows, "sum")
    start = paddle.ParamAttr(name="fcw", initializer=paddle.nn.initializer.Constant(0.5))
    out = paddle.static.nn.fc(rows, 1, weight_attr=start, bias_attr=paddle.ParamAttr(name="fcb"))
    loss = paddle.mean(paddle.nn.functional.square_error_cost(out, y))
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    config = {"table_parameters.emb.shard_num": 4}
    for part in ("embed", "embedx") if rule != "-" else ():
        where = f"table_parameters.emb.accessor.{part}_sgd_param"
        config[f"{where}.name"] = rule
        if rule == "SparseNaiveSGDRule":
            config[f"{where}.naive.learning_rate"] = 0.1
            config[f"{where}.naive.initial_range"] = 0.01
    strategy.sparse_table_configs = {"emb": config}
    fleet.distributed_optimizer(paddle.optimizer.Adam(0.1, lazy_mode=True), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server(*([load] if load != "-" else []))
        fleet.run_server()
        return
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    rng = np.random.RandomState(0)
    for _ in range(1 if load != "-" else 40):
        x = np.array(IDS if load != "-" else rng.choice(IDS, 6), "int64").reshape(-1, 1)
        fed = paddle.base.create_lod_tensor(x, [[1] * len(x)], paddle.CPUPlace())
        feed = {"ids": fed, "y": np.ones((len(x), 1), "float32")}
        (found,) = exe.run(paddle.static.default_main_program(), feed=feed, fetch_list=[rows])
        time.sleep(0.05)
    if load != "-":
        print(json.dumps({"ids": IDS, "rows": found.tolist()}), flush=True)
    else:
        time.sleep(3)
        fleet.save_persistables(exe, target, mode=int(mode))
    fleet.stop_worker()


def start(target, rule="-", servers="1", mode="0", load="-"):
    ports = []
    for _ in range(int(servers) + 1):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            ports.append(one.getsockname()[1])
    ends = [f"127.0.0.1:{port}" for port in ports]
    common = {
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(ends[1:]),
        "PADDLE_TRAINERS_NUM": "1",
        "PADDLE_TRAINER_ENDPOINTS": ends[0],
        "PADDLE_TRAINER_ID": "0",
        "POD_IP": "127.0.0.1",
    }
    command = [sys.executable, __file__, target, rule, servers, mode, load]
    jobs = []
    for port, role in zip(ports[1:] + ports[:1], ["PSERVER"] * int(servers) + ["TRAINER"], strict=True):
        role_of = {**os.environ, **common, "TRAINING_ROLE": role, "PADDLE_PORT": str(port)}
        where = None if role == "TRAINER" else subprocess.DEVNULL
        jobs.append(subprocess.Popen(command, env=role_of, stdout=where, stderr=subprocess.DEVNULL))
    status = jobs[-1].wait(120)
    for job in jobs[:-1]:
        job.terminate()
        job.wait()
    sys.exit(status)


if __name__ == "__main__":
    if "TRAINING_ROLE" in os.environ:
        train(sys.argv[1], sys.argv[2], sys.argv[4], sys.argv[5])
    else:
        start(*sys.argv[1:])
