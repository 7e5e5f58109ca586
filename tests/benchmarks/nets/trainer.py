"""One library trains one net on one device, and says what a step takes.

    python trainer.py paddlelike|compiled|jax|torch NET cpu|gpu

The answer to "start" is a line of JSON: wall seconds of building and of the first step, with its compilation, the
first loss, multiply-adds and bytes of the step as XLA counts them (None for other libraries). That to a number is
the wall and processor seconds of as many steps, and the peak of the memory in MiB: resident, and of the device.
"limits" measures the device itself.
"""

import importlib
import json
import os
import resource
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def main():
    library, net, device = sys.argv[1:]
    os.environ["JAX_PLATFORMS"] = "cpu" if device == "cpu" else "cuda,cpu"
    step = None
    for line in sys.stdin:
        word = line.strip()
        if word == "limits":
            found = measure_limits(device)
        elif word == "start":
            step, found = start(library, net, device)
        else:
            found = train(step, int(word), library, device)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


def start(library, net, device):
    """Return a function that trains one step, and what its first call tells."""
    counted = []
    if library in ("compiled", "jax"):
        _count(counted)
    begin = time.perf_counter()
    try:
        step = prepare(library, net, device)
    except KeyError:
        return None, {}
    built = time.perf_counter()
    loss = float(np.asarray(step()).reshape(-1)[0])
    found = {"build": built - begin, "first": time.perf_counter() - built, "loss": loss}
    # The largest of what was compiled; the others set up arrays.
    found["flops"], found["bytes"] = max(counted, default=(None, None))
    step()
    return step, found


def prepare(library, net, device):
    """Return a function that trains one step of a net."""
    if library in ("paddlelike", "compiled"):
        import in_fluid

        import paddlelike

        os.environ["FLAGS_backend"] = "jax" if library == "compiled" else "numpy"
        on_gpu = device == "gpu" and library == "compiled"
        return in_fluid.prepare(net, paddlelike, paddlelike.CUDAPlace(0) if on_gpu else None)
    if library == "torch":
        import torch

        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        return importlib.import_module("in_torch").prepare(net, "cuda" if device == "gpu" else "cpu")
    return importlib.import_module("in_" + library).prepare(net)


def _count(counted):
    """Have XLA's counts of what is compiled from here on appended: operations, and bytes after its fusions."""
    from jax import stages

    compile = stages.Lowered.compile

    def compile_and_count(self, *args, **keywords):
        compiled = compile(self, *args, **keywords)
        before, after = self.cost_analysis() or {}, compiled.cost_analysis() or {}
        # A library's convolution counts for nothing once it is compiled for a GPU.
        counted.append((before.get("flops", 0.0), after.get("bytes accessed", 0.0)))
        return compiled

    stages.Lowered.compile = compile_and_count


def train(step, count, library, device):
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        step()
    found = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    found["resident"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    found["device"] = _read_peak(library) if device == "gpu" else None
    return found


def _read_peak(library):
    """Return the peak of the memory of the GPU in MiB; None for a library that does not use it."""
    if library == "torch":
        import torch

        return torch.cuda.max_memory_allocated() / 2**20
    if library in ("compiled", "jax"):
        import jax

        return jax.devices()[0].memory_stats()["peak_bytes_in_use"] / 2**20
    return None


def measure_limits(device):
    """Return operations and bytes a second of a product of matrices and of a sum of vectors, in float32."""
    import jax
    import jax.numpy as jnp

    size, length = (8192, 2**28) if device == "gpu" else (1024, 2**25)
    square, vector = jnp.ones((size, size)), jnp.ones(length)
    with jax.default_matmul_precision("highest"):  # as compiled programs compute
        multiply = jax.jit(lambda x: x @ x).lower(square).compile()
    # In place: the first touch of new memory would take longer than the sum.
    shift = jax.jit(lambda x: x + 1, donate_argnums=0).lower(vector).compile()
    nbytes = vector.nbytes
    return {
        "flops": 2 * size**3 / _time(lambda _: multiply(square), None),
        "bytes": 2 * nbytes / _time(shift, vector),
    }


def _time(function, value):
    """Return the least seconds of a call, each with the result of the one before."""
    times = []
    for _ in range(6):
        begin = time.perf_counter()
        value = function(value).block_until_ready()
        times.append(time.perf_counter() - begin)
    return min(times[1:])


if __name__ == "__main__":
    main()
