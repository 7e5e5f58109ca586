"""One of the workers that train one net together, by one library; ``bench_collective`` starts them.

    python worker.py paddlelike|compiled|shared|jax|torch NET STEPS

``PADDLE_TRAINER_ENDPOINTS`` and ``PADDLE_TRAINER_ID`` name the workers, one or several. ``shared`` is compiled
with ``ReduceStrategy.Reduce``. It prints a line of JSON: by step the seconds of the clock, those that the step
waited in exchanges (where the library is ours), and those of the processor; and the last loss.
"""

import json
import os
import sys
import time
from functools import partial

import data
import numpy as np

ENDPOINTS = os.environ["PADDLE_TRAINER_ENDPOINTS"].split(",")
RANK, COUNT = int(os.environ["PADDLE_TRAINER_ID"]), len(ENDPOINTS)
WARM = 2  # steps that compile


def prepare_ours(net, library):
    os.environ["FLAGS_backend"] = "numpy" if library == "paddlelike" else "jax"
    import in_fluid

    import paddlelike as fluid
    from paddlelike.distributed.collective.workers import find_workers

    main, startup, loss = in_fluid._build(net, fluid)
    if COUNT > 1:
        config = fluid.DistributeTranspilerConfig()
        config.mode = "nccl2"
        fluid.DistributeTranspiler(config).transpile(
            RANK,
            main,
            trainers=",".join(ENDPOINTS),
            startup_program=startup,
            current_endpoint=ENDPOINTS[RANK],
        )
    strategy = fluid.BuildStrategy()
    strategy.num_trainers, strategy.trainer_id = COUNT, RANK
    if library == "shared":
        strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    program = main if COUNT == 1 else fluid.CompiledProgram(main).with_data_parallel(loss.name, strategy)
    exe = fluid.Executor()
    exe.run(startup)
    batch = data.make_batch(net)
    waited = [0.0]
    member = find_workers()._member
    if member is not None:
        wait = member.wait

        def time_wait(future):
            begin = time.perf_counter()
            try:
                return wait(future)
            finally:
                waited[0] += time.perf_counter() - begin

        member.wait = time_wait
    return lambda: exe.run(program, feed=batch, fetch_list=[loss])[0], waited


def prepare_jax(net):
    import jax

    if COUNT > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(ENDPOINTS[0], COUNT, RANK, local_device_ids=[0])
    import in_jax
    import in_jax_small

    spec = jax.sharding.PartitionSpec
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("workers",))

    def put(array, where, shape):
        part = jax.device_put(array, jax.local_devices()[0])
        sharding = jax.sharding.NamedSharding(mesh, where)
        return jax.make_array_from_single_device_arrays(shape, sharding, [part])

    if net in in_jax_small.ADAM:
        state, step = in_jax_small.start(net), partial(in_jax_small.STEPS[net], axis="workers")
    else:
        init, loss_of, update = in_jax.NETS[net]
        average = lambda grads: jax.lax.pmean(grads, "workers")
        state, step = (
            init(np.random.RandomState(5)),
            in_jax._make_step(loss_of, lambda p, g, m: update(p, average(g), m)),
        )

    def run_part(state, batch):
        state, loss = step(state, {name: array[0] for name, array in batch.items()})
        return state, loss[None]

    state = jax.tree_util.tree_map(lambda one: put(one, spec(), one.shape), state)
    mapped = jax.shard_map(
        run_part,
        mesh=mesh,
        in_specs=(spec(), spec("workers")),
        out_specs=(spec(), spec("workers")),
        check_vma=False,
    )
    compiled = jax.jit(mapped, donate_argnums=0)
    arrays = data.make_batch(net)

    def run():
        nonlocal state
        batch = {name: put(one[None], spec("workers"), (COUNT, *one.shape)) for name, one in arrays.items()}
        state, loss = compiled(state, batch)
        return np.asarray(loss.addressable_shards[0].data)

    return run


def prepare_torch(net):
    import in_torch
    import torch
    from torch import distributed

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    if COUNT > 1:
        distributed.init_process_group(
            "gloo", init_method="tcp://" + ENDPOINTS[0], rank=RANK, world_size=COUNT
        )
    return in_torch.prepare(net, distribute=COUNT > 1)


def main():
    library, net, steps = sys.argv[1:]
    waited = [0.0]
    if library == "torch":
        step = prepare_torch(net)
    elif library == "jax":
        step = prepare_jax(net)
    else:
        step, waited = prepare_ours(net, library)
    found = {"wall": [], "waited": [], "cpu": []}
    for index in range(WARM + int(steps)):
        waited[0] = 0.0
        wall, cpu = time.perf_counter(), time.process_time()
        loss = step()
        if index >= WARM:
            found["wall"].append(time.perf_counter() - wall)
            found["cpu"].append(time.process_time() - cpu)
            found["waited"].append(waited[0])
    found["loss"] = float(np.asarray(loss).reshape(-1)[0])
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
