"""Coming from CNTK: trainers, minibatch sources, sessions, and checkpoints that survive kill -9.

CNTK's names do what they did: ``Trainer``, ``training_session``, ``CheckpointConfig``, ``MinibatchSource``.
The network is one of Fluid's. A process that is killed while it trains, and started again, ends with the
same bits.

It writes ``tutorials/out/cntk/``: checkpoints, the losses, and their picture, ``losses.png``.
"""

# %% The data: 1,797 digits of 8 x 8 pixels, which scikit-learn ships; the last 297 are for tests.
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import paddlelike as fluid
from paddlelike import training

HOME = Path(__file__).resolve().parent / "out" / "cntk"

images, labels = load_digits(return_X_y=True)
images, labels = (images / 16).astype("float32"), labels.astype("int64").reshape(-1, 1)
order = np.random.RandomState(7).permutation(len(labels))
images, labels = images[order], labels[order]


# %% The network: dropout, batch normalisation, Adam with a decaying rate, so that there is much to restore.
def build():
    fluid.default_startup_program().random_seed = 1
    fluid.global_scope().generator.state = 2  # the masks of dropout
    x, y = fluid.data("features", [None, 64]), fluid.data("labels", [None, 1], "int64")
    hidden = fluid.layers.batch_norm(fluid.layers.fc(x, 48), act="relu")
    z = fluid.layers.softmax(fluid.layers.fc(fluid.layers.dropout(hidden, 0.3), 10))
    loss = fluid.layers.cross_entropy(z, y)
    error = 1.0 - fluid.layers.accuracy(z, y)
    rate = fluid.layers.exponential_decay(0.01, decay_steps=100, decay_rate=0.8)
    return z, (loss, error), fluid.optimizer.Adam(rate)


def make_trainer(*writers):
    z, criterion, learner = build()
    return training.Trainer(z, criterion, [learner], list(writers))


@contextmanager
def new_process():
    """What a new process has: no programs, no names, no values."""
    programs = fluid.program_guard(fluid.Program(), fluid.Program())
    with programs, fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        yield


# %% A source in CNTK's text format: it reads at any position of a file, shuffles, and knows where it is.
HOME.mkdir(parents=True, exist_ok=True)
DATA = HOME / "digits.ctf"


def write_text(path):
    with open(path, "w") as file:
        for image, label in zip(images[:1500], labels[:1500, 0], strict=True):
            one_hot = " ".join("1" if digit == label else "0" for digit in range(10))
            file.write(f"|labels {one_hot} |features {' '.join(f'{value:g}' for value in image)}\n")


def make_source():
    streams = training.StreamDefs(
        features=training.StreamDef(field="features", shape=64),
        labels=training.StreamDef(field="labels", shape=10, ids=True),  # one-hot there, an index for Fluid
    )
    return training.MinibatchSource(training.CTFDeserializer(DATA, streams), randomize=True)


# %% A session: everything between two lines of a script that may be killed at any instant.
def train(folder):
    printer = training.ProgressPrinter(freq=None, num_epochs=5)
    log = training.LossLog(folder / "losses.jsonl", freq=5)
    trainer, source = make_trainer(printer, log), make_source()
    test = training.MinibatchSourceFromData({"features": images[1500:], "labels": labels[1500:]}, 297)
    training.training_session(
        trainer,
        source,
        mb_size=25,
        model_inputs_to_streams={"features": source.streams.features, "labels": source.streams.labels},
        progress_frequency=1500,
        max_samples=7500,
        checkpoint_config=training.CheckpointConfig(folder / "model", frequency=500, keep_best=2),
        cv_config=training.CrossValidationConfig(test, frequency=1500, minibatch_size=99),
    ).train()
    return trainer


# %% Several processes, as in CNTK: all save, the first one writes, and each gets its own state back.
def train_together():
    z, criterion, learner = build()
    learner = training.data_parallel_distributed_learner(learner)
    trainer = training.Trainer(z, criterion, [learner])
    checkpoint = HOME / "together" / "model"
    if trainer.is_server:  # CNTK has none: it keeps the parameters and updates them
        trainer.serve(checkpoint)
        return
    workers, source = trainer.workers, make_source()
    for _ in range(10):
        share = source.next_minibatch(50, number_of_workers=workers.size, worker_rank=workers.rank)
        trainer.train_minibatch(share)
    state = {"source": source.get_checkpoint_state(), "worker": f"{workers.rank} of {workers.size}"}
    trainer.save_checkpoint(checkpoint, state)
    restored = trainer.restore_from_checkpoint(checkpoint)
    source.restore_from_checkpoint(restored["source"])
    assert restored == state
    print("worker", restored["worker"], "has its own state again", flush=True)
    trainer.close()


if __name__ == "__main__" and len(sys.argv) > 1:
    train_together() if sys.argv[1] == "together" else train(Path(sys.argv[1]))
    sys.exit()

# %% By hand, minibatch by minibatch: the state of the source goes into the trainer's checkpoint.
write_text(DATA)
CHECKPOINT = HOME / "by_hand" / "model"
with new_process():
    trainer, source = make_trainer(), make_source()
    for _ in range(20):
        trainer.train_minibatch(source.next_minibatch(25))
    trainer.save_checkpoint(CHECKPOINT, source.get_checkpoint_state())
    print("saved after", trainer.total_number_of_samples_seen, "samples:", source.get_checkpoint_state())
    wanted = []
    for _ in range(10):
        trainer.train_minibatch(source.next_minibatch(25))
        wanted.append(trainer.previous_minibatch_loss_average)

with new_process():
    trainer, source = make_trainer(), make_source()
    source.restore_from_checkpoint(trainer.restore_from_checkpoint(CHECKPOINT))
    found = []
    for _ in range(10):
        trainer.train_minibatch(source.next_minibatch(25))
        found.append(trainer.previous_minibatch_loss_average)
assert found == wanted, "a restored trainer goes on with the same losses, to the bit"
print("the next ten losses are equal:", ", ".join(f"{loss:.3f}" for loss in found[:5]), "...")


# %% The same in three processes, a server and two workers; their output is in ``log/``.
job = HOME / "together"
shutil.rmtree(job, ignore_errors=True)
job.mkdir()
launch = [sys.executable, "-m", "paddlelike.distributed.launch", "--server_num=1", "--worker_num=2"]
subprocess.run([*launch, __file__, "together"], cwd=job, check=True)
said = [(job / "log" / f"workerlog.{rank}").read_text() for rank in (0, 1)]
print(*said, sep="", end="")
assert "worker 0 of 2 has" in said[0]
assert "worker 1 of 2 has" in said[1]
assert sorted(path.name for path in job.iterdir()) == ["log", "model"], "one checkpoint, written by the first"


# %% A session that nobody disturbs, and one that is killed again and again, by SIGKILL, while it trains.
def start(folder):
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.Popen(
        [sys.executable, __file__, str(folder)], env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


for name in ("whole", "killed"):
    shutil.rmtree(HOME / name, ignore_errors=True)
assert start(HOME / "whole").wait() == 0

log = fluid.io.TrainingLog(HOME / "killed" / "losses.jsonl")
KILLS = (700, 2600, 5100)  # samples
for samples in KILLS:
    process = start(HOME / "killed")
    while max((curve.steps[-1] for curve in log.curves().values()), default=0) < samples // 25:
        assert process.poll() is None, "it ended before it was killed"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    print(f"killed after {samples} samples or a few more", flush=True)
assert start(HOME / "killed").wait() == 0

# %% Nothing tells them apart: neither the losses nor the files of the checkpoints.
whole = fluid.io.TrainingLog(HOME / "whole" / "losses.jsonl").curves()
assert log.curves() == whole
assert len(log.restarts()) == len(KILLS)


def read(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "__manifest__"}


names = sorted(path.name for path in (HOME / "whole").iterdir() if path.name.startswith("model"))
assert names == sorted(path.name for path in (HOME / "killed").iterdir() if path.name.startswith("model"))
for name in names:
    assert read(HOME / "whole" / name) == read(HOME / "killed" / name)
print(f"{len(names)} checkpoints are equal, bit for bit: {', '.join(names)} (the newest, and the two best)")

# %% The picture: the losses of the killed training over those of the other, with the restarts.
import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(9, 4.5), layout="constrained")
axes.plot(*whole["loss"], color="0.8", linewidth=5, label="never killed")
axes.plot(*log.curves()["loss"], color="tab:blue", linewidth=1, label="killed three times")
axes.plot(*whole["test"], "o", color="tab:green", label="share of errors on unseen digits")
for step in log.restarts():
    axes.axvline(step, color="0.5", linewidth=0.8, linestyle="--")
    axes.text(
        step, 1.01, "restart", ha="center", va="bottom", transform=axes.get_xaxis_transform(), fontsize=9
    )
axes.set(xlabel="minibatch", ylabel="loss (cross entropy)", yscale="log")
axes.legend(loc="lower left")
figure.savefig(HOME / "losses.png", dpi=120)

# %% [markdown]
# ![The losses of a training that was killed three times are those of one that was not](out/cntk/losses.png)

# %% A checkpoint is a directory of Paddle's files; another optimizer is refused before anything changes.
with new_process():
    z, criterion, learner = build()
    other = training.Trainer(z, criterion, [fluid.optimizer.Momentum(0.01, 0.9)])
    try:
        other.restore_from_checkpoint(HOME / "whole" / "model")
    except fluid.core.EnforceNotMet as error:
        print(error)
        assert "updated by momentum, in the checkpoint by adam" in str(error)
    else:
        raise AssertionError("the state of another optimizer was accepted")

# %% In one call: arrays instead of a source, CNTK's ``criterion.train``.
with new_process():
    z, criterion, learner = build()
    summary = training.train(
        criterion,
        (images[:1500], labels[:1500]),
        minibatch_size=25,
        parameter_learners=[learner],
        callbacks=[training.CheckpointConfig(HOME / "one_call" / "model", restore=False)],
        max_epochs=2,
    )
errors = [epoch["metric"] for epoch in summary["epoch_summaries"]]
print("share of errors by epoch:", ", ".join(f"{error:.1%}" for error in errors))
assert errors[1] < errors[0]
