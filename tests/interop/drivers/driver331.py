"""Run models in real Paddle 3: job.json names folders, each with a model and the feeds in in.npz."""

import json
import sys
from pathlib import Path

import numpy as np
import paddle


def main(job):
    paddle.enable_static()
    exe = paddle.static.Executor(paddle.CPUPlace())
    failed = {}
    for folder in map(Path, json.loads(Path(job).read_text())["folders"]):
        try:
            with paddle.static.scope_guard(paddle.static.Scope()):
                program, feeds, fetches = paddle.static.load_inference_model(str(folder / "inference"), exe)
                with np.load(folder / "in.npz") as arrays:
                    feed = {name: arrays[name] for name in feeds}
                outs = exe.run(program, feed=feed, fetch_list=fetches)
            np.savez(folder / "out.npz", *outs)
        except Exception as error:
            failed[folder.name] = str(error)[-300:]
    Path(job).with_name("failed.json").write_text(json.dumps(failed))


if __name__ == "__main__":
    main(sys.argv[1])
