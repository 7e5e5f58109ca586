"""Write checkpoints of ``paddle.distributed``, whose pieces are in the files of two processes.

Run by real Paddle, 3.2 or later with ``flat``, in the directory that is filled::

    python -m paddle.distributed.launch --nproc_per_node 2 dump_sharded.py NAME [flat]
"""

import sys

import numpy as np
import paddle
import paddle.distributed as dist

paddle.set_device("cpu")
dist.init_parallel_env()
rank, name = dist.get_rank(), sys.argv[1]
whole = np.arange(24, dtype="float32").reshape(4, 6)
if "flat" not in sys.argv:
    mesh, w = dist.ProcessMesh([0, 1], dim_names=["x"]), paddle.to_tensor(whole)
    model = {
        "row": dist.shard_tensor(w, mesh, [dist.Shard(0)]),
        "col": dist.shard_tensor(w * 2, mesh, [dist.Shard(1)]),
        "rep": dist.shard_tensor(w + 1, mesh, [dist.Replicate()]),
    }
    dist.save_state_dict({"model": model, "plain": paddle.to_tensor([1, 2, 3])}, name)
else:
    from paddle.distributed.flex_checkpoint.dcp.sharded_weight import ShardedWeight

    def cut(key, array, shape, offset, span=None):
        return ShardedWeight(key, paddle.to_tensor(array), shape, (4, 6), offset, span is not None, span)

    rows = slice(2 * rank, 2 * rank + 2)
    part = slice(0, 5) if rank == 0 else slice(5, 24)
    pieces = {
        "flat": cut("flat", whole.ravel()[part], (4, 6), (0, 0), part),
        "flat2": cut("flat2", whole[:, 3 * rank : 3 * rank + 3] * 1.5, (4, 3), (0, 3 * rank)),
        "u": cut("u", (whole * 3)[rows].ravel(), (2, 6), (2 * rank, 0), slice(0, 12)),
    }
    dist.save_state_dict(pieces, name)
    dist.save_state_dict(
        {"s": cut("s", whole[rows], (2, 6), (2 * rank, 0))}, f"{name}-safe", safetensors=True
    )
