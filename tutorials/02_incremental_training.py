"""Incremental training, day by day, on handwritten digits.

Every day new samples arrive. A new process builds the network, loads what the day before saved, learns
the new samples, saves, and ends. After five days the losses are those of one process that trained all
along, because each save holds the parameters, Adam's moments and the step of the learning-rate schedule.

It writes ``tutorials/out/digits/``: one directory per day and the loss curve, ``loss.png``.
"""

# %% The data: 1,797 digits of 8 x 8 pixels, which scikit-learn ships. Five days, and a test set.
import json
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import paddlelike as fluid

DAYS, EPOCHS, BATCH = 5, 4, 32
HOME = Path(__file__).parent / "out" / "digits"

images, labels = load_digits(return_X_y=True)
images = (images / 16).astype("float32").reshape(-1, 1, 8, 8)
labels = labels.astype("int64").reshape(-1, 1)
order = np.random.RandomState(7).permutation(len(labels))
test, train = order[:297], np.array_split(order[297:], DAYS)


# %% The network: convolution, batch normalisation, dropout, Adam with a decaying learning rate.
def build():
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 2020
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        image = fluid.data(name="image", shape=[None, 1, 8, 8], dtype="float32")
        label = fluid.data(name="label", shape=[None, 1], dtype="int64")
        hidden = fluid.layers.conv2d(image, num_filters=16, filter_size=3, padding=1)
        hidden = fluid.layers.batch_norm(hidden, act="relu")
        hidden = fluid.layers.pool2d(hidden, pool_size=2, pool_stride=2)
        hidden = fluid.layers.dropout(
            fluid.layers.fc(hidden, size=64, act="relu"),
            dropout_prob=0.2,
            dropout_implementation="upscale_in_train",
        )
        prediction = fluid.layers.fc(hidden, size=10, act="softmax")
        loss = fluid.layers.mean(fluid.layers.cross_entropy(prediction, label))
        accuracy = fluid.layers.accuracy(prediction, label)
        # The test program is the forward part alone; cloned before minimize, as Fluid advises.
        test_program = main.clone(for_test=True)
        rate = fluid.layers.exponential_decay(0.01, decay_steps=45 * EPOCHS, decay_rate=0.7)
        fluid.optimizer.Adam(learning_rate=rate).minimize(loss)
    return main, startup, test_program, image, label, loss, accuracy


# %% One day: load yesterday's state, learn today's samples, save.
def one_day(day, exe, network, load):
    main, _, test_program, image, label, loss, accuracy = network
    if load:
        print(fluid.io.load_persistables(exe, str(HOME / f"day-{day - 1}"), main))
    reader = fluid.io.batch(lambda: ((images[i], labels[i]) for i in train[day - 1]), batch_size=BATCH)
    feeder = fluid.DataFeeder(feed_list=[image, label], place=fluid.CPUPlace())
    losses = []
    for epoch in range(EPOCHS):
        for batch in reader():
            (value,) = exe.run(main, feed=feeder.feed(batch), fetch_list=[loss])
            losses.append(value.item())
        print(f"  day {day}, epoch {epoch + 1} of {EPOCHS}: loss {np.mean(losses[-8:]):.4f}", flush=True)
    (hits,) = exe.run(
        test_program, feed={"image": images[test], "label": labels[test]}, fetch_list=[accuracy]
    )
    return losses, hits.item()


def main_of_a_day(day):
    """Run the process of one day."""
    network = build()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(network[1])
    losses, accuracy = one_day(day, exe, network, load=day > 1)
    print(fluid.io.save_persistables(exe, str(HOME / f"day-{day}"), network[0]))
    # Bookkeeping beside the directory, never in it: Paddle's loaders read every file they find there.
    (HOME / f"day-{day}.json").write_text(json.dumps({"losses": losses, "accuracy": accuracy}))


if __name__ == "__main__" and len(sys.argv) > 1:
    main_of_a_day(int(sys.argv[1]))
    sys.exit()

# %% Five processes, one after the other.
HOME.mkdir(parents=True, exist_ok=True)
begin = time.perf_counter()
days = []
for day in range(1, DAYS + 1):
    print(f"day {day}: {len(train[day - 1])} new samples, a new process", flush=True)
    subprocess.run([sys.executable, __file__, str(day)], check=True)
    days.append(json.loads((HOME / f"day-{day}.json").read_text()))
    print(f"  accuracy on {len(test)} digits never seen: {days[-1]['accuracy']:.1%}\n", flush=True)
seconds = time.perf_counter() - begin

# %% One process that trains all the days, for comparison.
network = build()
exe = fluid.Executor(fluid.CPUPlace())
exe.run(network[1])
whole = []
for day in range(1, DAYS + 1):
    losses, accuracy = one_day(day, exe, network, load=False)
    whole += losses

resumed = [loss for day in days for loss in day["losses"]]
assert resumed == whole, "five processes and one process differ"
assert days[-1]["accuracy"] == accuracy
assert accuracy > 0.93
assert days[-1]["accuracy"] > days[0]["accuracy"]

# %% The curve, with the restarts marked.
import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

steps = np.arange(1, len(resumed) + 1)
figure, axes = plt.subplots(figsize=(9, 4.5), layout="constrained")
axes.plot(steps, whole, color="0.8", linewidth=4, label="one process")
axes.plot(steps, resumed, color="tab:blue", linewidth=1, label="a new process every day")
edges = np.cumsum([0] + [len(day["losses"]) for day in days])
for day, (left, right) in enumerate(pairwise(edges), start=1):
    axes.axvline(left, color="0.7", linewidth=0.8, linestyle="--")
    axes.text((left + right) / 2, 1.01, f"day {day}: {days[day - 1]['accuracy']:.1%}", ha="center",
              va="bottom", transform=axes.get_xaxis_transform(), fontsize=9)  # fmt: skip
axes.set(xlabel="training step", ylabel="loss (cross entropy)", xlim=(0, len(resumed)), yscale="log")
figure.suptitle("Digits, learned day by day: accuracy on unseen digits after each day")
axes.legend(loc="lower left")
picture = HOME / "loss.png"
figure.savefig(picture, dpi=120)

print(f"{DAYS} days, {len(resumed)} steps, {seconds:.1f} s; accuracy on unseen digits "
      f"{days[0]['accuracy']:.1%} after day 1, {accuracy:.1%} after day {DAYS}")  # fmt: skip
print("the losses of five processes and of one are equal, bit for bit")
print(f"the loss curve is in {picture}")

# %% [markdown]
# ![Losses of five days: five processes and one process draw the same curve](out/digits/loss.png)

# %% A table too large to write every time: with delta=True a save writes the rows that changed.
main, startup = fluid.Program(), fluid.Program()
with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    words = fluid.data("words", [None, 1], "int64")
    vectors = fluid.layers.embedding(words, [50_000, 16], is_sparse=True, param_attr="vectors")
    cost = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(vectors, 1)))
    fluid.optimizer.Adagrad(0.1).minimize(cost)
exe, saved = fluid.Executor(fluid.CPUPlace()), HOME / "rows"
with fluid.scope_guard(fluid.Scope()):
    exe.run(startup)
    first = fluid.io.save_persistables(exe, saved, main, delta=True)
    exe.run(main, feed={"words": np.arange(100).reshape(-1, 1)})
    second = fluid.io.save_persistables(exe, saved, main, delta=True)
    table = np.array(fluid.global_scope().find_var("vectors").get_tensor())
with fluid.scope_guard(fluid.Scope()):
    fluid.io.load_persistables(exe, saved, main)
    assert np.array(fluid.global_scope().find_var("vectors").get_tensor()).tobytes() == table.tobytes()
assert first.written_bytes > 6_400_000
assert second.written_bytes < 2 * 1.2 * 100 * (16 * 4 + 8)  # the rows of the table and of Adagrad's moments
print(f"the first save wrote {first.written_bytes} bytes, the one after a step {second.written_bytes}")

# %% Real Paddle does not know such chains of changed rows: written whole, the directory is for Paddle again.
assert sorted(fluid.io.compact(saved).files) == ["vectors", "vectors_moment_0"]
