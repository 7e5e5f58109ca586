"""The network `mlp_adam` of tests/helpers/networks.py, trained by real Paddle 2.6.2 (static graph).

    python driver262.py JOB.json

A job is {"load": directory or null, "skip", "steps", "save": directory or null, "infer": inference
directory with `__model__` or null, "out": path without suffix}. Writes OUT.npz: `losses`,
`final/<variable>`, `infer`.
"""

import json
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.helpers.networks import mlp_feeds


def main(job):
    import paddle
    from paddle import static

    paddle.enable_static()
    program, startup = static.Program(), static.Program()
    with static.program_guard(program, startup):
        x = static.data("x", [None, 6], "float32")
        y = static.data("y", [None, 1], "float32")
        out = static.nn.fc(static.nn.fc(x, 5, activation="relu"), 1)
        loss = paddle.mean(paddle.square(out - y))
        paddle.optimizer.Adam(0.01).minimize(loss)
    exe = static.Executor(paddle.CPUPlace())
    exe.run(startup)

    def persistable(variable):
        return variable.persistable

    if job["load"]:
        static.io.load_vars(exe, job["load"], program, predicate=persistable)
    arrays = {}
    rng = np.random.RandomState(3)
    feeds = [mlp_feeds(rng) for _ in range(job["skip"] + job["steps"])][job["skip"] :]
    arrays["losses"] = np.array(
        [exe.run(program, feed=feed, fetch_list=[loss])[0].item() for feed in feeds], "float32"
    )
    for variable in filter(persistable, program.list_vars()):
        tensor = static.global_scope().find_var(variable.name).get_tensor()
        arrays["final/" + variable.name] = np.array(tensor)
    if job["save"]:
        place = job["save"]
        static.io.save_vars(exe, place + "/persistables", program, predicate=persistable)
        static.save_inference_model(place + "/inference/model", [x], [out], exe, program=program)
    if job["infer"]:
        model, feed_names, targets = static.load_inference_model(
            job["infer"], exe, model_filename="__model__", params_filename="params"
        )
        feed = mlp_feeds(np.random.RandomState(3))
        arrays["infer"] = exe.run(model, {n: feed[n] for n in feed_names}, targets)[0]
    np.savez(job["out"] + ".npz", **arrays)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
