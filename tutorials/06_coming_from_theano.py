"""Coming from Theano: pickles, ``__getstate__``, bundles of NPY arrays; and which form for how long.

``paddlelike.bundle`` stands for ``theano.misc.pkl_utils``. Its files have Theano's layout: Theano reads their
arrays and plain objects, and its own files open here without it. They go to ``tutorials/out/theano/``.

| time between saving and loading | form | what must not change |
|---|---|---|
| hours or days, the same release | a pickle of programs, scope, optimizer, loaders | the data files |
| months; other Pythons and people | a bundle: arrays as NPY files, the rest a pickle | the classes |
| years | only the values, by name: a bundle of a dict, ``fluid.save`` | the names |
"""

# %% A model: what Theano's shared variables are here is the scope, an array for each name.
import pickle
import zipfile
from pathlib import Path

import numpy as np

import paddlelike as fluid
from paddlelike import bundle

OUT = Path(__file__).parent / "out" / "theano"
OUT.mkdir(parents=True, exist_ok=True)

x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
hidden = fluid.layers.fc(x, 8, act="tanh", param_attr="hidden_W", bias_attr="hidden_b")
out = fluid.layers.fc(hidden, 1, param_attr="out_W", bias_attr="out_b")
loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
optimizer = fluid.optimizer.Adam(learning_rate=0.05)
optimizer.minimize(loss)
main, scope = fluid.default_main_program(), fluid.global_scope()
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())


def train(program, steps):
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(steps):
        batch = rng.uniform(-1, 1, (16, 4)).astype("float32")
        feed = {"x": batch, "y": batch.sum(axis=1, keepdims=True)}
        losses.append(exe.run(program, feed=feed, fetch_list=[loss.name])[0].item())
    return losses


losses = train(main, 50)
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
assert losses[-1] < losses[0] / 3

# %% Short term: pickle everything, binary, with the highest protocol. Training continues with the same bits.
with (OUT / "run.pkl").open("wb") as file:
    pickle.dump((main, scope, optimizer), file, protocol=pickle.HIGHEST_PROTOCOL)
with (OUT / "run.pkl").open("rb") as file:
    main2, scope2, optimizer2 = pickle.load(file)
with fluid.scope_guard(scope2):
    again = train(main2, 5)
assert again == train(main, 5)
values = {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()}

sizes = [len(pickle.dumps(values, protocol)) for protocol in (0, pickle.HIGHEST_PROTOCOL)]
print("bytes with protocol 0 and with the highest:", sizes)
assert sizes[1] < sizes[0]

# %% Several objects in one file come back in their order.
bundle.dump_all(OUT / "objects.pkl", [values["hidden_W"], {"epoch": 7}, "done"])
weight, facts, text = bundle.load_all(OUT / "objects.pkl")
assert np.array_equal(weight, values["hidden_W"])
assert (facts, text) == ({"epoch": 7}, "done")


# %% ``__getstate__`` says what is saved: leave the training set out, and read it again.
class Experiment:
    def __init__(self, training_set_file):
        self.training_set_file = str(training_set_file)
        self.training_set = np.load(self.training_set_file)
        self.best = None

    def __getstate__(self):
        state = dict(vars(self))
        del state["training_set"]
        return state

    def __setstate__(self, state):
        vars(self).update(state)
        self.training_set = np.load(self.training_set_file)


np.save(OUT / "train.npy", np.arange(1000.0))
experiment = Experiment(OUT / "train.npy")
experiment.best = values["out_W"]
bundle.dump(experiment, OUT / "experiment.zip")
assert (OUT / "experiment.zip").stat().st_size < 2000  # the training set alone is 8000 bytes
loaded = bundle.load(OUT / "experiment.zip", classes=[Experiment])
assert np.array_equal(loaded.training_set, experiment.training_set)

# The price: without that other file the experiment cannot be loaded. Its arrays can.
(OUT / "train.npy").rename(OUT / "moved.npy")
try:
    bundle.load(OUT / "experiment.zip", classes=[Experiment])
except FileNotFoundError as error:
    print("refused:", error)
    assert "train.npy" in str(error)
else:
    raise AssertionError("the training set is gone")
assert np.array_equal(bundle.arrays(OUT / "experiment.zip")["best"], values["out_W"])

# Data sets and loaders of this package do the same: their samples are not in a pickle.
(OUT / "part").write_text("1 1.5\n1 2.5\n")
dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
dataset.set_use_var([fluid.data("z", [None, 1])])
dataset.set_filelist([str(OUT / "part")])
dataset.load_into_memory()
assert pickle.loads(pickle.dumps(dataset)).get_memory_data_size() == 2

# %% For others: a bundle. Arrays are members named by their variables; numpy alone reads them, in any Python.
bundle.dump(scope, OUT / "model.zip")
with np.load(OUT / "model.zip") as seen:
    print("numpy sees", sorted(seen.files)[:4], "...")
    assert np.array_equal(seen["hidden_W"], values["hidden_W"])
with zipfile.ZipFile(OUT / "model.zip") as archive:
    assert archive.namelist()[-1] == "pkl"  # Theano's layout
same = bundle.load(OUT / "model.zip")
assert np.array_equal(np.array(same.find_var("out_b").get_tensor()), values["out_b"])

# %% One array is one member, and stays shared. Names never collide, as Theano's can (x, x and x_2).
shared = np.ones(3)
bundle.dump({"x": shared, "tied": shared, "more": {"x": np.zeros(2)}}, OUT / "shared.zip")
tied = bundle.load(OUT / "shared.zip")
assert tied["x"] is tied["tied"]
assert list(bundle.arrays(OUT / "shared.zip")) == ["x", "x_2"]


# %% Loading executes nothing that a file says: a class of yours is used only when you pass it.
class Stranger:
    def __reduce__(self):
        return print, ("executed",)


bundle.dump(Stranger(), OUT / "stranger.zip")
try:
    bundle.load(OUT / "stranger.zip")
except fluid.errors.FormatError as error:
    print("refused:", str(error).splitlines()[0])
else:
    raise AssertionError("print must not be called")


# %% Long term: only the values that are needed, by name. They outlive classes, releases and this package.
bundle.dump(values, OUT / "values.zip")
scope.find_var("hidden_W").get_tensor().set(np.zeros((4, 8), "float32"))
fluid.set_program_state(main, bundle.load(OUT / "values.zip"))
assert np.array_equal(np.array(scope.find_var("hidden_W").get_tensor()), values["hidden_W"])


# %% Attributes that were renamed: map them at the load, or adapt ``__setstate__``, as Theano's text shows.
class Affine:
    def __init__(self, weights, bias):
        self.W, self.b = weights, bias


bundle.dump(Affine(values["out_W"], values["out_b"]), OUT / "affine.zip")


class AffineOfToday:
    """The later version of the class; its attributes are called weights and bias."""


name = f"{Affine.__module__}.Affine"
today = bundle.load(OUT / "affine.zip", classes={name: AffineOfToday}, rename={"W": "weights", "b": "bias"})
assert np.array_equal(today.weights, values["out_W"])

# The states of this package's own classes have versions: older ones are converted, newer ones refused.
state = main.__getstate__()
assert state["version"] == 1
try:
    fluid.Program().__setstate__({**state, "version": 99})
except fluid.errors.FormatError as error:
    print("refused:", str(error).splitlines()[0])
else:
    raise AssertionError("a newer version must be refused")

# %% The network, as a picture.
main.plot(OUT / "network.svg", level="layers")

# %% [markdown]
# ![Layers with the operators of their gradients and updates](out/theano/network.svg)
