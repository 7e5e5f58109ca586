"""Write checkpoints of trainers whose rate changes later, or without unit gain, and the losses that follow.

``python dump_cntk_schedules.py TARGET`` with CNTK 2.7.
"""

import sys

import cntk as C  # noqa: N812  (as its documents)
import numpy as np


def make_minibatch(index):
    random = np.random.RandomState(100 + index)
    return random.randn(8, 4).astype("f"), np.eye(3, dtype="f")[random.randint(0, 3, 8)]


MOMENTUM = C.momentum_schedule(0.9)
LEARNERS = {
    "sgd": lambda p, rate: C.sgd(p, rate),
    "momentum": lambda p, rate: C.momentum_sgd(p, rate, MOMENTUM),
    "adam": lambda p, rate: C.adam(p, rate, MOMENTUM),
    "adam_plain": lambda p, rate: C.adam(p, rate, MOMENTUM, unit_gain=False),
    "adamax_plain": lambda p, rate: C.adam(p, rate, MOMENTUM, unit_gain=False, adamax=True),
}


def dump(target):
    found = {}
    for name, make in LEARNERS.items():
        random = np.random.RandomState(1)
        x, y = C.input_variable(4, name="x"), C.input_variable(3, name="y")
        w = C.parameter((4, 3), init=random.randn(4, 3).astype("f") * 0.3)
        z = C.times(x, w) + C.parameter(3)
        rates = 0.05 if name.endswith("plain") else [0.05, 0.02, 0.005]
        kind = C.learning_parameter_schedule_per_sample
        rate = kind(rates) if name.endswith("plain") else kind(rates, epoch_size=64)
        trainer = C.Trainer(z, (C.cross_entropy_with_softmax(z, y), None), make(z.parameters, rate))
        losses = []
        for index in range(20):
            if index == 6:
                trainer.save_checkpoint("%s/ck-%s_schedule.dnn" % (target, name))
            features, labels = make_minibatch(index)
            trainer.train_minibatch({x: features, y: labels})
            if index >= 6:
                losses.append(trainer.previous_minibatch_loss_average)
        found[name], found[name + "_w"] = np.array(losses, "f"), w.value
    np.savez_compressed("%s/schedules.npz" % target, **found)


if __name__ == "__main__":
    dump(sys.argv[1])
