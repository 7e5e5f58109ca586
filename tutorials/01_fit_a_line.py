"""Fit a line: build, train, save, stop, load, continue.

The first script of Fluid's book, with one line changed: the import. Its files go to ``tutorials/out/``.
"""

# %% Data: 13 numbers in, one number out.
from pathlib import Path

import numpy as np

import paddlelike as fluid

OUT = Path(__file__).parent / "out"
CHECKPOINT = str(OUT / "fit_a_line")

rng = np.random.RandomState(0)
X = rng.uniform(-1, 1, (256, 13)).astype("float32")
Y = (X @ np.linspace(-1, 1, 13, dtype="float32")[:, None] + 0.5).astype("float32")


# %% A network is built into two programs.
# The main program computes and trains; the startup program gives the variables their first values.
def build():
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 90
    # Fresh counters: the same network gets the same names, so that its files are found again.
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x = fluid.data(name="x", shape=[None, 13], dtype="float32")
        y = fluid.data(name="y", shape=[None, 1], dtype="float32")
        prediction = fluid.layers.fc(input=x, size=1)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(input=prediction, label=y))
        fluid.optimizer.Momentum(learning_rate=0.02, momentum=0.9).minimize(loss)
    return main, startup, loss


def train(exe, main, loss, steps):
    losses = []
    for step in steps:
        rows = slice(step * 32 % 256, step * 32 % 256 + 32)
        (value,) = exe.run(main, feed={"x": X[rows], "y": Y[rows]}, fetch_list=[loss])
        losses.append(value.item())
    return losses


# %% Three kinds of variables: parameters are trained, persistables live on, temporaries die with each run.
main, startup, loss = build()
kinds = {v.name: fluid.framework.variable_kind(v) for v in main.list_vars()}
for name, kind in kinds.items():
    print(f"{kind:12s} {name}")
assert kinds["fc_0.w_0"] == "parameter"
assert kinds["fc_0.w_0_velocity_0"] == "persistable"
assert kinds["fc_0.tmp_0"] == "temporary"

# %% Train 20 steps, and 20 more: this is what an uninterrupted run gives.
exe = fluid.Executor(fluid.CPUPlace())
with fluid.scope_guard(fluid.Scope()):
    exe.run(startup)
    first = train(exe, main, loss, range(20))
    # Save what training needs to continue: parameters, moments, the learning rate. One file per variable.
    print(fluid.io.save_persistables(exe, CHECKPOINT, main))
    whole = first + train(exe, main, loss, range(20, 40))

# %% Another process would begin like this: build the same network, run startup, load, continue.
main, startup, loss = build()
with fluid.scope_guard(fluid.Scope()):
    exe.run(startup)
    report = fluid.io.load_persistables(exe, CHECKPOINT, main)
    print(report)
    assert report
    resumed = first + train(exe, main, loss, range(20, 40))

print(f"loss: {whole[0]:.4f} at the start, {whole[19]:.4f} when saved, {whole[-1]:.4f} at the end")
assert resumed == whole  # the same bits, as if nothing had happened
assert whole[-1] < 0.05 * whole[0]

# %% A log of the losses survives restarts, too; its picture marks them.
# It stands beside the checkpoint, never in it: Paddle takes every file there for a variable.
LOG = OUT / "fit_a_line.jsonl"
LOG.unlink(missing_ok=True)
for run, begin in ((resumed[:20], 0), (resumed[20:], 20)):
    log = fluid.io.TrainingLog(LOG)
    for step, value in enumerate(run, begin):
        log.write(step, loss=value)
assert log.restarts() == [20]
assert log.curves()["loss"].values == tuple(resumed)
log.plot(OUT / "fit_a_line.png")

# %% [markdown]
# ![The loss falls from step to step; the restart at step 20 does not show](out/fit_a_line.png)

# %% The parameters alone are not enough to continue: the momentum is lost.
with fluid.scope_guard(fluid.Scope()):
    exe.run(startup)
    fluid.io.load_vars(exe, CHECKPOINT, main, predicate=fluid.io.is_parameter)
    without_momentum = first + train(exe, main, loss, range(20, 40))
assert without_momentum[20] == whole[20]  # the same parameters ...
assert without_momentum[21:] != whole[21:]  # ... but other steps

# %% A load that does not fit changes nothing, and says everything that is wrong at once.
with fluid.scope_guard(fluid.Scope()):
    other, other_startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(other, other_startup):
        fluid.layers.fc(input=fluid.data(name="x", shape=[None, 7], dtype="float32"), size=1)
    exe.run(other_startup)
    before = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    try:
        fluid.io.load_persistables(exe, CHECKPOINT, other)
    except fluid.core.EnforceNotMet as error:
        print(error)
        assert "[13, 1]" in str(error)
        assert "[7, 1]" in str(error)
    else:
        raise AssertionError("a weight of another shape was accepted")
    assert np.array_equal(before, fluid.global_scope().find_var("fc_0.w_0").get_tensor())
