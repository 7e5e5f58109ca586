#!/usr/bin/env bash
# What a GPU proves and measures, in about ten minutes: tests of CUDAPlace, then steps of compiled networks
# beside JAX by hand and PyTorch. Without a GPU it ends at the first call of one, with status 3.
#
#     PADDLELIKE_TORCH_PYTHON=... tests/benchmarks/gpu.sh [FOLDER FOR THE REPORTS]
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${1:-build/gpu}
mkdir -p "$out"
python -m paddlelike env | tee "$out/env.txt"
python - <<'END' || exit 3
import sys

import paddlelike as fluid

fluid.set_flags({"FLAGS_backend": "jax"})
count = fluid.core.get_cuda_device_count()
print(f"GPUs: {count}")
if not count:
    sys.exit("gpu.sh: JAX finds no GPU; install jax[cuda13] on a machine that has one")
# The same network on both devices: the losses agree to rounding.
import numpy as np

fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 3
x = fluid.data("x", [None, 3, 16, 16])
y = fluid.layers.conv2d(x, 8, 3, padding=1, act="relu")
loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.batch_norm(y), 4) ** 2)
fluid.optimizer.Momentum(0.001, 0.9).minimize(loss)
feed = {"x": np.random.default_rng(0).random((4, 3, 16, 16), "float32")}
losses = []
for place in (fluid.CPUPlace(), fluid.CUDAPlace(0)):
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(place)
        exe.run(fluid.default_startup_program())
        losses.append([exe.run(feed=feed, fetch_list=[loss])[0].item() for _ in range(10)])
np.testing.assert_allclose(*losses, rtol=1e-3)
print("ten losses on both devices:", losses)
END
timeout 180 python -m pytest -q -m "" tests/compiled/test_gpu.py 2>&1 | tee "$out/tests.txt"
for net in bert resnet50; do
  timeout 150 python -m tests.benchmarks.bench_compiled --device gpu --only "$net" --without paddlelike --rounds 1 |
    tee "$out/$net.txt"
done
