"""Training programs that differentiate gradients; `fluid` is ours, or the real one in another process."""

from __future__ import annotations

from typing import Any

import numpy as np

SEED = 7
STEPS = 4
RATE = 0.05


def feeds(step: int) -> dict[str, Any]:
    rng = np.random.RandomState(100 + step)
    return {
        "real": rng.uniform(-1, 1, (4, 6)).astype("float32"),
        "noise": rng.uniform(-1, 1, (4, 3)).astype("float32"),
        "alpha": rng.uniform(0, 1, (4, 1)).astype("float32"),
        "image": rng.uniform(-1, 1, (2, 2, 5, 5)).astype("float32"),
        "x": rng.uniform(0.2, 2, (3, 4)).astype("float32"),
        "y": rng.uniform(0.5, 2, (4,)).astype("float32"),
    }


def _free(fluid: Any, name: str, shape: list[int]) -> Any:
    variable = fluid.data(name, shape, "float32")
    variable.stop_gradient = False
    return variable


def _penalty(fluid: Any, score: Any, inputs: Any, fixed: Any = None) -> Any:
    """(|gradient| - 1)^2, the penalty of WGAN-GP."""
    layers = fluid.layers
    gradient = fluid.gradients([score], [inputs], no_grad_set=fixed)
    gradient = gradient[0] if isinstance(gradient, list) else gradient
    flat = layers.reshape(gradient, [-1, 6]) if gradient.shape[-1] == 6 else layers.flatten(gradient)
    norm = layers.sqrt(layers.reduce_sum(layers.square(flat), dim=1) + 1e-12)
    return layers.reduce_mean(layers.square(norm - 1.0))


def wgan_gp(fluid: Any) -> Any:
    """A critic of vectors, with gradient penalty at points between real and generated ones."""
    layers = fluid.layers
    real, noise, alpha = (
        fluid.data(n, [None, w], "float32") for n, w in (("real", 6), ("noise", 3), ("alpha", 1))
    )

    def critic(x: Any) -> Any:
        h = layers.fc(x, 8, param_attr="d.w0", bias_attr="d.b0")
        h = layers.leaky_relu(h, 0.2)
        h = layers.relu(layers.fc(h, 5, param_attr="d.w1", bias_attr="d.b1"))
        return layers.fc(h, 1, param_attr="d.w2", bias_attr="d.b2")

    fake = layers.fc(layers.fc(noise, 7, act="relu", param_attr="g.w0"), 6, act="tanh", param_attr="g.w1")
    between = layers.elementwise_add(
        layers.elementwise_mul(real, alpha, axis=0), layers.elementwise_mul(fake, 1.0 - alpha, axis=0)
    )
    penalty = _penalty(fluid, critic(between), between)
    loss = layers.reduce_mean(critic(fake)) - layers.reduce_mean(critic(real)) + 10.0 * penalty
    names = [p.name for p in fluid.default_main_program().all_parameters() if p.name.startswith("d.")]
    fluid.optimizer.Adam(RATE, 0.5, 0.9).minimize(loss, parameter_list=names)
    return loss


def convolutions(fluid: Any) -> Any:
    """A convolutional critic with instance norm and elu, penalized at its input."""
    layers = fluid.layers
    image = _free(fluid, "image", [2, 2, 5, 5])
    h = layers.elu(layers.instance_norm(layers.conv2d(image, 3, 3, padding=1)), 0.7)
    h = layers.leaky_relu(layers.conv2d(h, 4, 3, stride=2, groups=1), 0.1)
    score = layers.reduce_mean(layers.fc(layers.reshape(h, [2, 16]), 1))
    loss = _penalty(fluid, score, image) + score
    fluid.optimizer.SGD(RATE).minimize(loss)
    return loss


def two_heads(fluid: Any) -> Any:
    """A critic that also classifies, as StarGAN's: only one head is penalized, with its parameters fixed."""
    layers = fluid.layers
    image = _free(fluid, "image", [2, 2, 5, 5])
    h = layers.leaky_relu(layers.conv2d(image, 3, 3, stride=2, padding=1), 0.1)
    score = layers.reduce_mean(layers.conv2d(h, 1, 3, padding=1, bias_attr=False))
    kind = layers.conv2d(h, 2, 3, bias_attr=False)
    fixed = [parameter.name for parameter in fluid.default_main_program().all_parameters()]
    loss = _penalty(fluid, score, image, fixed) + score + layers.reduce_mean(layers.square(kind))
    fluid.optimizer.SGD(RATE).minimize(loss)
    return loss


def arithmetic(fluid: Any) -> Any:
    """Every operator of arithmetic with broadcasting, twice differentiated."""
    layers = fluid.layers
    x, y = _free(fluid, "x", [3, 4]), _free(fluid, "y", [4])
    w = layers.create_parameter(
        [3, 4], "float32", name="w", default_initializer=fluid.initializer.Uniform(0.5, 1.5, 3)
    )
    z = layers.elementwise_div(layers.elementwise_mul(x, w), y) - layers.elementwise_sub(layers.square(w), y)
    z = layers.sqrt(layers.square(z) + 0.5) * layers.elementwise_add(w, y)
    z = layers.slice(layers.expand(layers.reshape(z, [2, 6]), [1, 2]), [1], [1], [9])
    first = fluid.gradients([layers.reduce_sum(layers.square(z))], [x, y])
    loss = layers.reduce_mean(layers.square(first[0])) + layers.reduce_sum(layers.square(first[1]))
    fluid.optimizer.SGD(RATE * 0.001).minimize(loss)
    return loss


def two_losses(fluid: Any) -> Any:
    """Two optimizers, each with a pass of its own, after a pass for the penalty."""
    layers = fluid.layers
    real, noise = fluid.data("real", [None, 6], "float32"), fluid.data("noise", [None, 3], "float32")
    real.stop_gradient = False
    score = layers.fc(layers.leaky_relu(layers.fc(real, 5, param_attr="d.w0")), 1, param_attr="d.w1")
    fake = layers.fc(layers.fc(noise, 6, param_attr="g.w0"), 1, param_attr="d.w2")
    loss = layers.reduce_mean(score) + _penalty(fluid, score, real)
    fluid.optimizer.SGD(RATE).minimize(loss, parameter_list=["d.w0", "d.w1"])
    other = layers.reduce_mean(layers.square(fake))
    fluid.optimizer.Momentum(RATE, 0.9).minimize(other, parameter_list=["g.w0"])
    return loss


CASES = {case.__name__: case for case in (wgan_gp, convolutions, two_heads, arithmetic, two_losses)}
