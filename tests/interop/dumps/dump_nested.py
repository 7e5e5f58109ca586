"""Write checkpoints of dicts in dicts, and what the real system reads in them, path by path.

``python dump_nested.py TARGET`` with Paddle 2.6.2, Paddle 3.3.1 or PyTorch 2.13 (numpy alone beside it).
"""

import argparse
import collections
import json
import sys
from pathlib import Path


def walk(value, path, found):
    """Put the leaves of what the system loaded into ``found``: shape of an array, else None."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        found[path] = [int(dim) for dim in value.shape]
    elif isinstance(value, dict):
        for key, item in value.items():
            walk(item, f"{path}/{key}" if path else str(key), found)
    elif isinstance(value, (list, tuple, set)):
        for index, item in enumerate(value):
            walk(item, f"{path}/{index}" if path else str(index), found)
    elif value is not None:
        found[path] = None


def dump_paddle(target):
    import paddle

    layer = paddle.nn.Sequential(paddle.nn.Linear(2, 3), paddle.nn.BatchNorm1D(3))
    rate = paddle.optimizer.lr.LinearWarmup(paddle.optimizer.lr.StepDecay(0.5, 2), 3, 0.0, 0.5)
    adam = paddle.optimizer.Adam(rate, parameters=layer.parameters())
    layer(paddle.ones([4, 2])).mean().backward()
    adam.step()
    rate.step()
    version = paddle.__version__.replace(".", "")
    checkpoint = {
        "epoch": 3,
        "model": layer.state_dict(),
        "opt": adam.state_dict(),
        "ema": [paddle.ones([2]), (paddle.zeros([3]), "tag")],
        "best": {"accuracy": 0.5, "at": None, "labels": ["a", "b"]},
    }
    for name, value in {
        "ck.pdparams": checkpoint,
        "layer.pdparams": layer.state_dict(),
        "adam.pdopt": adam.state_dict(),
        "several.pdparams": [paddle.ones([2]), paddle.zeros([3])],
        "one.pdparams": paddle.ones([2, 2]),
    }.items():
        path = target / f"paddle{version}-{name}"
        paddle.save(value, str(path))
        found = {}
        walk(paddle.load(str(path), return_numpy=True), "", found)
        path.with_suffix(path.suffix + ".json").write_text(json.dumps(found, indent=0) + "\n")


def dump_torch(target):
    import torch

    net = torch.nn.Linear(2, 3)
    adam = torch.optim.Adam(net.parameters())
    net(torch.ones(4, 2)).sum().backward()
    adam.step()
    checkpoint = {
        "epoch": 3,
        "model": net.state_dict(),
        "opt": adam.state_dict(),
        "shadow": [torch.ones(2), (torch.zeros(3), "t")],
        "args": argparse.Namespace(rate=0.1),
        "parts": collections.defaultdict(int, {"a": torch.ones(1)}),
        **{
            name: torch.ones(2).to(getattr(torch, name))
            for name in ("float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64")
        },
    }
    for name, zipped in (("torch-ck.pt", True), ("torch-legacy.pt", False)):
        if not zipped:  # PyTorch cannot read these types in the old form
            checkpoint = {key: value for key, value in checkpoint.items() if key[0] not in "fu"}
        torch.save(checkpoint, target / name, _use_new_zipfile_serialization=zipped)
        found = {}
        walk(torch.load(target / name, weights_only=False), "", found)
        (target / f"{name}.json").write_text(json.dumps(found, indent=0) + "\n")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    try:
        import paddle  # noqa: F401
    except ImportError:
        dump_torch(target)
    else:
        dump_paddle(target)
