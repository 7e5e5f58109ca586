"""An image classifier that outgrows its process: one worker, then two, then four, one of them killed.

Every worker has the whole network and a part of each batch; gradients are averaged over all of them (Fluid's
``fleet.collective``), by JAX's distributed runtime (extra ``jax``). A checkpoint is that of
a single process, so that any number of workers goes on from it. When a worker is lost the others end with an
error that names it, and the launcher starts all of them again from the last checkpoint.

The script starts the jobs, writes ``tutorials/out/workers/`` and checks its claims; it takes a minute on
two cores. Every worker runs the same script; with a command of Fluid's own it would be::

    python -m paddle.distributed.launch --selected_gpus 0,1 13_from_one_process_to_four.py 4
"""

# %% Without JAX two workers cannot add their gradients up.
import sys
from importlib.util import find_spec

if find_spec("jax") is None:
    print("JAX is not installed: pip install '.[jax]'")
    sys.exit()

# %% Six epochs: two by one worker, two by two, two by four. Each step takes 96 images, whoever computes them.
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import paddlelike as fluid
from paddlelike.distributed.launch.local import die_with_parent
from paddlelike.incubate.fleet.base.role_maker import PaddleCloudRoleMaker
from paddlelike.incubate.fleet.collective import DistributedStrategy, TrainStatus, fleet

WORKERS = {2: 1, 4: 2, 6: 4}  # until which epoch, by how many
BATCH, STEPS = 96, 15
HOME = Path(os.environ.get("WORKERS_HOME", Path(__file__).parent / "out" / "workers"))

# %% Handwritten digits, 8 x 8 pixels (UCI's optical recognition data, as scikit-learn has them).
digits = load_digits()
images = (digits.images / 16).astype("float32")[:, None]
labels = digits.target.astype("int64")[:, None]
order = np.random.RandomState(0).permutation(len(images))
learned, unseen = order[: BATCH * STEPS], order[BATCH * STEPS :]


def batch_of(epoch, step, worker=0, count=1):
    """The rows of one worker in a step: every ``count``-th of the batch."""
    rows = np.random.RandomState(epoch).permutation(learned)[step * BATCH : (step + 1) * BATCH]
    return {"image": images[rows[worker::count]], "label": labels[rows[worker::count]]}


# %% The network, as for one process.
def build():
    image = fluid.data("image", [None, 1, 8, 8])
    label = fluid.data("label", [None, 1], "int64")
    hidden = fluid.layers.conv2d(image, num_filters=16, filter_size=3, padding=1, act="relu")
    hidden = fluid.layers.pool2d(hidden, 2, "max", 2)
    hidden = fluid.layers.conv2d(hidden, num_filters=32, filter_size=3, padding=1, act="relu")
    scores = fluid.layers.fc(hidden, size=10, act="softmax")
    return fluid.layers.mean(fluid.layers.cross_entropy(scores, label)), scores


optimizer = fluid.optimizer.Momentum(learning_rate=0.05, momentum=0.9)


# %% One worker. Three lines are new: the role, the optimizer that averages gradients, the checkpoints of all.
def work(last):
    fluid.default_startup_program().random_seed = 7
    loss, _ = build()
    fleet.init(PaddleCloudRoleMaker(is_collective=True))
    fleet.distributed_optimizer(optimizer, DistributedStrategy()).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)  # waits for the others; worker 0's values go to all
    me, count = fleet.worker_index(), fleet.worker_num()
    status = fleet.load_check_point(exe, str(HOME / "models"), me) or TrainStatus()
    for epoch in range(status.next(), last):
        for step in range(STEPS):
            stumble(epoch, step, me)
            feed = batch_of(epoch, step, me, count)
            (value,) = exe.run(fleet.main_program, feed=feed, fetch_list=[loss])
        print(f"epoch {epoch}: loss {value.item():.4f} of this worker's part", flush=True)
        if fleet.is_first_worker():  # one writes, for all
            fleet.save_check_point(exe, str(HOME / "models"), TrainStatus(epoch))


def stumble(epoch, step, worker):
    """In the last epoch worker 2 of four is killed, once."""
    if (epoch, step, worker) == (5, 8, 2) and not (HOME / "stumbled").exists():
        (HOME / "stumbled").touch()
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__" and len(sys.argv) > 1:
    work(int(sys.argv[1]))
    sys.exit()

# %% The jobs. The launcher starts the workers and waits; if one is lost it starts all of them again.
shutil.rmtree(HOME, ignore_errors=True)  # this script's own folder
HOME.mkdir(parents=True)
seconds = {}
for last, count in WORKERS.items():
    begin = time.perf_counter()
    command = [sys.executable, "-m", "paddlelike.distributed.launch", "--run_mode", "collective",
               "--nproc_per_node", str(count), "--max_restarts", "3",
               "--log_dir", str(HOME / f"log-{count}"), __file__, str(last)]  # fmt: skip
    subprocess.run(command, check=True, preexec_fn=die_with_parent())
    seconds[count] = time.perf_counter() - begin
    print(f"{count} workers, until epoch {last}: {seconds[count]:.1f} s", flush=True)
assert (HOME / "stumbled").exists()

# %% The same six epochs in one process, each step on the whole batch: no fleet, no launcher.
main, startup = fluid.Program(), fluid.Program()
startup.random_seed = 7
with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    loss, scores = build()
    test_program = main.clone(for_test=True)
    optimizer.minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
accuracies, losses = [], []


def measure():
    feed = {"image": images[unseen], "label": labels[unseen]}
    (found,) = exe.run(test_program, feed=feed, fetch_list=[scores])
    return (found.argmax(1) == labels[unseen, 0]).mean()


with fluid.scope_guard(fluid.Scope()):
    exe.run(startup)
    for epoch in range(max(WORKERS)):
        for step in range(STEPS):
            (value,) = exe.run(main, feed=batch_of(epoch, step), fetch_list=[loss])
            losses.append(value.item())
        accuracies.append(measure())
    alone = {
        one.name: np.array(fluid.global_scope().find_var(one.name).get_tensor())
        for one in main.all_parameters()
    }

# %% What four workers left behind is what one process learns, but for the order in which numbers are added.
with fluid.scope_guard(fluid.Scope()):
    exe.run(startup)
    newest = max((HOME / "models").glob("__paddle_fleet_checkpoint__.*"), key=lambda one: int(one.suffix[1:]))
    assert fluid.io.load_persistables(exe, newest, main, filename="_paddle_fleet_param__")
    together = measure()
    for name, expected in alone.items():
        found = np.array(fluid.global_scope().find_var(name).get_tensor())
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3, err_msg=name)
assert abs(together - accuracies[-1]) < 0.01
assert together > 0.9

# %% As a picture.
import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.plot(np.arange(1, len(losses) + 1) / STEPS, losses)
for last, count in WORKERS.items():
    axes.axvspan(last - 2, last, alpha=0.05 * (1 + count), label=f"{count} worker{'s' * (count > 1)}")
axes.axvline(5 + 8 / STEPS, color="black", linestyle=":", label="worker 2 is killed")
axes.set(xlabel="epoch", ylabel="loss", yscale="log")
axes.legend(loc="upper right")
figure.suptitle("One training, by more and more workers")
figure.savefig(HOME / "losses.png", dpi=120)

# %% [markdown]
# ![The losses of one training that more and more workers share](out/workers/losses.png)

# %%
print(f"{len(learned)} digits, {max(WORKERS)} epochs by 1, 2 and 4 workers, one of them killed: "
      f"{together:.1%} of {len(unseen)} unseen ones are right, {accuracies[-1]:.1%} by one")  # fmt: skip
