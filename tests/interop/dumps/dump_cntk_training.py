"""Dump a checkpoint of a network with batch normalization: ``cntkpy dump_cntk_training.py FOLDER``.

Run by a Python with the real CNTK 2.7. Writes ``ck-bn.dnn``, ``ck-bn.dnn.ckp`` and ``ck-bn.npz``: the data
(minibatch i is rows 6 i to 6 i + 6), the losses of the 3 steps that follow, the parameters and constants
after them, and the outputs of the model for the first minibatch in the end.
"""

import sys

import cntk
import numpy as np

BATCH, STEPS = 6, 3


def main():
    folder = sys.argv[1]
    cntk.cntk_py.set_fixed_random_seed(7)
    rng = np.random.RandomState(7)
    x = cntk.input_variable((2, 6, 6), name="image")
    y = cntk.input_variable(3, name="label")
    layers = cntk.layers
    model = layers.Sequential([
        layers.Convolution2D((3, 3), 4, pad=True, bias=False),
        layers.BatchNormalization(map_rank=1, normalization_time_constant=40),
        cntk.relu,
        layers.MaxPooling((2, 2), strides=2),
        layers.Dense(5),
        layers.BatchNormalization(normalization_time_constant=40),
        layers.Dense(3),
    ])(x)  # fmt: skip
    loss = cntk.cross_entropy_with_softmax(model, y)
    rate = cntk.learning_parameter_schedule(0.2)
    learner = cntk.momentum_sgd(model.parameters, rate, cntk.momentum_schedule(0.9))
    trainer = cntk.Trainer(model, (loss, cntk.classification_error(model, y)), [learner])
    count = 2 * STEPS * BATCH
    data = rng.randn(count, 2, 6, 6).astype("f")
    labels = np.eye(3, dtype="f")[rng.randint(0, 3, count)]

    def train(first):
        losses = []
        for index in range(first, first + STEPS):
            rows = slice(index * BATCH, index * BATCH + BATCH)
            trainer.train_minibatch({x: data[rows], y: labels[rows]})
            losses.append(trainer.previous_minibatch_loss_average)
        return losses

    train(0)
    trainer.save_checkpoint(folder + "/ck-bn.dnn")
    losses = train(STEPS)
    end = {"end:" + one.uid: one.value for one in model.parameters}
    end.update({"end:" + one.uid: np.asarray(one.value) for one in model.constants})
    np.savez_compressed(
        folder + "/ck-bn.npz", X=data, Y=labels, losses=losses, y=model.eval({x: data[:BATCH]}), **end
    )


if __name__ == "__main__":
    main()
