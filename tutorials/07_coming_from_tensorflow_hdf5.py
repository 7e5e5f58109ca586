"""Coming from TensorFlow and HDF5: a dataset for each variable, filters, attributes, setters.

The usual way here is ``fluid.save`` and ``fluid.load``. HDF5 gives more control over what is saved, in a file
that any HDF5 tool opens. It is the recipe of TensorFlow 1: a key is the name of a variable with blanks
for slashes, and values are set through assign operators that were built with the graph. It needs h5py; the
files go to ``tutorials/out/tensorflow/``.
"""

# %% The network. A session's variables are the scope's; ``tf.trainable_variables()`` are the parameters.
import warnings
from pathlib import Path

import h5py
import numpy as np

import paddlelike as fluid

OUT = Path(__file__).parent / "out" / "tensorflow"
OUT.mkdir(parents=True, exist_ok=True)

x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
hidden = fluid.layers.fc(x, 6, act="tanh", param_attr="net/layer1/W", bias_attr="net/layer1/b")
out = fluid.layers.fc(hidden, 1, param_attr="net/layer2/W", bias_attr="net/layer2/b")
test_program = fluid.default_main_program().clone(for_test=True)
loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
fluid.optimizer.Adam(learning_rate=0.05).minimize(loss)
setters = fluid.build_param_setters()  # with the graph, once: {name: (assign, placeholder)}
exe = fluid.Executor(fluid.CPUPlace())
startup = fluid.default_startup_program()
exe.run(startup)


def train(steps):
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(steps):
        batch = rng.uniform(-1, 1, (16, 4)).astype("float32")
        feed = {"x": batch, "y": batch.sum(axis=1, keepdims=True)}
        losses.append(exe.run(feed=feed, fetch_list=[loss])[0].item())
    return losses


def predict():
    return exe.run(test_program, feed={"x": np.eye(4, dtype="float32")}, fetch_list=[out])[0]


def start_anew():
    """Run the startup program, as a new process would; return its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exe.run(startup)
    return [str(one.message) for one in caught]


def value(name):
    return np.array(fluid.global_scope().find_var(name).get_tensor())


train(30)
before = predict()

# %% Saving: the trainable variables, a dataset each in the root group; slashes would make groups.
fluid.save_hdf5(exe, OUT / "model.hdf5")
with h5py.File(OUT / "model.hdf5") as file:
    print("keys:", list(file))
    assert list(file) == ["net layer1 W", "net layer1 b", "net layer2 W", "net layer2 b"]
    assert np.array_equal(file["net layer1 W"][()], value("net/layer1/W"))

# %% Loading: everything is compared first, so that nothing changes when something does not fit.
start_anew()
assert not np.array_equal(predict(), before)
report = fluid.load_hdf5(exe, OUT / "model.hdf5")
print(report)
assert np.array_equal(predict(), before)

# %% The loop of the recipe by hand: run the assign program, feeding its placeholder.
for parameter in test_program.all_parameters():
    fluid.global_scope().find_var(parameter.name).get_tensor().set(np.zeros(parameter.shape, "float32"))
with h5py.File(OUT / "model.hdf5") as file:
    for key, val in file.items():
        name = key.replace(" ", "/")
        assign, placeholder = setters[name]
        assert placeholder.name == f"{name}_setter"
        exe.run(assign, feed={placeholder.name: np.array(val)})
assert np.array_equal(predict(), before)

# %% The recipe's own code, with its import changed. Names end with ``:0``, as in TensorFlow's own files.
from paddlelike.interop import tensorflow as tf

session = tf.Session()
param_setters = {}
with h5py.File(OUT / "recipe.hdf5", "w") as file:
    for var in tf.trainable_variables():
        file.create_dataset(var.name.replace("/", " "), data=session.run(var))
for var in tf.trainable_variables():
    placeholder = tf.placeholder(var.dtype, var.shape, var.name.split(":")[0] + "_setter")
    param_setters[var.name] = (tf.assign(var, placeholder), placeholder)
start_anew()
with h5py.File(OUT / "recipe.hdf5") as file:
    assert list(file) == ["net layer1 W:0", "net layer1 b:0", "net layer2 W:0", "net layer2 b:0"]
    for name, val in file.items():
        assign, placeholder = param_setters[name.replace(" ", "/")]
        session.run(assign, {placeholder: np.array(val)})
assert np.array_equal(predict(), before)

# %% A filter: save a part, load a part. What is missing is an error; with ``strict=False`` it is listed.
fluid.save_hdf5(exe, OUT / "layer1.hdf5", predicate=lambda v: v.name in ("net/layer1/W", "net/layer1/b"))
try:
    fluid.load_hdf5(exe, OUT / "layer1.hdf5")
except fluid.errors.LoadError as error:
    print("refused:", str(error).splitlines()[0])
else:
    raise AssertionError("half of the parameters are missing")
report = fluid.load_hdf5(exe, OUT / "layer1.hdf5", strict=False)
assert sorted(report.loaded) == ["net/layer1/W", "net/layer1/b"]
assert sorted(report.missing) == ["net/layer2/W", "net/layer2/b"]

# %% Extra facts are attributes of the file; this library's version always is one of them.
fluid.save_hdf5(exe, OUT / "facts.hdf5", attributes={"epoch": 30, "comment": "a tutorial"})
with h5py.File(OUT / "facts.hdf5") as file:
    print("attributes:", dict(file.attrs))
    assert file.attrs["epoch"] == 30
    assert file.attrs["paddlelike_version"] == fluid.__version__

# %% Names that have changed, as those of TensorFlow's RNNs did in 1.2. Its files' ``:0`` is read too.
with h5py.File(OUT / "old.hdf5", "w") as file:
    for name in ("W", "b"):
        file[f"net layer1 {name}:0"] = value(f"net/layer1/{name}")
        file[f"net dense {name}:0"] = value(f"net/layer2/{name}")
start_anew()
fluid.load_hdf5(
    exe,
    OUT / "old.hdf5",
    rename={"net/dense/W:0": "net/layer2/W", "net/dense/b:0": "net/layer2/b"},
)
assert np.array_equal(predict(), before)

# %% The initializer after a load overwrites the values; TensorFlow says nothing, here it is a warning.
(text,) = start_anew()
print("warned:", text)
assert "replaces the values loaded" in text

# %% Trainable variables alone lose Adam's moments: the loss is the same, the next steps are not.
train(30)
fluid.save_hdf5(exe, OUT / "all.hdf5", predicate=fluid.io.is_persistable)
fluid.save_hdf5(exe, OUT / "trainable.hdf5")
wanted = train(5)
start_anew()
fluid.load_hdf5(exe, OUT / "all.hdf5", predicate=fluid.io.is_persistable)
assert train(5) == wanted  # bit for bit
start_anew()
fluid.load_hdf5(exe, OUT / "trainable.hdf5")
alone = train(5)
print("following losses, all variables:", wanted[:2], "trainable variables alone:", alone[:2])
assert alone[0] == wanted[0]
assert alone[1:] != wanted[1:]

# %% Another shape is an error that names the variable; no variable has been set before it is raised.
with h5py.File(OUT / "wide.hdf5", "w") as file:
    for key in ("net layer1 W", "net layer1 b", "net layer2 b"):
        file[key] = np.zeros(value(key.replace(" ", "/")).shape, "float32")
    file["net layer2 W"] = np.zeros((7, 1), "float32")
before = predict()
try:
    fluid.load_hdf5(exe, OUT / "wide.hdf5")
except fluid.errors.LoadError as error:
    assert "net/layer2/W" in str(error)
else:
    raise AssertionError("another shape must be refused")
assert np.array_equal(predict(), before)

# %% Keras weights, safetensors, npz, torch: ``convert`` reads and writes them all.
fluid.convert(OUT / "model.hdf5", OUT / "model.safetensors", overwrite=True)
print(fluid.convert(OUT / "model.safetensors", OUT / "directory", overwrite=True))
fluid.io.load_params(exe, str(OUT / "directory"), test_program)

# %% The network, as a picture.
test_program.plot(OUT / "network.svg")

# %% [markdown]
# ![Operators are boxes, variables ellipses](out/tensorflow/network.svg)
