"""Saves and loads by one library, in its own interpreter.

    drive_peers.py NAME save DIR NUMBER
    drive_peers.py NAME load DIR...

It knows nothing of this package but how to call it, and runs where only the library is installed. ``save`` prints a
line when it is about to begin. ``load`` prints a word for each directory: the number that all arrays hold, "mix"
where they hold something else, or "refused" and the error's name.
"""

import os
import sys

import numpy as np

SIZES = {"a": 1000, "b": 1_200_000, "c": 4_000_000, "d": 7, "e": 2_000_000}


def paddlelike():
    import warnings

    import paddlelike as fluid

    warnings.simplefilter("ignore")
    exe, main = fluid.Executor(fluid.CPUPlace()), fluid.Program()
    for name, size in SIZES.items():
        main.global_block().create_parameter(name=name, shape=[size], dtype="float32")
    scope = fluid.global_scope()

    def save(home, arrays):
        for name, array in arrays.items():
            scope.var(name).get_tensor().set(array, fluid.CPUPlace())
        fluid.io.save_persistables(exe, os.path.join(home, "model"), main)

    def load(home):
        fluid.io.load_persistables(exe, os.path.join(home, "model"), main)
        return {name: np.array(scope.find_var(name).get_tensor()) for name in SIZES}

    return save, load


def paddle():
    import paddle as real

    def save(home, arrays):
        real.save(
            {name: real.to_tensor(array) for name, array in arrays.items()}, os.path.join(home, "model")
        )

    def load(home):
        return {name: value.numpy() for name, value in real.load(os.path.join(home, "model")).items()}

    return save, load


def np_save():
    def save(home, arrays):
        for name, array in arrays.items():
            np.save(os.path.join(home, name + ".npy"), array)

    def load(home):
        return {name: np.load(os.path.join(home, name + ".npy")) for name in SIZES}

    return save, load


def safetensors():
    from safetensors.numpy import load_file, save_file

    def save(home, arrays):
        save_file(arrays, os.path.join(home, "model"))

    def load(home):
        return load_file(os.path.join(home, "model"))

    return save, load


def torch():
    import torch as real

    def save(home, arrays):
        real.save({name: real.from_numpy(a) for name, a in arrays.items()}, os.path.join(home, "model"))

    def load(home):
        return {name: value.numpy() for name, value in real.load(os.path.join(home, "model")).items()}

    return save, load


def torch_distributed():
    import torch as real
    import torch.distributed.checkpoint as checkpoint

    def save(home, arrays):
        state = {name: real.from_numpy(array) for name, array in arrays.items()}
        checkpoint.save(state, checkpoint_id=os.path.join(home, "model"), no_dist=True)

    def load(home):
        state = {name: real.full([size], -1.0) for name, size in SIZES.items()}
        checkpoint.load(state, checkpoint_id=os.path.join(home, "model"), no_dist=True)
        return {name: value.numpy() for name, value in state.items()}

    return save, load


def orbax():
    import orbax.checkpoint as ocp

    checkpointer = ocp.StandardCheckpointer()

    def save(home, arrays):
        checkpointer.save(os.path.join(home, "model"), arrays, force=True)
        checkpointer.wait_until_finished()

    def load(home):
        empty = {name: np.zeros(size, "float32") for name, size in SIZES.items()}
        return checkpointer.restore(os.path.join(home, "model"), empty)

    return save, load


def say(load, home):
    """Return what a directory holds, in a word."""
    try:
        arrays = load(home)
        values = {float(v) for name in SIZES for v in np.unique(np.asarray(arrays[name]))}
        fits = all(np.asarray(arrays[name]).shape == (size,) for name, size in SIZES.items())
    except BaseException as error:  # PyTorch's CheckpointException is no Exception
        return f"refused {type(error).__name__}: {' '.join(str(error).split())[:160]}"
    return f"{values.pop():g}" if fits and len(values) == 1 else "mix"


def main():
    save, load = globals()[sys.argv[1]]()
    if sys.argv[2] == "save":
        arrays = {name: np.full(size, float(sys.argv[4]), "float32") for name, size in SIZES.items()}
        print("begin", flush=True)
        save(sys.argv[3], arrays)
    else:
        for home in sys.argv[3:]:
            print(say(load, home), flush=True)


if __name__ == "__main__":
    main()
