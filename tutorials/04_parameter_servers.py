"""Clicks, learned day by day on parameter servers: wide and deep, with sparse embeddings.

Every evening the day's log of impressions is learned: two trainers compute, servers keep the parameters, and
trainer 0 saves. The first two days there are two servers, then three: a checkpoint does not depend on their
count. On the third day a trainer is killed in the middle, which does not change the result.

The script starts the jobs, writes ``tutorials/out/clicks/`` (CLICKS_HOME names another directory) and checks
its claims. Run again, it continues from its last save, whenever it was stopped. Every process of a job runs
the same script: with TRAINING_ROLE and related variables in the environment it is a server or trainer::

    export PADDLE_PSERVERS_IP_PORT_LIST=127.0.0.1:6174,127.0.0.1:6175 PADDLE_TRAINERS_NUM=2
    TRAINING_ROLE=PSERVER POD_IP=127.0.0.1 PADDLE_PORT=6174 python 04_parameter_servers.py 1 &
    TRAINING_ROLE=PSERVER POD_IP=127.0.0.1 PADDLE_PORT=6175 python 04_parameter_servers.py 1 &
    TRAINING_ROLE=TRAINER PADDLE_TRAINER_ID=0 python 04_parameter_servers.py 1 &
    TRAINING_ROLE=TRAINER PADDLE_TRAINER_ID=1 python 04_parameter_servers.py 1
"""

# %% Four days, two trainers; the role of this process.
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import paddlelike as fluid
from paddlelike.distributed.launch.local import die_with_parent
from paddlelike.distributed.roles import read_role

SERVERS = {1: 2, 2: 2, 3: 3, 4: 3}  # by day
TRAINERS, STEPS, BATCH, SAVE_EVERY = 2, 60, 128, 15
USERS, ADS, HOURS, DENSE = 3000, 500, 24, 4
HOME = Path(os.environ.get("CLICKS_HOME", Path(__file__).parent / "out" / "clicks"))

# The id of a checkpoint is the number of steps since the first day: the step to continue from.
checkpoints = fluid.io.Checkpoints(HOME / "checkpoints", keep_last=None, every=SAVE_EVERY)


# %% The log of a day: who saw which ad at what hour, four numbers about the page, and whether they clicked.
# Some people click more than others, some ads are better, and one half of the people likes the other half
# of the ads. Clicks are drawn from these odds, which are all that a model can learn.
def impressions(day, count=STEPS * TRAINERS * BATCH):
    world, log = np.random.RandomState(2020), np.random.RandomState(day)
    of_user, of_ad = world.normal(0, 1.2, USERS), world.normal(0, 1.2, ADS)
    of_page = world.normal(0, 0.4, DENSE)
    user, ad = log.zipf(1.3, count) % USERS, log.randint(0, ADS, count)
    hour, page = log.randint(0, HOURS, count), log.normal(0, 1, (count, DENSE))
    likes = np.where(user % 2 == ad % 2, 0.7, -0.7)
    odds = of_user[user] + of_ad[ad] + likes + page @ of_page + 0.5 * np.cos(hour / HOURS * 2 * np.pi) - 1
    click = log.uniform(0, 1, count) < 1 / (1 + np.exp(-odds))
    ids = {"user": user, "ad": ad, "hour": hour}
    columns = {name: values.astype("int64").reshape(-1, 1) for name, values in ids.items()}
    columns |= {"page": page.astype("float32"), "click": click.astype("float32").reshape(-1, 1)}
    return columns


def batch_of(columns, step, trainer=None):
    """The rows of one trainer in one step; of all trainers if none is named."""
    begin = step % STEPS * TRAINERS * BATCH
    first, count = (0, TRAINERS) if trainer is None else (trainer, 1)
    rows = slice(begin + first * BATCH, begin + (first + count) * BATCH)
    return {name: values[rows] for name, values in columns.items()}


# %% The network. The wide part has a weight for each id, the deep part a vector that goes through layers.
# With is_sparse=True only the rows that a batch touches travel: to the trainer, and as gradients back.
def build():
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 4
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        page = fluid.data(name="page", shape=[None, DENSE], dtype="float32")
        click = fluid.data(name="click", shape=[None, 1], dtype="float32")
        wide, deep = [], [page]
        for name, size in (("user", USERS), ("ad", ADS), ("hour", HOURS)):
            ids = fluid.data(name=name, shape=[None, 1], dtype="int64")
            weight = fluid.ParamAttr(name=f"wide_{name}", initializer=fluid.initializer.Constant(0.0))
            vector = fluid.ParamAttr(name=f"deep_{name}", initializer=fluid.initializer.Normal(0.0, 0.05))
            wide.append(fluid.layers.embedding(ids, [size, 1], is_sparse=True, param_attr=weight))
            deep.append(fluid.layers.embedding(ids, [size, 8], is_sparse=True, param_attr=vector))
        # Fluid 1.8 drops the last 1 of the shape of ids: (batch, 1) becomes (batch, width).
        hidden = fluid.layers.fc(fluid.layers.concat(deep, axis=1), size=32, act="tanh")
        hidden = fluid.layers.fc(hidden, size=16, act="tanh")
        logit = fluid.layers.sums([fluid.layers.fc(hidden, size=1), *wide])
        loss = fluid.layers.mean(fluid.layers.sigmoid_cross_entropy_with_logits(logit, click))
        chance = fluid.layers.sigmoid(logit)
        test_program = main.clone(for_test=True)
        fluid.optimizer.Adagrad(learning_rate=0.05).minimize(loss)
    return main, startup, test_program, loss, chance


# %% One process of a job. The transpiler makes two kinds of programs out of one.
def play(role, day):
    main, startup, _, loss, _ = build()
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(
        trainer_id=role.index if role.kind == "trainer" else 0,
        program=main,
        startup_program=startup,
        pservers=",".join(role.servers),
        trainers=role.trainers,
        sync_mode=True,
    )
    saved = checkpoints.list()
    exe = fluid.Executor(fluid.CPUPlace())
    if role.kind == "server":
        serve(exe, transpiler, role.endpoint, saved)
    else:
        train(exe, transpiler.get_trainer_program(), startup, loss, role.index, day, saved)


def serve(exe, transpiler, endpoint, saved):
    program = transpiler.get_pserver_program(endpoint)
    exe.run(transpiler.get_startup_program(endpoint, program))
    if saved:  # a complete directory; this server reads its own rows of it
        print(fluid.io.load_persistables(exe, saved[-1].path, program), flush=True)
    exe.run(program)  # until every trainer has closed


def train(exe, program, startup, loss, trainer, day, saved):
    columns = impressions(day)
    exe.run(startup)  # waits for the servers and takes the parameters from them
    begin = saved[-1].step if saved else 0
    if trainer == 0 and not saved:
        checkpoints.save(exe, program, 0)  # the initial values
    for step in range(begin, day * STEPS):
        (value,) = exe.run(program, feed=batch_of(columns, step, trainer), fetch_list=[loss])
        print(f"step {step + 1}: loss {value.item():.4f}", flush=True)
        stumble(trainer, step)
        if trainer == 0:  # one of them saves, for all
            checkpoints.save(exe, program, step + 1, state={"day": day})
    exe.close()  # the servers end when all trainers have closed


def stumble(trainer, step):
    """On the third day trainer 1 is killed, once."""
    if trainer == 1 and step == 2 * STEPS + 40 and not (HOME / "stumbled").exists():
        (HOME / "stumbled").touch()
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__" and len(sys.argv) > 1:
    play(read_role(), int(sys.argv[1]))
    sys.exit()


# %% The jobs, one a day. The launcher starts servers and trainers, and starts them again if one is killed.
def job(day):
    command = [sys.executable, "-m", "paddlelike.distributed.launch", "--max_restarts", "10",
               "--server_num", str(SERVERS[day]), "--worker_num", str(TRAINERS),
               "--log_dir", str(HOME / f"log-{day}"), __file__, str(day)]  # fmt: skip
    subprocess.run(command, check=True, preexec_fn=die_with_parent())  # whoever ends this ends the job


HOME.mkdir(parents=True, exist_ok=True)
clock = time.perf_counter()
for day, servers in SERVERS.items():
    done = checkpoints.list()
    if done and done[-1].step >= day * STEPS:
        continue
    print(f"day {day}: {TRAINERS} trainers, {servers} servers", flush=True)
    job(day)
seconds = time.perf_counter() - clock
assert [checkpoint.step for checkpoint in checkpoints.list()][-1] == len(SERVERS) * STEPS


# %% How good it was each evening: the area under the ROC curve, on impressions of a day that nobody learned.
# What trainer 0 saved is whole, so that an ordinary program loads it, without any server.
def area(scores, clicks):
    """The chance that a click is ranked above an impression without one."""
    rank = np.empty(len(scores))
    rank[np.argsort(scores, kind="stable")] = np.arange(1, len(scores) + 1)
    yes = clicks.astype(bool)
    return (rank[yes].sum() - yes.sum() * (yes.sum() + 1) / 2) / (yes.sum() * (~yes).sum())


main, startup, test_program, loss, chance = build()
exe = fluid.Executor(fluid.CPUPlace())
unseen = impressions(day=99)
areas = []
for day in SERVERS:
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        (evening,) = [one for one in checkpoints.list() if one.step == day * STEPS]
        assert fluid.io.load_persistables(exe, evening.path, main)
        (scores,) = exe.run(test_program, feed=unseen, fetch_list=[chance])
    areas.append(area(scores[:, 0], unseen["click"][:, 0]))
    print(f"after day {day}: AUC {areas[-1]:.4f}")
assert areas == sorted(areas)
assert areas[-1] > 0.7

# %% The same as a picture.
import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.plot(list(SERVERS), areas, marker="o")
axes.set(xlabel="day", ylabel="AUC on unseen impressions", xticks=list(SERVERS))
figure.suptitle("Each evening's model; trainer 1 was killed on day 3")
figure.savefig(HOME / "auc.png", dpi=120)

# %% [markdown]
# ![The area under the ROC curve grows from day to day](out/clicks/auc.png)

# %% The same four days in one process without servers, each step on the rows of both trainers.
# The parameters do not depend on the number of servers or on the trainer that was killed.
with fluid.scope_guard(fluid.Scope()):
    exe.run(startup)
    assert fluid.io.load_persistables(exe, checkpoints.list()[0].path, main)
    for day in SERVERS:
        columns = impressions(day)
        for step in range((day - 1) * STEPS, day * STEPS):
            exe.run(main, feed=batch_of(columns, step), fetch_list=[loss])
    alone = {
        v.name: np.array(fluid.global_scope().find_var(v.name).get_tensor()) for v in main.all_parameters()
    }
assert (HOME / "stumbled").exists()
with fluid.scope_guard(fluid.Scope()):
    exe.run(startup)
    assert fluid.io.load_persistables(exe, checkpoints.list()[-1].path, main)
    for name, expected in alone.items():
        found = np.array(fluid.global_scope().find_var(name).get_tensor())
        # Not bit for bit: a mean of two means is rounded otherwise than the mean of all. (With relu for tanh
        # a rounding at its kink can be the difference between a gradient and none.)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3, err_msg=name)
    (last,) = exe.run(test_program, feed=unseen, fetch_list=[chance])

# %% Export for prediction: no label, no optimizer, no servers.
with fluid.scope_guard(fluid.Scope()):
    exe.run(startup)
    assert fluid.io.load_persistables(exe, checkpoints.list()[-1].path, main)
    inputs = ["page", "user", "ad", "hour"]
    fluid.io.save_inference_model(str(HOME / "model"), inputs, [chance], exe, main_program=main)

with fluid.scope_guard(fluid.Scope()):
    program, feeds, fetches = fluid.io.load_inference_model(str(HOME / "model"), exe)
    (served,) = exe.run(program, feed={name: unseen[name] for name in feeds}, fetch_list=fetches)
files = sorted(path.name for path in (HOME / "model").iterdir())
assert feeds == inputs
assert not any("moment" in name or "learning_rate" in name for name in files)
np.testing.assert_array_equal(served, last)

print(f"{len(SERVERS)} days, {len(SERVERS) * STEPS} rounds, one trainer killed, {seconds:.1f} s; "
      f"AUC {areas[0]:.3f} after day 1, {areas[-1]:.3f} after day {len(SERVERS)}")  # fmt: skip
print(f"the exported model, {len(files)} files, predicts the same: {HOME / 'model'}")
