"""Train a small network with every trainer of DyNet; run by a Python with the real DyNet, or imported.

``python driver_dynet_trainers.py tests/golden/dynet/trainers.npz`` records what the real one computes.
"""

import sys

import numpy as np

TRAINERS = {
    "sgd": lambda dy, m: dy.SimpleSGDTrainer(m),
    "cyclical": lambda dy, m: dy.CyclicalSGDTrainer(m, 0.01, learning_rate_max=0.3, step_size=3, gamma=0.9),
    "momentum": lambda dy, m: dy.MomentumSGDTrainer(m, learning_rate=0.05, mom=0.8),
    "adagrad": lambda dy, m: dy.AdagradTrainer(m),
    "adadelta": lambda dy, m: dy.AdadeltaTrainer(m),
    "rmsprop": lambda dy, m: dy.RMSPropTrainer(m),
    "adam": lambda dy, m: dy.AdamTrainer(m, alpha=0.01),
    "amsgrad": lambda dy, m: dy.AmsgradTrainer(m, 0.02),
}
WAYS = ("default", "clip 0.5", "no clip", "dense")


def train(dy, kind, way):
    """Return the losses, the learning rates, and the parameters after eight updates."""
    rng = np.random.RandomState(1)
    m = dy.ParameterCollection()
    w, b, table = m.add_parameters((3, 4)), m.add_parameters(3), m.add_lookup_parameters((6, 4))
    unused = m.add_parameters(2)
    w.set_value(rng.randn(3, 4))
    b.set_value(rng.randn(3))
    table.init_from_array(rng.randn(6, 4))
    unused.set_value(rng.randn(2))
    trainer = TRAINERS[kind](dy, m)
    if way == "dense":
        trainer.set_sparse_updates(False)
    elif way != "default":
        trainer.set_clip_threshold({"clip 0.5": 0.5, "no clip": 0}[way])
    losses, rates = [], []
    for step in range(8):
        dy.renew_cg()
        scores = dy.parameter(w) * dy.tanh(table[step % 3]) + dy.parameter(b)
        loss = dy.pickneglogsoftmax(scores, step % 3) * (4 if step % 2 else 1)
        losses.append(loss.scalar_value())
        loss.backward()
        trainer.update()
        rates.append(trainer.learning_rate)
    trainer.status()
    values = [one.as_array().reshape(-1) for one in (w, b, table, unused)]
    return np.concatenate([losses, rates, *values]).astype("float32")


if __name__ == "__main__":
    import dynet

    found = {"%s, %s" % (kind, way): train(dynet, kind, way) for kind in TRAINERS for way in WAYS}
    np.savez_compressed(sys.argv[1], **found)
