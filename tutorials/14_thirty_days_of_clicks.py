"""Thirty days of clicks on tables that grow and forget: hourly deltas, a daily base, a model that follows.

Users and ads come and go, so nobody knows how many ids there will be. Servers keep their rows in growing
tables: an id gets a row when it was seen twice, and loses it when it was not seen for a week. Every hour the
rows that changed are saved, every night a base. On day 10 a server is killed; from day 16 on there are three
servers, not two. Meanwhile a model in another process predicts, and follows the saves.

The script starts the jobs, writes ``tutorials/out/thirty_days/`` (THIRTY_DAYS_HOME names another directory)
and checks its claims. Every process of a job runs the same script.
"""

# %% Thirty days of three hours, two trainers; the role of this process.
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import paddlelike as fluid
from paddlelike.distributed import growing_tables as tables, resumable_steps
from paddlelike.distributed.launch.local import die_with_parent

DAYS, HOURS, STEPS, TRAINERS, BATCH = 30, 3, 4, 2, 256
SERVERS = {15: 2, 30: 3}  # by the last day of each job
WIDTH, WEEK = 16, 7
HOME = Path(os.environ.get("THIRTY_DAYS_HOME", Path(__file__).parent / "out" / "thirty_days"))
SAVES, NOTES = HOME / "saves", HOME / "notes.jsonl"


# %% The log of an hour. Each day some users and ads are new and as many have left; ids are numbers of 64
# bits, as hashes of names are. Clicks are drawn from odds, which are all that a model can learn.
def impressions(hour, count=STEPS * TRAINERS * BATCH):
    log, day = np.random.RandomState(hour), hour // HOURS
    user = log.zipf(1.2, count) % 12_000 + 120 * day  # some come often, most hardly ever
    ad = log.randint(0, 400, count) + 8 * day
    taste = lambda ids, salt: np.sin(ids * 12.9898 + salt) * 1.6  # noqa: E731
    odds = taste(user, 1) + taste(ad, 2) - 0.5
    click = log.uniform(0, 1, count) < 1 / (1 + np.exp(-odds))
    spread = np.int64(0x1E3779B97F4A7C15)
    columns = {"user": user * spread, "ad": ad * spread + 1}  # wraps around: any number is an id
    found = {name: values.astype("int64").reshape(-1, 1) for name, values in columns.items()}
    return found | {"click": click.astype("float32").reshape(-1, 1)}


# %% The network: a row for each user and each ad, and a layer on both.
def build():
    click = fluid.data("click", [None, 1])
    rows = []
    for name in ("user", "ad"):
        ids = fluid.data(name, [None, 1], "int64")
        start = fluid.ParamAttr(f"{name}_rows", initializer=fluid.initializer.Normal(0.0, 0.05))
        found = tables.sparse_embedding(ids, [1, WIDTH], entry=tables.CountFilterEntry(2), param_attr=start)
        rows.append(fluid.layers.reshape(found, [-1, WIDTH]))
    hidden = fluid.layers.fc(fluid.layers.concat(rows, axis=1), 16, act="tanh")
    logit = fluid.layers.fc(hidden, 1)
    loss = fluid.layers.mean(fluid.layers.sigmoid_cross_entropy_with_logits(logit, click))
    return loss, fluid.layers.sigmoid(logit)


# %% One process of a job. ``mode=1`` saves a base, ``mode=2`` what changed since the save before.
def play(last_day):
    from paddlelike.incubate.fleet.base.role_maker import PaddleCloudRoleMaker
    from paddlelike.incubate.fleet.parameter_server.distribute_transpiler import fleet

    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 7
    loss, _ = build()
    fleet.init(PaddleCloudRoleMaker())
    fleet.distributed_optimizer(fluid.optimizer.Adagrad(0.1)).minimize(loss)
    if fleet.is_server():
        (HOME / f"server{fleet.server_index()}.pid").write_text(str(os.getpid()))
        fleet.init_server(str(SAVES) if SAVES.exists() else None)  # this server's rows, of whatever number
        fleet.run_server()
        return
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    for step in resumable_steps(last_day * HOURS * STEPS):
        hour, at = divmod(step, STEPS)
        first = (TRAINERS * at + fleet.worker_index()) * BATCH
        mine = slice(first, first + BATCH)
        exe.run(fleet.main_program, feed={name: one[mine] for name, one in impressions(hour).items()})
        if at == STEPS - 1:
            end_hour(fleet, exe, hour)
    fleet.stop_worker()


def end_hour(fleet, exe, hour):
    night = hour % HOURS == HOURS - 1
    if night:
        fleet.shrink(delete_after_unseen_days=WEEK)
    report = fleet.save_persistables(exe, str(SAVES), mode=1 if night else 2)
    held = [fleet.print_table_stat(name) for name in ("user_rows", "ad_rows")] if night else []
    if fleet.is_first_worker():
        note = {"hour": hour, "bytes": report.written_bytes, "all": report.nbytes, "time": time.time()}
        if night:
            note["held"] = {key: sum(one[key] for one in held) for key in ("rows", "ids", "bytes")}
        with NOTES.open("a") as file:
            file.write(json.dumps(note) + "\n")
        if hour == 9 * HOURS + 1 and not (HOME / "killed").exists():
            (HOME / "killed").touch()
            os.kill(int((HOME / "server1.pid").read_text()), signal.SIGKILL)
    fleet.barrier_worker()


if __name__ == "__main__" and len(sys.argv) > 1:
    play(int(sys.argv[1]))
    sys.exit()


# %% A model for prediction, before anything is learned: it will follow the saves.
def area(scores, clicks):
    """The chance that a click is ranked above an impression without one."""
    rank = np.empty(len(scores))
    rank[np.argsort(scores, kind="stable")] = np.arange(1, len(scores) + 1)
    yes = clicks.astype(bool)
    return (rank[yes].sum() - yes.sum() * (yes.sum() + 1) / 2) / (yes.sum() * (~yes).sum())


shutil.rmtree(HOME, ignore_errors=True)
HOME.mkdir(parents=True)
main, startup = fluid.Program(), fluid.Program()
with fluid.program_guard(main, startup), fluid.unique_name.guard():
    _, chance = build()
exe = fluid.Executor(fluid.CPUPlace())
exe.run(startup)
fluid.io.save_inference_model(str(HOME / "model"), ["user", "ad"], [chance], exe, main.clone(for_test=True))
predictor = fluid.core.create_paddle_predictor(fluid.core.AnalysisConfig(str(HOME / "model")))
follower = predictor.follow(SAVES)


def predict(columns):
    for name in ("user", "ad"):
        predictor.get_input_tensor(name).copy_from_cpu(columns[name])
    predictor.zero_copy_run()
    return predictor.get_output_tensor(predictor.get_output_names()[0]).copy_to_cpu()[:, 0]


# %% The two jobs. While they run, the predictor answers for the hour that comes next, from the newest save.
scores, lags, taken = {}, [], 0
for last_day, servers in SERVERS.items():
    command = [sys.executable, "-m", "paddlelike.distributed.launch", "--max_restarts", "3",
               "--server_num", str(servers), "--worker_num", str(TRAINERS),
               "--log_dir", str(HOME / f"log-{last_day}"), __file__, str(last_day)]  # fmt: skip
    with subprocess.Popen(command, preexec_fn=die_with_parent()) as job:
        while job.poll() is None or follower.refresh():
            follower.refresh()
            if follower.taken == taken:
                time.sleep(0.02)
                continue
            taken = follower.taken
            saved = (SAVES / "__manifest__").stat().st_mtime
            lags.append(time.time() - saved)
            hour = json.loads(NOTES.read_text().splitlines()[-1])["hour"] if NOTES.exists() else 0
            unseen = impressions(hour + 1, 4000)
            scores[hour + 1] = area(predict(unseen), unseen["click"][:, 0])
    assert job.returncode == 0
notes = {note["hour"]: note for note in map(json.loads, NOTES.read_text().splitlines())}
assert (HOME / "killed").exists()
assert sorted(notes) == list(range(DAYS * HOURS))

# %% What it comes to.
nights = [notes[hour] for hour in notes if hour % HOURS == HOURS - 1]
deltas = [notes[hour]["bytes"] for hour in notes if hour % HOURS != HOURS - 1]
bases = [note["bytes"] for note in nights]
held = [note["held"] for note in nights]
every = [impressions(hour) for hour in range(DAYS * HOURS)]
came = [sum(len(np.unique(np.concatenate([one[name] for one in every[: (day + 1) * HOURS]])))
            for name in ("user", "ad")) for day in range(DAYS)]  # fmt: skip
late = [score for hour, score in scores.items() if hour > 5 * HOURS]
print(f"a base {np.median(bases) / 1e3:.0f} kB, a delta {np.median(deltas) / 1e3:.0f} kB")
print(f"{came[-1]} ids came, {held[-1]['rows']:.0f} have rows; {len(scores)} saves were followed")
print(f"lag {np.median(lags):.2f} s, AUC of the next hour {np.mean(late):.3f}")
assert held[-1]["rows"] < 0.5 * came[-1]  # of a week, and twice seen, not of all days
week = [one["bytes"] for one in held[2 * WEEK :]]
assert max(week) < 1.1 * min(week)  # memory stays, though ids go on coming
assert np.median(deltas) < 0.75 * np.median(bases)  # which hold what changed in a day
assert np.mean(late) > 0.7

# %% The same job again, from its last save, in one process without servers: what they saved is whole.
with fluid.scope_guard(fluid.Scope()), fluid.program_guard(fluid.Program(), fluid.Program()):
    with fluid.unique_name.guard():
        loss, chance = build()
        test = fluid.default_main_program().clone(for_test=True)
        fluid.optimizer.Adagrad(0.1).minimize(loss)
    exe.run(fluid.default_startup_program())
    print(fluid.io.load_persistables(exe, str(SAVES)))
    unseen = impressions(DAYS * HOURS, 4000)
    (found,) = exe.run(test, feed=unseen, fetch_list=[chance])
    np.testing.assert_allclose(found[:, 0], predict(unseen), 1e-5)  # the follower has the last save
    exe.run(feed=unseen)  # and training goes on

# %% As pictures.
import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

figure, ((a, b), (c, d)) = plt.subplots(2, 2, figsize=(9, 5.5), layout="constrained")
a.bar(list(notes), [note["bytes"] / 1e3 for note in notes.values()], width=1.0)
a.set(title="bytes of each save (kB)", xlabel="hour")
b.plot(range(1, DAYS + 1), [one["rows"] for one in held], label="rows on the servers")
b.plot(range(1, DAYS + 1), came, "--", label="ids that came")
b.set(title="memory", xlabel="day", ylim=0)
b.legend()
c.plot(list(scores), list(scores.values()))
c.axvline(9 * HOURS + 1, color="red", lw=0.8)
c.axvline(15 * HOURS, color="gray", lw=0.8)
c.set(title="AUC of the next hour\n(red: a server killed; gray: a third server)", xlabel="hour")
d.plot(np.array(lags))
d.set(title="from a save to the model that predicts (s)", xlabel="saves followed", ylim=0)
figure.savefig(HOME / "thirty_days.png", dpi=110)

# %% [markdown]
# ![Bytes of the saves, rows on the servers, AUC of the next hour and lag](out/thirty_days/thirty_days.png)
