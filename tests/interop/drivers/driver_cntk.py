"""Run by a Python with the real CNTK: loads our files and writes down what it finds in them."""

import json
import sys

import cntk
import numpy as np


def read_values(job):
    """Load a function that combines values, keep them, and save it again."""
    function = cntk.Function.load(job["ours"])
    np.savez(job["found"], **{one.uid: np.asarray(one.value) for one in function.parameters})
    assert [one.uid for one in function.parameters] == [one.name for one in function.parameters]
    function.save(job["theirs"])


def evaluate(function, feeds, prefix):
    """Return the outputs of a function; sequences are fed as a list, and come back one after the other."""
    feed = {}
    for one in function.arguments:
        value = feeds["%s/in/%s" % (prefix, one.name)]
        lengths = "%s/lengths/%s" % (prefix, one.name)
        feed[one] = np.split(value, np.cumsum(feeds[lengths])[:-1]) if lengths in feeds.files else value
    made = function.eval(feed)
    outputs = [made[one] for one in function.outputs] if isinstance(made, dict) else [made]
    return [np.concatenate(one) if isinstance(one, list) else np.asarray(one) for one in outputs]


def run_models(job):
    """Evaluate every model of an archive with its inputs."""
    found = {}
    with np.load(job["models"]) as feeds:
        for name in sorted({key.split("/")[0] for key in feeds.files}):
            data, kind = feeds[name + "/model"].tobytes(), cntk.ModelFormat.CNTKv2
            if job.get("onnx"):  # which CNTK reads from files alone
                with open(job["onnx"], "wb") as file:
                    file.write(data)
                data, kind = job["onnx"], cntk.ModelFormat.ONNX
            function = cntk.Function.load(data, format=kind)
            for index, out in enumerate(evaluate(function, feeds, name)):
                found["%s/%d" % (name, index)] = out
    np.savez(job["found"], **found)


def make_trainer(job):
    """Return a trainer of the function in a checkpoint, with a learner of the kind, not yet restored."""
    function = cntk.Function.load(job["ours"])
    model, loss, metric = (cntk.combine([function.outputs[index]]) for index in (0, 1, 3))
    rate, momentum = cntk.learning_parameter_schedule(job["rate"]), cntk.momentum_schedule(0.9)
    variance = cntk.momentum_schedule(job["beta2"])
    make = {
        "sgd": lambda: cntk.sgd(model.parameters, rate),
        "momentum": lambda: cntk.momentum_sgd(model.parameters, rate, momentum),
        "nesterov": lambda: cntk.nesterov(model.parameters, rate, momentum),
        "adam": lambda: cntk.adam(model.parameters, rate, momentum, variance_momentum=variance),
        "adamax": lambda: cntk.adam(
            model.parameters, rate, momentum, variance_momentum=variance, adamax=True
        ),
        "adagrad": lambda: cntk.adagrad(model.parameters, rate),
        "adadelta": lambda: cntk.adadelta(model.parameters, rate, rho=0.9, epsilon=1e-6),
        "rmsprop": lambda: cntk.rmsprop(model.parameters, rate, 0.95, 1.2, 0.7, 10, 0.01),
        "fsadagrad": lambda: cntk.fsadagrad(model.parameters, rate, momentum, variance_momentum=variance),
    }
    kind = "momentum" if job["kind"] == "batch_norm" else job["kind"]
    return function, cntk.Trainer(model, (loss, metric), [make[kind]()])


def train(job):
    """Restore a checkpoint and train on; keep the losses, the parameters, and what the checkpoint said."""
    function, trainer = make_trainer(job)
    state = trainer.restore_from_checkpoint(job["ours"])
    inputs = {one.name: one for one in function.arguments}
    data, losses = np.load(job["data"]), []
    for index in range(job["first"], job["first"] + job["steps"]):
        rows = slice(index % 6 * 8, index % 6 * 8 + 8)
        trainer.train_minibatch({inputs[name]: data[key][rows] for name, key in job["inputs"]})
        losses.append(trainer.previous_minibatch_loss_average)
    found = {one.uid: np.asarray(one.value) for one in trainer.model.parameters}
    rate = trainer.parameter_learners[0].learning_rate()
    samples = trainer.total_number_of_samples_seen
    np.savez(job["found"], losses=losses, state=repr(sorted(state)), rate=rate, samples=samples, **found)
    trainer.save_checkpoint(job["theirs"], {"from": "cntk"})


def main():
    with open(sys.argv[1]) as file:
        job = json.load(file)
    {"values": read_values, "models": run_models, "train": train}[job["task"]](job)


if __name__ == "__main__":
    main()
